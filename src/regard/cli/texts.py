"""Texts in files, read as the run's own data is laid out."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.data.source import Column


def layout(run: Path, file: str, role: str, encoding: str | None) -> "tuple[dict[str, Column | None], str]":
    """The texts' column and the encoding, as in the run's recipe where that speaks of such files."""
    from regard.data.source import file_format
    from regard.recipe import Recipe

    path = run / "recipe.json"
    if not path.is_file():
        return {role: None}, encoding or "utf-8"
    data = Recipe.read(path).data
    alike = file_format(file) == file_format(data.train[0])
    return {role: data.columns.get(role) if alike else None}, encoding or data.encoding


def file_texts(file: str, column: "dict[str, Column | None]", encoding: str) -> Iterator[str]:
    from regard.data.lines import lines
    from regard.data.source import file_format, read_rows

    if file_format(file) == "text":
        return lines(file, encoding=encoding)
    (role,) = column
    return (row.fields[role] for row in read_rows([file], column, encoding=encoding))


def file_settings(file: str) -> dict[str, str]:
    """What is known of a file's texts: those of CoNLL are cut into words already."""
    from regard.data.source import file_format

    return {"split": "spaces"} if file_format(file) == "conll" else {}
