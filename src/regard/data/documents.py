"""Plain text → documents, in parts that fit into memory however large a file is.

A document may be a line, what stands between blank lines, or a whole file. A part that ends with a line end
is continued by the next; whoever joins the parts of a document has its text again, character by character.
"""

from collections.abc import Iterable, Iterator
from typing import Literal

By = Literal["lines", "paragraphs", "files"]

PART = 4096
"""Characters after which a document is continued in another part, at the next line end."""


def goes_on(text: str) -> bool:
    return text.endswith("\n")


def documents(lines: Iterable[str], by: By) -> Iterator[tuple[int, str]]:
    """The number of the first line, and the text of each part."""
    part: list[str] = []
    first, size = 1, 0
    for number, line in enumerate(lines, 1):
        blank = not line.strip()
        if part and (size > PART or (blank and by == "paragraphs") or by == "lines"):
            yield first, "\n".join(part) + "\n" * (by == "files" or (by == "paragraphs" and not blank))
            part, size = [], 0
        if not part:
            first = number
        if not blank or by == "files":
            part.append(line)
            size += len(line) + 1
    if part:
        yield first, "\n".join(part)
