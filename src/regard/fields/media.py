"""A field whose cells are files: paths in data files and on command lines, bytes over HTTP.

A cleaned cell is a path (a string) or the bytes of an upload; `parse` decodes it, after `content` has bounded
its bytes. Whatever else may be large (pixels, seconds, channels, frames) the field bounds itself, by what the
head of the file says, before it is decoded.
"""

from base64 import b64decode
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, WithJsonSchema

from regard.errors import DataError
from regard.fields.field import Field, Limits
from regard.files.content import File, content
from regard.files.formats import kind_of


class Media(Field):
    """Subclassed explicitly by fields of pictures, sounds and films."""

    widget: ClassVar[str] = "file"
    is_file: ClassVar[bool] = True
    most_bytes: ClassVar[int] = 100_000_000
    """Bytes of one file."""

    @classmethod
    def resembles(cls, cells: Sequence[Any]) -> float:
        """The share of cells that end like such a file."""
        paths = [PurePath(cell) for cell in cells if isinstance(cell, str) and "\n" not in cell]
        return sum(path.suffix.lower() in cls.suffixes for path in paths) / max(1, len(cells))

    def clean(self, cell: object, where: str, name: str, folder: Path | None = None) -> str | bytes:
        if isinstance(cell, bytes):
            return cell
        if isinstance(cell, Path):
            return str(cell)
        if not isinstance(cell, str):
            raise DataError(f"{where}: {name} is {kind_of(cell)}; it must be the path of a file")
        if folder is None:
            raise DataError(f"{where}: {name} must be a file (its bytes, or a pathlib.Path), not a string")
        if not cell or "\0" in cell:
            raise DataError(f"{where}: the path of the {name} is empty; give every row a file")
        return str(folder / cell)

    def content(self, cell: str | bytes, where: str) -> bytes:
        """The bytes of a cleaned cell, as many as a file may have."""
        if isinstance(cell, bytes):
            return content(cell, where, self.most_bytes)
        try:
            return content(Path(cell), where, self.most_bytes)
        except DataError as fault:
            raise DataError(f"{where}: {fault}") from None

    def typed(self, text: str, name: str) -> Path:
        return Path(text)

    def receive(self, file: File, name: str) -> File:
        return file

    def request(self, limits: Limits) -> Any:
        """A file in base64."""
        most = min(limits.file_bytes, self.most_bytes)
        schema = {"type": "string", "contentEncoding": "base64", "maxLength": -(-most // 3) * 4}
        return Annotated[bytes, BeforeValidator(lambda text: _decoded(text, most)), WithJsonSchema(schema)]


def _decoded(text: object, most: int) -> bytes:
    if not isinstance(text, str):
        raise ValueError("should be a file in base64")
    if len(text) > -(-most // 3) * 4:
        raise ValueError(f"the file has more than {most:,} bytes; send a smaller one")
    try:
        decoded = b64decode(text, validate=True)
    except ValueError:
        raise ValueError("is not base64") from None
    return decoded
