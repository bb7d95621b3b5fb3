"""Split a text into sentences: one a line, or at the punctuation that ends them.

`.`, `!` and `?` end a sentence before a space or at the end of the text, `。`, `！` and `？` anywhere;
closing quotes and brackets go with them. So "Dr. Who" is cut in two, which costs little where sentences are
only read one after another. Long runs of punctuation take linear time.
"""

import re
from typing import Literal

Sentences = Literal["lines", "marks"]

_END = re.compile(r"(?<![.!?])[.!?]++[\"'”’)\]]*+(?=\s|\Z)|[。！？]++[\"'”’」』）】]*+")


def sentences(text: str, by: Sentences) -> list[str]:
    """The sentences in order, stripped; blank ones are left out."""
    if by == "lines":
        parts = text.splitlines()
    else:
        ends = [match.end() for match in _END.finditer(text)]
        parts = [text[begin:end] for begin, end in zip([0, *ends], [*ends, len(text)], strict=True)]
    return [sentence for sentence in map(str.strip, parts) if sentence]
