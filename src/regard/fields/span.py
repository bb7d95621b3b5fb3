"""The part of a context that answers: a cell is its text, or all answers with where each begins."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from regard.errors import DataError
from regard.files import squad
from regard.files.formats import text_cell
from regard.files.row import Row


@dataclass(frozen=True)
class Span:
    kind: ClassVar[str] = "span"
    synonyms: ClassVar[tuple[str, ...]] = ("answer", "answers", "答案")
    optional: bool = False

    def clean(
        self, cell: object, where: str, name: str, folder: Path | None = None
    ) -> str | list[dict[str, Any]]:
        if isinstance(cell, list | dict):
            return squad.pairs(where, cell)
        return text_cell(where, name, cell)


def answer_places(row: Row) -> list[tuple[int, int]] | None:
    """The characters of the context that answer, if that is known; an empty list where nothing does.

    A row that only says the answer's text means where that first occurs.
    """
    if "answer" not in row.cells:
        return None
    answer, context = row.cells["answer"], row.cells["context"]
    if isinstance(answer, list):
        where = f"{row.file}: question {row.id}" if row.id else row.where
        return list(dict.fromkeys(squad.place(where, context, one) for one in answer))
    start = context.find(answer)
    if start < 0:
        raise DataError(
            f"{row.where}: the answer {answer[:60]!r} does not stand in the context; write it as it stands "
            "there, or leave it empty if there is none"
        )
    return [(start, start + len(answer))] if answer else []


def first_answer(row: Row) -> str:
    """The text of the first answer; empty where nothing answers."""
    answer = row.cells["answer"]
    if isinstance(answer, str):
        return answer
    return str(answer[0]["text"]) if answer else ""
