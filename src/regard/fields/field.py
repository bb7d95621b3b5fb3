"""A field: one column of somebody's data."""

from typing import Any, ClassVar, Protocol


class Field(Protocol):
    """A frozen value; one file of this package = one kind of data."""

    kind: ClassVar[str]
    synonyms: ClassVar[tuple[str, ...]]
    """Names that columns with such data usually have."""

    @property
    def optional(self) -> bool:
        """Whether a file may have no such column."""

    def clean(self, cell: object, where: str, name: str) -> Any:
        """The cell as a row keeps it, which JSON can hold; DataError with `where` and the column's name."""
