"""A field: one column of somebody's data. An input: what one encoder reads, a field or several joined.

Both are frozen values without torch. A kind of data that is read by itself may be both at once.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self

from numpy.typing import NDArray

from regard.config import Config
from regard.fields.axis import Axis

Arrays = Mapping[str, NDArray[Any]]
"""By name: the first axis may differ from example to example, type and trailing shape may not."""
Width = Mapping[str, Any]
"""What models are told about a field, as JSON: {"vocab": 8000}, {"classes": 3}, {"channels": 3}."""


class Coded(NamedTuple):
    arrays: Arrays
    notes: Mapping[str, Any] = {}
    """What is known of an example and not cached for training, such as whether its text was cut."""


class FieldSettings(Config):
    """The settings of a field in a recipe: `[fields.NAME]`."""

    kind: str


class Field(Protocol):
    """One column: how a cell is cleaned, made a value, fitted and encoded, unframed and uncut."""

    kind: ClassVar[str]
    synonyms: ClassVar[tuple[str, ...]]
    """Names that columns with such data usually have."""
    settings: ClassVar[type[FieldSettings]]
    reads: ClassVar[str]
    """What an encoder must read to read it: tokens, pixels, …; empty for what is only answered."""

    @classmethod
    def resembles(cls, cells: Sequence[Any]) -> float:
        """From 0 to 1, how much the cells of a column look like such data; text and labels are known by the
        tasks that read them.
        """

    @classmethod
    def suggest(cls, cells: Sequence[Any]) -> tuple[dict[str, Any], int]:
        """Settings for a first recipe, and how many units an example of such cells has."""

    @classmethod
    def of(cls, settings: Any) -> Self:
        """An unfitted field with these settings."""

    @property
    def sample(self) -> Any:
        """A cell that every such field can read: what a model is tried with before it is served."""

    @property
    def optional(self) -> bool:
        """Whether a file may have no such column."""

    @property
    def width(self) -> Width: ...

    def clean(self, cell: object, where: str, name: str, folder: Path | None = None) -> Any:
        """The cell as a row keeps it, which JSON can hold; DataError with `where` and the column's name.

        `folder` is that of the file the cell was read from, which paths start from. Without one it was asked
        for by somebody, perhaps far away: a string is then never the path of a file.
        """

    def fit(self, values: Iterable[Any]) -> Self:
        """Learns what the training data decides: a vocabulary, labels, a mean."""

    def parse(self, cell: Any, where: str) -> Any:
        """The value of a cleaned cell: here files are opened."""

    def encode(self, values: Sequence[Any]) -> list[Coded]: ...

    def save(self, folder: Path) -> None: ...

    def load(self, folder: Path) -> Self:
        """The fitted field, as it was saved."""


class Input(Protocol):
    """What one encoder reads. Owns marks, segments, limits, truncation, size, padding and the axis."""

    @property
    def name(self) -> str:
        """What its axis is called."""

    @property
    def width(self) -> Width: ...

    def assemble(self, parts: Sequence[Coded]) -> Coded:
        """One example of the encoded values of its fields."""

    def is_empty(self, arrays: Arrays) -> bool:
        """Whether there is nothing to read in one of its fields."""

    def size(self, arrays: Arrays) -> int:
        """What an example takes up in a batch: tokens, patches, frames."""

    def collate(self, many: Sequence[Arrays]) -> Arrays:
        """Padded arrays of a batch, with `lengths`."""

    def without(
        self, batch: Arrays, axis: Axis, units: Sequence[int], how: Literal["remove", "blank"]
    ) -> Arrays:
        """A batch of one example, once for each of these units, without that unit."""

    def axis(self, values: Sequence[Any], coded: Coded) -> Axis:
        """The units that an encoder reads."""
