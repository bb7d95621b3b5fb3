"""Tags that mark spans: BIO, BIOES and BMES, with a kind of span (`B-PER`) or without (`B`).

`B` begins a span, `I` or `M` is inside, `E` ends it, `S` is a span of one, `O` is outside. Where a scheme
marks ends, a span must be ended; in BIO it ends where it does not go on. Other tags (parts of speech) mark no
spans.
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
    """The first that has all these tags; None if they mark no spans, as none of them begins one."""
    known = set(names)
    places = {_place(name) for name in known}
    if "B" not in places and not any(name.startswith("S-") for name in known):
        return None
    return next((known for known, letters in SCHEMES.items() if places <= letters), None)


def strangers(names: Iterable[str]) -> list[str]:
    """Of tags that would mark spans (`B-PER`), those that keep them from being of one scheme."""
    known = sorted(set(names))
    if scheme(known) is not None or not any(name.startswith("B-") for name in known):
        return []
    left = ([name for name in known if _place(name) not in letters] for letters in SCHEMES.values())
    return min(left, key=len)


def unbegun(names: Iterable[str]) -> list[str]:
    """Tags inside of spans (`I-PER`), where no tag begins one: as in IOB1, which marks it only if it must."""
    known = sorted(set(names))
    if any(_place(name) not in {"O", "E", *INSIDE} for name in known):
        return []
    return [name for name in known if _kind(name) and _place(name) != "O"]


def may_follow(scheme: str, before: str | None, after: str | None) -> bool:
    """Whether one tag may stand after another; None stands before the first and after the last."""
    last, next_ = _place(before or "O"), _place(after or "O")
    goes_on = next_ in INSIDE or next_ == "E"
    open_ = last == "B" or last in INSIDE
    if goes_on:
        return open_ and _kind(before or "") == _kind(after or "")
    return scheme == "BIO" or not open_


def first_fault(scheme: str, tags: Sequence[str]) -> int | None:
    """Where a sequence does what the scheme forbids; its length if it must not end there."""
    pairs = zip((None, *tags), (*tags, None), strict=True)
    return next((place for place, pair in enumerate(pairs) if not may_follow(scheme, *pair)), None)


def spans(tags: Sequence[str]) -> Iterator[Span]:
    """What the tags mark. A span that nothing begins starts where it is first seen, as conlleval has it."""
    start: int | None = None
    for place, tag in enumerate((*tags, "O")):
        before = tags[place - 1] if place else "O"
        goes_on = (
            (_place(tag) in INSIDE or _place(tag) == "E")
            and (_place(before) == "B" or _place(before) in INSIDE)
            and _kind(before) == _kind(tag)
        )
        if start is not None and not goes_on:
            yield Span(start, place, _kind(before))
            start = None
        if start is None and _place(tag) != "O":
            start = place


def completed(names: Iterable[str]) -> set[str]:
    """These tags, and those that `mended` may put in their place; what begins no span (IOB1) becomes BIO."""
    known = set(names)
    found = scheme(known)
    if found is None and unbegun(known) and {_place(name) for name in known} <= SCHEMES["BIO"]:
        found = "BIO"
    if found is None:
        return known
    kinds = {_kind(name) for name in known if _place(name) != "O"}
    return known | {_named(letter, kind) for letter in SCHEMES[found] - {"O"} for kind in kinds}


def mended(scheme: str, tags: Sequence[str]) -> list[str]:
    """The same spans (see `spans`), marked as the scheme has it."""
    found = ["O"] * len(tags)
    for start, end, kind in spans(tags):
        letters = ["B", *("M" if scheme == "BMES" else "I") * (end - start - 1)]
        if scheme != "BIO":
            letters = [*letters[:-1], "E"] if end - start > 1 else ["S"]
        found[start:end] = [_named(letter, kind) for letter in letters]
    return found


def _named(letter: str, kind: str) -> str:
    return f"{letter}-{kind}" if kind else letter


def _place(tag: str) -> str:
    """The letter of a tag of a scheme; what is none stays whole."""
    letter, dash, _ = tag.partition("-")
    return letter if dash or len(tag) == 1 else tag


def _kind(tag: str) -> str:
    return tag.partition("-")[2]
