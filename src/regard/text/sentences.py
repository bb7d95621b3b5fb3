"""A text → its sentences: a line each, or by the marks that end them.

Marks are taken as they come: `.`, `!` and `?` end a sentence before a space or at the end of the text, `。`,
`！` and `？` wherever they stand; closing quotes and brackets go with them. So "Dr. Who" is cut in two, which
costs little where sentences are only read one after another. Long runs of marks take linear time.
"""

import re
from typing import Literal

Sentences = Literal["lines", "marks"]

_END = re.compile(r"(?<![.!?])[.!?]++[\"'”’)\]]*+(?=\s|\Z)|[。！？]++[\"'”’」』）】]*+")


def sentences(text: str, by: Sentences) -> list[str]:
    """In their order, without the white space around them; blank ones are none."""
    if by == "lines":
        found = text.splitlines()
    else:
        ends = [match.end() for match in _END.finditer(text)]
        found = [text[begin:end] for begin, end in zip([0, *ends], [*ends, len(text)], strict=True)]
    return [sentence for sentence in map(str.strip, found) if sentence]
