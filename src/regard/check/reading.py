"""Read every split to its end, whatever is wrong with it, and keep count of the faults."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from regard.check.finding import SHOWN, Finding, Place
from regard.data.sample import sampled
from regard.data.splits import HoldsOutTest
from regard.errors import DataError
from regard.files.lines import expand, resolve
from regard.files.row import Row
from regard.recipe import Recipe
from regard.tasks import task_rows

_VALUES = re.compile(r"""(?<=: )question [^:]*|'[^']*'|"[^"]*"|0x[0-9a-f]{2}|[\d,]+""")
"""Parts that may differ between two faults of one sort."""
_PLACE = re.compile(r"^(\S.*?:(?:\d+| question [^:]*)): ")
MAX_SORTS = 100
LOOKED_AT = 1_000_000
"""Rows of a split at most, so that data larger than memory can be looked at too."""


@dataclass
class Faults:
    """Faults of records, kept by sort with their first places: a wrong encoding can make millions."""

    first: dict[str, str] = field(default_factory=dict)
    places: dict[str, list[str]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def note(self, fault: DataError) -> None:
        message = str(fault)
        sort = _VALUES.sub("", message)
        if sort not in self.first and len(self.first) == MAX_SORTS:
            sort = next(reversed(self.first))
        self.first.setdefault(sort, message)
        self.counts[sort] = self.counts.get(sort, 0) + 1
        place = _PLACE.match(message)
        if place and len(self.places.setdefault(sort, [])) < SHOWN:
            self.places[sort].append(place[1])

    def findings(self) -> list[Finding]:
        return [
            Finding("error", "unreadable", self._told(sort), self.counts[sort], self._places(sort))
            for sort in self.first
        ]

    def _told(self, sort: str) -> str:
        others = self.counts[sort] - 1
        return self.first[sort] + (f" ({others:,} more like it)" if others else "")

    def _places(self, sort: str) -> tuple[Place, ...]:
        """Places of faults, if there are more than the one that the sentence names."""
        places = self.places.get(sort, [])
        return tuple(map(Place, places)) if len(places) > 1 else ()


def read_all(recipe: Recipe, base: Path) -> tuple[dict[str, list[Row]], dict[str, float], list[Finding]]:
    """The usable rows of every split, LOOKED_AT at most; which share of all they are; what is wrong."""
    faults = Faults()
    rows: dict[str, list[Row]] = {}
    shares: dict[str, float] = {}
    notes: list[Finding] = []
    for split in ("train", "valid", "test"):
        files: tuple[str, ...] | None = getattr(recipe.data, split)
        if files is None:
            continue
        rows[split], total = _read(recipe, split, files, base, faults)
        shares[split] = len(rows[split]) / total if total else 1.0
        if shares[split] < 1:
            drawn = f"of {total:,} rows {len(rows[split]):,} were drawn at random; counts are of those"
            notes.append(Finding("note", "sampled", f"{split}: {drawn}"))
    if "valid" not in rows:
        hold_out, held_out, whole = recipe.hold_out, list[Row](), rows["train"]
        border = hold_out.border(whole)
        rows["train"] = list(hold_out.split(border, whole, held_out))
        rows["valid"] = held_out
        shares["valid"] = 1.0
        if "test" not in rows and isinstance(hold_out, HoldsOutTest):
            rows["test"], shares["test"] = list(hold_out.test(border, whole)), 1.0
    return rows, shares, faults.findings() + notes


def _read(
    recipe: Recipe, split: str, files: tuple[str, ...], base: Path, faults: Faults
) -> tuple[list[Row], int]:
    """Usable rows, and how many there are."""
    missing = 0
    for file in files:
        try:
            for path in expand(file, base):
                resolve(path, base)
        except DataError as fault:
            faults.note(fault)
            missing += 1
    if missing:
        return [], 0
    total = 0

    def found() -> Iterator[Row]:
        nonlocal total
        try:
            for row in task_rows(
                recipe.task,
                files,
                recipe.columns(),
                encoding=recipe.data.encoding,
                base=base,
                refuse=faults.note,
                learnt=split == "train",
            ):
                total += 1
                yield row
        except DataError as fault:
            faults.note(fault)

    return sampled(found(), LOOKED_AT), total
