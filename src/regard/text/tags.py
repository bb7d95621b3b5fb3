"""Tags that mark spans: BIO, BIOES and BMES, with a kind of span (`B-PER`) or without (`B`).

`B` begins a span, `I` or `M` is inside, `E` ends it, `S` is a span of one word, `O` is outside. Where a
scheme has end tags, every span needs one; in BIO a span ends where it does not go on. Other tags (parts of
speech) mark no spans.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

SCHEMES = {"BIO": frozenset("BIO"), "BIOES": frozenset("BIOES"), "BMES": frozenset("BMESO")}
INSIDE = frozenset("IM")


class Span(NamedTuple):
    """Words from `start` up to `end`."""

    start: int
    end: int
    kind: str


def scheme(names: Iterable[str]) -> str | None:
    """The first scheme that has all these tags; None if no tag begins a span."""
    tags = set(names)
    used = {_letter(name) for name in tags}
    if "B" not in used and not any(name.startswith("S-") for name in tags):
        return None
    return next((scheme for scheme, letters in SCHEMES.items() if used <= letters), None)


def mixed_schemes(names: Iterable[str]) -> list[str]:
    """Tags that keep span tags (`B-PER`) from being of one scheme; those of the best fitting scheme."""
    tags = sorted(set(names))
    if scheme(tags) is not None or not any(name.startswith("B-") for name in tags):
        return []
    left = ([name for name in tags if _letter(name) not in letters] for letters in SCHEMES.values())
    return min(left, key=len)


def never_begun(names: Iterable[str]) -> list[str]:
    """Tags inside spans (`I-PER`) where no tag begins one, as in IOB1, which has B only between
    neighbours.
    """
    tags = sorted(set(names))
    if any(_letter(name) not in {"O", "E", *INSIDE} for name in tags):
        return []
    return [name for name in tags if _kind(name) and _letter(name) != "O"]


def may_follow(scheme: str, before: str | None, after: str | None) -> bool:
    """True if `after` may follow `before`; None is the begin or the end of the sentence."""
    last, next_ = _letter(before or "O"), _letter(after or "O")
    goes_on = next_ in INSIDE or next_ == "E"
    open_ = last == "B" or last in INSIDE
    if goes_on:
        return open_ and _kind(before or "") == _kind(after or "")
    return scheme == "BIO" or not open_


def first_fault(scheme: str, tags: Sequence[str]) -> int | None:
    """Place of the first tag that the scheme forbids; the length if the sequence may not end there."""
    pairs = zip((None, *tags), (*tags, None), strict=True)
    return next((place for place, pair in enumerate(pairs) if not may_follow(scheme, *pair)), None)


def spans(tags: Sequence[str]) -> Iterator[Span]:
    """The spans that tags mark. One that no tag begins starts at its first tag, as in conlleval."""
    start: int | None = None
    for place, tag in enumerate((*tags, "O")):
        before = tags[place - 1] if place else "O"
        goes_on = (
            (_letter(tag) in INSIDE or _letter(tag) == "E")
            and (_letter(before) == "B" or _letter(before) in INSIDE)
            and _kind(before) == _kind(tag)
        )
        if start is not None and not goes_on:
            yield Span(start, place, _kind(before))
            start = None
        if start is None and _letter(tag) != "O":
            start = place


def completed(names: Iterable[str]) -> set[str]:
    """These tags and all that `repaired` may put in their place; IOB1 becomes BIO."""
    tags = set(names)
    target = scheme(tags)
    if target is None and never_begun(tags) and {_letter(name) for name in tags} <= SCHEMES["BIO"]:
        target = "BIO"
    if target is None:
        return tags
    kinds = {_kind(name) for name in tags if _letter(name) != "O"}
    return tags | {_named(letter, kind) for letter in SCHEMES[target] - {"O"} for kind in kinds}


def repaired(scheme: str, tags: Sequence[str]) -> list[str]:
    """The same spans (see `spans`), tagged as the scheme requires."""
    written = ["O"] * len(tags)
    for start, end, kind in spans(tags):
        letters = ["B", *("M" if scheme == "BMES" else "I") * (end - start - 1)]
        if scheme != "BIO":
            letters = [*letters[:-1], "E"] if end - start > 1 else ["S"]
        written[start:end] = [_named(letter, kind) for letter in letters]
    return written


def _named(letter: str, kind: str) -> str:
    return f"{letter}-{kind}" if kind else letter


def _letter(tag: str) -> str:
    """The letter of a span tag; other tags are returned whole."""
    letter, dash, _ = tag.partition("-")
    return letter if dash or len(tag) == 1 else tag


def _kind(tag: str) -> str:
    return tag.partition("-")[2]
