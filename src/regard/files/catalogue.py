"""Titles of items: a second file with a title, and perhaps a category, for each of them."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from regard.files.columns import Column
from regard.files.read import OptionalText, read_rows

DESCRIBED = ("item", "title", "category")
"""The roles of the columns, and their order where they have no names."""


class Described(NamedTuple):
    title: str
    category: str = ""


def catalogue(
    path: str,
    columns: Mapping[str, Column | None] | None = None,
    *,
    encoding: str = "utf-8",
    base: Path | None = None,
) -> dict[str, Described]:
    """Item → its title and category; of an item that comes twice the first."""
    roles = {role: (columns or {}).get(role) for role in DESCRIBED}
    rows = read_rows([path], roles, fields={"category": OptionalText()}, encoding=encoding, base=base)
    titles: dict[str, Described] = {}
    for row in rows:
        title, category = row.cells["title"], row.cells.get("category", "")
        titles.setdefault(row.cells["item"], Described(title, category))
    return titles
