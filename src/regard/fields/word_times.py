"""Times at which each word of a transcript was spoken; some data have them, and times are judged by them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from regard.errors import DataError
from regard.fields.field import Coded, Field, FieldSettings


@dataclass(frozen=True)
class WordTimes(Field):
    """A cell is a list of {"word": …, "start": …, "end": …}, in seconds; a file may have no such column."""

    kind: ClassVar[str] = "word_times"
    settings: ClassVar[type[FieldSettings]] = FieldSettings
    reads: ClassVar[str] = ""
    optional: bool = True

    @classmethod
    def of(cls, settings: Any) -> Self:
        return cls()

    @property
    def sample(self) -> list[Any]:
        return []

    @property
    def width(self) -> Mapping[str, Any]:
        return {}

    def clean(self, cell: object, where: str, name: str, folder: Path | None = None) -> list[dict[str, Any]]:
        if isinstance(cell, str):
            try:
                cell = json.loads(cell) if cell.strip() else []
            except (ValueError, RecursionError):
                raise DataError(
                    f"{where}: {name} is not JSON; give a list of words with start and end"
                ) from None
        found = []
        for number, one in enumerate(cell if isinstance(cell, list) else [None], 1):
            try:
                word, start, end = str(one["word"]), float(one["start"]), float(one["end"])
            except (TypeError, KeyError, ValueError):
                raise DataError(
                    f'{where}: {name} must be a list of {{"word": "…", "start": 0.1, "end": 0.4}} in '
                    f"seconds; number {number} is not"
                ) from None
            if not 0 <= start <= end < float("inf"):
                raise DataError(f"{where}: {name}: word {number} lasts from {start:g} s to {end:g} s")
            found.append({"word": word, "start": start, "end": end})
        return found

    def fit(self, values: Iterable[Any]) -> Self:
        return self

    def parse(self, cell: Any, where: str) -> Any:
        return cell

    def encode(self, values: Sequence[Any]) -> list[Coded]:
        return [Coded({}) for _ in values]

    def save(self, folder: Path) -> None:
        return None

    def load(self, folder: Path) -> Self:
        return self
