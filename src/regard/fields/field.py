"""A field: one column of somebody's data. An input: what one encoder reads, a field or several joined.

Both are frozen values without torch. A kind of data that is read by itself may be both at once.

A cell comes from a data file (with the folder of the file), from a command line (`typed`, `receive`), or
over HTTP (`request`, `receive`; without a folder). From wherever it comes, `clean` judges it and `parse`
makes it a value.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from regard.check.finding import SHOWN, Finding, Place
from regard.check.rows import Splits
from regard.config import Config
from regard.errors import DataError
from regard.fields.axis import Axis
from regard.files.content import File, content

Arrays = Mapping[str, NDArray[Any]]
"""Arrays by name: the first axis may differ between examples, type and trailing shape may not."""
Width = Mapping[str, Any]
"""Facts that models are built from, as JSON: {"vocab": 8000}, {"classes": 3}, {"channels": 3}."""


Occlusion = Literal["remove", "shorten", "blank"]
"""Way to leave out a unit: removed, where marks stay and rows keep their length; removed whatever it is, so
that rows are a unit shorter; or blanked in its place.
"""


class Coded(NamedTuple):
    arrays: Arrays
    notes: Mapping[str, Any] = {}
    """Facts about an example that are not cached for training, such as whether its text was cut."""


class FieldSettings(Config):
    """The settings of a field in a recipe: `[fields.NAME]`."""

    kind: str


class Suggestion(NamedTuple):
    """Settings of a field for a first recipe, measured on a sample of its cells."""

    settings: Mapping[str, Any] = {}
    """Settings that differ from the default, or that the data decide."""
    size: int = 1
    """Number of units of an example of such cells: tokens, patches, frames."""
    reasons: Mapping[str, str] = {}
    """Reason for each setting, in words with numbers: the comment in the recipe. Without one it is the
    description of the setting.
    """


class Limits(Protocol):
    """Limits of a request."""

    @property
    def characters(self) -> int:
        """Characters of a text, or of a value written as JSON."""

    @property
    def file_bytes(self) -> int:
        """Bytes of a file."""


class Field(Protocol):
    """One column: how a cell is cleaned, made a value, fitted and encoded, unframed and uncut.

    A field subclasses this explicitly; what has a body here is right for a value that JSON can hold.
    """

    kind: ClassVar[str]
    settings: ClassVar[type[FieldSettings]]
    reads: ClassVar[str]
    """Word that an encoder's `reads` must equal: tokens, pixels, …; empty for what is only answered."""
    suffixes: ClassVar[frozenset[str]] = frozenset()
    """Suffixes of files that cells may be, in lower case with their dots; none where they are no files."""
    widget: ClassVar[str] = "json"
    """The widget that a page asks for it with: text, json, image, file or series; told by `/v1/models`."""
    example: ClassVar[str] = "@input.json"
    """Example of it on a command line; empty for a text."""
    is_file: ClassVar[bool] = False
    """True if a value in a request is a file, in base64 or uploaded."""
    spread: ClassVar[bool] = False
    """True if a table without a column for it has it in all columns that no other role takes."""
    accepts: ClassVar[str] = ""
    """Which files the page offers to choose, as HTML writes it (`image/*`); none where this is empty."""

    @classmethod
    def resembles(cls, cells: Sequence[Any]) -> float:
        """Rate from 0 to 1 how much a sample of a column looks like such data, as it is in the file: strings
        (numbers too), or lists and objects of JSON. A path is known by its suffix.
        """
        return 0.0

    @classmethod
    def suggest(cls, cells: Sequence[Any]) -> Suggestion:
        """Propose settings for a first recipe from a sample of cleaned cells; their paths lead to files."""
        return Suggestion()

    @classmethod
    def of(cls, settings: Any) -> Self:
        """An unfitted field with these settings."""

    @property
    def sample(self) -> Any:
        """A cell that every such field can read: what a model is tried with before it is served."""

    @property
    def optional(self) -> bool:
        """True if a file may have no such column."""

    @property
    def width(self) -> Width: ...

    def clean(self, cell: object, where: str, name: str, folder: Path | None = None) -> Any:
        """The cell as a row keeps it, which JSON can hold; DataError with `where` and the column's name.

        `folder` is that of the file the cell was read from, which paths start from. Without one it was asked
        for by somebody, perhaps far away: a string is then never the path of a file, but a `Path` is, and the
        bytes of a file are as good.
        """

    def gathered(self, cell: object, record: Mapping[str, object]) -> object:
        """The cell as it stands in a record of a file, with what other columns say of it."""
        return cell

    def fit(self, values: Iterable[Any]) -> Self:
        """Learns what the training data decides: a vocabulary, labels, a mean."""

    def parse(self, cell: Any, where: str) -> Any:
        """The value of a cleaned cell: here files are opened."""

    def encode(self, values: Sequence[Any]) -> list[Coded]: ...

    def save(self, folder: Path) -> None: ...

    def load(self, folder: Path) -> Self:
        """The fitted field, as it was saved."""

    def typed(self, text: str, name: str) -> Any:
        """The cell that stands on a command line as `NAME=text`, yet to be cleaned; JSON as a rule."""
        return from_json(text, name)

    def receive(self, file: File, name: str) -> Any:
        """The cell that a whole file is, yet to be cleaned: an upload, or `NAME=@FILE` on a command line."""
        return from_json(content(file, name), name)

    def request(self, limits: Limits) -> Any:
        """The type of its value in the JSON of a request, as pydantic takes it: bounded, and published."""
        return JsonValue

    def cost(self, cell: Any) -> int:
        """Units (`Input.size`) that such a cell becomes at most: the price of a request, told before it is
        cleaned, decoded or copied, by a field that may not have been fitted.
        """
        return len(cell if isinstance(cell, str | bytes) else json.dumps(cell))

    def check(self, role: str, splits: Splits) -> list[Finding]:
        """Findings of `regard check` in this column alone; a fitted field may have more."""
        return unreadable(self, role, splits)


