"""Plain text → documents, in parts that fit into memory however large a file is.

A document may be a line, what stands between blank lines, or a whole file. A part that ends with a line end
is continued by the next; whoever joins the parts of a document has its text again, character by character,
but for blank lines at its end and very many in a row.
"""

from collections.abc import Iterable, Iterator
from typing import Literal

By = Literal["lines", "paragraphs", "files"]

PART = 4096
"""Characters after which a document is continued in another part, at the next line end."""
MOST_BLANK = 10_000
"""Blank lines in a row that are kept."""


def goes_on(text: str) -> bool:
    return text.endswith("\n")


def documents(lines: Iterable[str], by: By) -> Iterator[tuple[int, str]]:
    """The number of the first line, and the text of each part."""
    part: list[str] = []
    held: list[str] = []  # blank lines, which are of a file only if something follows
    first, size = 1, 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            if by == "files":
                held += [line] * (len(held) < MOST_BLANK)
            elif part:
                yield first, "\n".join(part)
                part, size = [], 0
            continue
        if part and (size > PART or by == "lines"):
            yield first, "\n".join(part) + "\n" * (by != "lines")
            part, size = [], 0
        if not part:
            first = number - len(held)
        part += [*held, line]
        size += sum(len(each) + 1 for each in (*held, line))
        held = []
    if part:
        yield first, "\n".join(part)
