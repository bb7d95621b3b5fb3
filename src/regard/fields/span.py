"""The part of a context that answers: a cell is its text, or all answers with where each begins."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np

from regard import durable
from regard.errors import CheckpointError, DataError
from regard.fields.field import Coded, Field, FieldSettings, Width
from regard.files import squad
from regard.files.formats import text_cell
from regard.files.row import Row

Place = tuple[int, int]
"""Characters from … up to …."""


class SpanSettings(FieldSettings):
    kind: Literal["span"] = "span"


@dataclass(frozen=True)
class Span(Field):
    kind: ClassVar[str] = "span"
    settings: ClassVar[type[FieldSettings]] = SpanSettings
    reads: ClassVar[str] = ""
    may_be_none: bool = False
    """True if some of the training data have no answer."""
    optional: bool = False

    @classmethod
    def of(cls, settings: SpanSettings) -> Self:
        return cls()

    @property
    def sample(self) -> str:
        return ""

    @property
    def width(self) -> Width:
        return {}

    def clean(
        self, cell: object, where: str, name: str, folder: Path | None = None
    ) -> str | list[dict[str, Any]]:
        if isinstance(cell, list | dict):
            return squad.pairs(where, cell)
        return text_cell(where, name, cell)

    def fit(self, values: Iterable[Any]) -> Self:
        return replace(self, may_be_none=not all(values))

    def parse(self, cell: Any, where: str) -> Any:
        return cell

    def places(self, value: Any, context: str, where: str) -> list[Place]:
        """The characters of the context that answer; none where nothing does.

        A text alone means where it first occurs.
        """
        if isinstance(value, list):
            return list(dict.fromkeys(squad.place(where, context, one) for one in value))
        start = context.find(value)
        if start < 0:
            raise DataError(
                f"{where}: the answer {value[:60]!r} does not stand in the context; write it as it stands "
                "there, or leave it empty if there is none"
            )
        return [(start, start + len(value))] if value else []

    def encode(self, values: Sequence[Any]) -> list[Coded]:
        """Arrays: the `characters` of the first answer, which is the one that is learnt."""
        return [Coded({"characters": np.array(places[:1], np.int64).reshape(-1, 2)}) for places in values]

    def save(self, folder: Path) -> None:
        content = json.dumps({"may_be_none": self.may_be_none})
        (folder / "answer.json").write_text(content + "\n", "utf-8")

    def load(self, folder: Path) -> Self:
        path = folder / "answer.json"
        try:
            may_be_none = durable.read_json(path)["may_be_none"]
        except (OSError, ValueError, RecursionError, KeyError, TypeError) as error:
            raise CheckpointError(f"{path}: cannot be read ({error}); copy the whole folder") from error
        if not isinstance(may_be_none, bool):
            raise CheckpointError(f"{path}: may_be_none should be true or false")
        return replace(self, may_be_none=may_be_none)


def answer_places(row: Row) -> list[Place]:
    """The characters of the row's context that answer."""
    where = (
        f"{row.file}: question {row.id}" if row.id and isinstance(row.cells["answer"], list) else row.where
    )
    return Span().places(row.cells["answer"], row.cells["context"], where)


def first_answer(row: Row) -> str:
    """The text of the first answer; empty where nothing answers."""
    answer = row.cells["answer"]
    if isinstance(answer, str):
        return answer
    return str(answer[0]["text"]) if answer else ""
