"""Texts in files, read as the run's own data is laid out."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from regard.cli import console
from regard.errors import DataError
from regard.files.row import text_of

if TYPE_CHECKING:
    from regard import Trained
    from regard.fields.field import Field
    from regard.files.columns import Column
    from regard.files.row import Asked, Row


def layout(
    run: Path,
    file: str,
    roles: Sequence[str],
    encoding: str | None,
    columns: "Mapping[str, Column] | None" = None,
) -> "tuple[dict[str, Column | None], str]":
    """The columns of these roles and the encoding: as told, else as in the run's recipe."""
    from regard.recipe import Recipe, laid_out

    path = run / "recipe.json"
    data = Recipe.read(path).data if path.is_file() else None
    return laid_out(data, file, roles, columns, encoding)


def file_rows(
    file: str,
    columns: "dict[str, Column | None]",
    encoding: str,
    fields: "Mapping[str, Field] | None" = None,
) -> "Iterator[Row]":
    from regard.files.formats import file_format
    from regard.files.lines import lines
    from regard.files.read import read_rows

    if file_format(file) == "text" and len(columns) == 1:
        return numbered(lines(file, encoding=encoding), file, *columns)
    return read_rows([file], columns, fields=fields, encoding=encoding)


def numbered(lines: Iterable[str], file: str, role: str) -> "Iterator[Row]":
    """Lines as rows of this role."""
    from regard.files.row import Row

    return (Row({role: line}, file, number) for number, line in enumerate(lines, 1))


def typed_value(trained: "Trained", role: str, text: str) -> object:
    """What was typed for an input: a text as it is, anything else as JSON, or as JSON in a file (@FILE)."""
    if role not in trained.task_config.asked:
        return text
    name = f"the {role}"
    if text.startswith("@"):
        name = text[1:]
        try:
            text = Path(name).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as fault:
            raise DataError(f"{name}: cannot be read ({fault})") from None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise DataError(
            f"{name}: not JSON ({fault}); give the {role} as JSON, or a file of it as @FILE"
        ) from None


def asks(row: "Row") -> "Asked":
    """What a row asks, as somebody would have typed it."""
    first, *others = row.cells.values()
    return row.cells if others else first


def beside(
    context: str | None, context_file: str | None, inputs: Sequence[str], encoding: str | None
) -> dict[str, str]:
    """What all questions are about, of a model that needs it; nothing when a file has it in its rows."""
    from regard.files.lines import lines

    if context is None and context_file is None:
        return {}
    if context is not None and context_file is not None:
        raise DataError("--context and --context-file are both given; give one of them")
    if len(inputs) == 1 or "context" not in inputs:
        raise DataError(
            f"--context: this model needs nothing beside the {inputs[0]} it answers; leave it out"
        )
    if context_file is not None:
        context = "\n".join(lines(context_file, encoding=encoding or "utf-8"))
    return {"context": context or ""}


def beside_second(second: str | None, inputs: Sequence[str]) -> dict[str, str]:
    """The other text, of a model that reads two."""
    if second is None:
        return {}
    if "second" not in inputs:
        raise DataError("--second: this model does not read two texts; leave it out")
    return {"second": second}


def only_left(inputs: Sequence[str], given: Mapping[str, str]) -> str:
    """The only role that is left for a typed text; DataError if there are several."""
    left, *others = (role for role in inputs if role not in given)
    if others:
        ways = f"--{others[0]} TEXT, " + ("--context-file FILE, " if others[0] == "context" else "")
        raise DataError(
            f"this model needs a {left} and a {others[0]}; give {ways}"
            "or a file that has both as columns (--file)"
        )
    return left


def is_blank(row: "Row") -> bool:
    return not all(text_of(cell).strip() for cell in row.cells.values())


def tell_cut(trained: "Trained", cut: int, windowed: int = 0) -> None:
    """How many texts were too long, and what became of them."""
    if windowed:
        many = "contexts were" if windowed > 1 else "contexts was"
        read = f"read in overlapping windows of {trained.task_config.max_length} pieces (task.max_length)"
        console.line(f"{windowed} of the {many} {read}", "dim", console=console.ERR)
    if cut:
        setting = "max_question" if hasattr(trained.task_config, "max_question") else "max_length"
        limit = f"longer than {getattr(trained.task_config, setting)} pieces (task.{setting})"
        fate = trained.task.cut
        console.line(f"{cut} of the texts {limit}: {fate}", "dim", console=console.ERR)
