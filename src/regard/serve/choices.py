"""Searching the catalogue of a recommender, so that nobody has to know the names of its items."""

from collections.abc import Iterator, Sequence
from itertools import islice

from regard.tasks.task import Choice

MOST_SHOWN = 12


def searchable(choices: Sequence[Sequence[str]]) -> list[tuple[str, Choice]]:
    """Each choice after what it is searched by: its title and its name, in lower case."""
    return [
        (f"{title}\n{item}".casefold(), Choice(item, title, category)) for item, title, category in choices
    ]


def matches(choices: Sequence[tuple[str, Choice]], text: str) -> list[Choice]:
    """Choices that contain every word of a text, in their order; first those that begin with it."""
    words = text.casefold().split()

    def matching(*, first: bool) -> Iterator[Choice]:
        whole = " ".join(words)
        for known, choice in choices:
            if known.startswith(whole) == first and all(word in known for word in words):
                yield choice

    beginning = [*islice(matching(first=True), MOST_SHOWN)]
    return [*beginning, *islice(matching(first=False), MOST_SHOWN - len(beginning))]
