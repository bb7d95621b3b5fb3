"""What `regard init` has found out about somebody's files."""

from dataclasses import dataclass, field

from regard.files.columns import Column
from regard.files.formats import file_format
from regard.files.row import Row


@dataclass(frozen=True)
class Guess:
    """What `regard init` writes into a recipe, and why."""

    task: str
    train: tuple[str, ...]
    valid: tuple[str, ...] | None
    test: tuple[str, ...] | None
    columns: dict[str, Column | None]
    n_rows: int
    """Rows of the training files."""
    sample: tuple[Row, ...]
    """Of the training rows, evenly spaced."""
    lengths: dict[str, tuple[int, int]]
    """Role → mean and 95th percentile, in characters."""
    reasons: tuple[str, ...]
    encoding: str = "utf-8"
    """Of all files."""
    fields: dict[str, dict[str, object]] = field(default_factory=dict)
    """Settings of inputs that are no texts, by role."""
    size: int = 0
    """Units that an example of such an input has."""

    @property
    def counted(self) -> str:
        """What a user calls the rows."""
        return "lines" if file_format(self.train[0]) == "text" else "rows"

    @property
    def n_characters(self) -> int:
        """Of all texts, about; a line end counts for each."""
        return self.n_rows * (self.lengths["text"][0] + 1)