class Input(Protocol):
    """The input of one encoder: owns marks, segments, limits, truncation, size, padding and the axis."""

    @property
    def name(self) -> str:
        """Name of its axis."""

    @property
    def width(self) -> Width: ...

    @property
    def most(self) -> int:
        """Units that one row of an encoder has at most, marks among them."""

    def assemble(self, parts: Sequence[Coded]) -> Coded:
        """One example of the encoded values of its fields."""

    def is_empty(self, arrays: Arrays) -> bool:
        """True if there is nothing to read in one of its fields."""

    def size(self, arrays: Arrays) -> int:
        """Units that an example takes up in a batch: tokens, patches, frames."""

    def collate(self, many: Sequence[Arrays]) -> Arrays:
        """Padded arrays of a batch, with `lengths`."""

    def without(self, batch: Arrays, axis: Axis, units: Sequence[int], how: Occlusion) -> Arrays:
        """A batch of one example, once for each of these units, without that unit."""

    def axis(self, values: Sequence[Any], coded: Coded) -> Axis:
        """The units that an encoder reads."""


@runtime_checkable
class Augmented(Protocol):
    """An input whose training examples may be others in every epoch."""

    @property
    def draws(self) -> bool:
        """True if its settings ask for that."""

    @property
    def mixup(self) -> float:
        """The α of Beta(α, α): how much of each of two examples is in one is drawn from it; 0 mixes none."""

    def draw(self, arrays: Arrays, rng: np.random.Generator) -> Arrays:
        """The example as it is this time, no larger than `Input.size` said; other arrays are kept."""

    def mix(self, arrays: Arrays, others: Arrays, share: float) -> Arrays:
        """An example with this share of the first and the rest of the second."""


def from_json(text: str | bytes, name: str) -> Any:
    """A value of JSON; DataError if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise DataError(f"{name}: not JSON ({fault}); give JSON, or a file of it as {name}=@FILE") from None


def unreadable(field: Field, role: str, splits: Splits) -> list[Finding]:
    """Errors about cells that the field cannot make a value of; all are tried once."""
    findings = []
    for split, rows in splits.items():
        faults = [(row.where, fault) for row in rows if (fault := _fault(field, row.cells[role], row.where))]
        if faults:
            n = f"{len(faults):,} row{'s' * (len(faults) > 1)}"
            message = f"{split}: {n} that cannot be read; the first: {faults[0][1]}"
            places = tuple(Place(where, fault) for where, fault in faults[:SHOWN])
            findings.append(Finding("error", "unreadable", message, len(faults), places))
    return findings


def _fault(field: Field, cell: Any, where: str) -> str | None:
    try:
        field.parse(cell, where)
    except DataError as fault:
        return str(fault)
    return None
