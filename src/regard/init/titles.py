"""Which of several files says what the items of the others are called."""

from collections.abc import Callable, Mapping

from regard.fields.text import Text
from regard.files.columns import Column, named_like
from regard.init.columns import LONGEST_ID, Table
from regard.init.guess import Titles

SHARED = 0.5
"""Share of the sampled values of a column that have titles, if they are items."""

FEW = 10
"""Different values that a column of items has at least: ratings may be equal to ids."""


def titles_among(tables: Mapping[str, Table], cells_of: Callable[[str], set[str]]) -> Titles | None:
    """The file with an item and its title in each row, beside files of who chose which item; `cells_of` gives
    all cells of a file, of which a table has only a sample.
    """
    for file, table in tables.items():
        others = {name: other for name, other in tables.items() if name != file}
        item, title = _item_and_title(table)
        if named_like("user", table.names) is not None or title is None:
            continue
        ids = list(map(str, table.cells[item]))
        if not others or max(map(len, ids)) > LONGEST_ID or len(set(ids)) < len(ids):
            continue
        titled = cells_of(file)
        shares = {name: _share(titled, other) for name, other in others.items()}
        best = max(shares, key=lambda name: shares[name])
        if shares[best] >= SHARED:
            by_name = {"item": named_like("item", table.names), "title": named_like("title", table.names)}
            chosen = {"item": item, "title": title}
            columns = {role: column for role, column in chosen.items() if by_name[role] != column}
            if columns == {"item": 1, "title": 2}:
                columns = {}
            why = f"it has {shares[best]:.0%} of the items of {best}"
            return Titles(file, columns, f"{file}: what items are called; {why}.")
    return None


def _item_and_title(table: Table) -> tuple[Column, Column | None]:
    names = list(table.cells)
    item = named_like("item", table.names) or named_like("id", table.names) or names[0]
    rest = [name for name in names if name != item]
    texts = (name for name in rest if name in table.texts and Text.resembles(table.texts[name]) > 0)
    return item, named_like("title", [name for name in table.names if name != item]) or next(texts, None)


def _share(titled: set[str], other: Table) -> float:
    """Share of the sampled values with titles, in the column of recurring values that has most."""
    columns = (list(map(str, cells)) for cells in other.cells.values())
    several = (set(cells) for cells in columns if FEW < len(set(cells)) < len(cells))
    return max((len(values & titled) / len(values) for values in several), default=0.0)
