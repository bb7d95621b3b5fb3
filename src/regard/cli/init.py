import re
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from regard.cli import console
from regard.cli.arguments import Columns, columns
from regard.cli.files import write
from regard.errors import DataError, RunError
from regard.files.row import text_of
from regard.text.sanitize import printable

if TYPE_CHECKING:
    from regard.init.guess import Guess

GAP = 2
SHOWN = 3


def init(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILES",
            help="A text file, two aligned ones, or .tsv, .csv, .jsonl, .parquet, .conll, .conllu, .semeval, "
            ".json of SQuAD, each plain or .gz, or a folder; train, valid or test in a name says what it "
            "is for.",
            show_default=False,
        ),
    ] = None,
    train: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="For training, whatever its name; repeatable.")
    ] = None,
    valid: Annotated[list[str] | None, typer.Option(metavar="FILE", help="For validation.")] = None,
    test: Annotated[list[str] | None, typer.Option(metavar="FILE", help="For testing.")] = None,
    task: Annotated[
        str | None,
        typer.Option(
            help="Such as classify or translate, where the files do not tell; an unknown name lists all."
        ),
    ] = None,
    column: Columns = None,
    begin: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FOLDER|auto",
            help="Begin with a trained model: a run, or a BERT or GPT-2 of Hugging Face. auto: the one in "
            "models/, or in the folders that REGARD_MODELS names.",
        ),
    ] = None,
    encoding: Annotated[str, typer.Option(help="Of the files, such as gb18030.")] = "utf-8",
    out: Annotated[Path, typer.Option(metavar="FILE", help="The recipe to write.")] = Path("recipe.toml"),
) -> None:
    """Recognise your files and write a commented recipe for them.

    It is sized to the data and to this machine. Nothing is overwritten.
    """
    from regard.init.beginning import MEASURED, Beginning, nearby
    from regard.init.detect import detect
    from regard.init.draft import draft, from_scratch, plan
    from regard.training.machine import Machine

    given = {"train": train or [], "valid": valid or [], "test": test or []}
    for file in [*(files or ()), *given["train"], *given["valid"], *given["test"]]:
        if not file.isprintable():
            raise DataError(f"{file!r}: a recipe cannot hold this file name; rename the file")
    if out.exists():
        raise RunError(f"{out}: already exists; choose another name with --out, or delete it")
    guess = detect(files or (), task=task, columns=columns(column), encoding=encoding, by_split=given)
    _show(guess)
    planned = plan(guess, Machine.here())
    scratch = from_scratch(planned)
    beginning = None if begin is None else Beginning(scratch, begin)
    write(out, draft(planned, _run(guess, out), beginning))
    console.OUT.print()
    if beginning is None:
        for folder in nearby(scratch):
            console.line(f"there is a trained model in {folder}; --from {folder} begins with it ({MEASURED})")
    console.line(f"wrote {out}; now:", "dim")
    console.line(f"  regard check {out}")
    console.line(f"  regard train {out}")


def _show(guess: "Guess") -> None:
    for reason in guess.reasons:
        console.hanging(Text("· ", "dim"), reason)
    console.OUT.print()
    rows_shown = guess.sample[:SHOWN]
    roles = [role for role in guess.columns if any(role in row.cells for row in rows_shown)]
    rows = [
        [printable(text_of(row.cells.get(role, "")).replace("\n", " / ")) for role in roles]
        for row in rows_shown
    ]
    widths = [max(map(cell_len, column)) for column in zip(roles, *rows, strict=True)]
    most = _widest(widths, console.OUT.width - GAP * (len(widths) - 1))
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim")
    for role in roles:
        table.add_column(role, no_wrap=True, overflow="ellipsis", max_width=most)
    for row in rows:
        table.add_row(*map(Text, row))
    console.OUT.print(table)


def _widest(widths: list[int], room: int) -> int:
    """How wide a column may be, so that all are seen: what narrow ones leave is for the others."""
    for number, width in enumerate(sorted(widths)):
        share = room // (len(widths) - number)
        if width > share:
            return max(1, share)
        room -= width
    return max(widths)


def _run(guess: "Guess", out: Path) -> str:
    """A folder for the run that nothing has yet, no other recipe beside this one either."""
    beside = [
        path.read_text("utf-8", errors="replace") for path in out.parent.glob("*.toml") if path.is_file()
    ]
    names = (f"runs/{_name(guess)}{'' if n == 1 else f'-{n}'}" for n in count(1))
    return next(
        name for name in names if not Path(name).exists() and not any(f'"{name}"' in one for one in beside)
    )


def _name(guess: "Guess") -> str:
    """What is left of the first file's name without split and suffixes, else the task."""
    words = re.findall(r"[^\W_]+", Path(guess.train[0]).name.split(".")[0])
    kept = [word for word in words if word.lower() not in ("train", "training", "trn")]
    return "-".join(kept) or guess.task
