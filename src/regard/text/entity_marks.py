"""A sentence with two marked entities: `The <e1>author</e1> uses a <e2>disassembler</e2>.`

White space just inside the marks is dropped. Either entity may come first.
"""

import re
from typing import NamedTuple

from regard.errors import DataError
from regard.text.unicode import is_blank

MARKS = ("<e1>", "</e1>", "<e2>", "</e2>")
"""Begin and end of the first entity, begin and end of the second."""
_MARK = re.compile("|".join(MARKS))

Place = tuple[int, int]
"""Start and end of a range of characters."""


class Marked(NamedTuple):
    text: str
    """The sentence without the marks."""
    first: Place
    second: Place


def has_marks(text: str) -> bool:
    return _MARK.search(text) is not None


def read_marked(text: str, where: str) -> Marked:
    """Read a marked sentence; DataError unless both entities are marked once and are not empty."""
    marks: list[str] = _MARK.findall(text)
    for name in MARKS:
        if (n := marks.count(name)) != 1:
            raise _refused(where, f"{name} {f'occurs {n} times' if n else 'is missing'}")
    if marks not in ([*MARKS], [*MARKS[2:], *MARKS[:2]]):
        raise _refused(where, f"the marks are in the order {' '.join(marks)}")
    parts = _MARK.split(text)
    plain, places = parts[0], []
    for entity, after in zip(parts[1::2], parts[2::2], strict=True):
        inner = entity.strip()
        if is_blank(inner):
            raise _refused(where, "an entity is empty")
        places.append((len(plain), len(plain) + len(inner)))
        plain += inner + after
    first, second = places if marks[0] == MARKS[0] else places[::-1]
    return Marked(plain, first, second)


def _refused(where: str, why: str) -> DataError:
    return DataError(f"{where}: {why}; mark two entities once each, as <e1>…</e1> and <e2>…</e2>")


def mark(text: str, first: Place, second: Place) -> str:
    """The text with the marks around two places that do not overlap."""
    assert first[1] <= second[0] or second[1] <= first[0]
    out, done = "", 0
    for place, name in sorted(zip((*first, *second), MARKS, strict=True), key=_closing_first):
        out, done = out + text[done:place] + name, place
    return out + text[done:]


def _closing_first(mark: tuple[int, str]) -> tuple[int, bool]:
    """Sort key: where one entity ends as the other begins, the end mark comes first."""
    place, name = mark
    return place, not name.startswith("</")
