"""Schemes of tags: which there are, what they allow, what they mark."""

from itertools import product

import pytest

from regard.text.tags import (
    SCHEMES,
    Span,
    completed,
    first_fault,
    may_follow,
    mixed_schemes,
    never_begun,
    repaired,
    scheme,
    spans,
)

BIO = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
BIOES = ("O", *(f"{place}-{kind}" for place in "BIES" for kind in ("PER", "LOC")))


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (BIO, "BIO"),
        (("O", "B-PER"), "BIO"),
        (BIOES, "BIOES"),
        (("B", "M", "E", "S"), "BMES"),
        (("B-NAME", "M-NAME", "E-NAME", "O"), "BMES"),
        (("NOUN", "VERB", "X"), None),
        (("B-PER", "NOUN"), None),
        (("O",), None),
        (("O", "S-PER"), "BIOES"),
        (("O", "S"), None),
        (("O", "I-PER"), None),
    ],
)
def test_the_scheme_is_recognised(names: tuple[str, ...], found: str | None) -> None:
    assert scheme(names) == found


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (BIO, []),
        (BIOES, []),
        (("NOUN", "VERB", "B"), []),
        ((*BIOES, "M-PER"), ["M-PER"]),
        (("O", "B-PER", "I-PER", "L-PER", "U-PER"), ["L-PER", "U-PER"]),
    ],
)
def test_what_keeps_tags_from_being_of_one_scheme(names: tuple[str, ...], found: list[str]) -> None:
    assert mixed_schemes(names) == found


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (BIO, []),
        (("O", "I-PER", "I-LOC"), ["I-LOC", "I-PER"]),
        (("M-PER", "E-PER"), ["E-PER", "M-PER"]),
        (("O", "I"), []),
        (("I-PER", "NOUN"), []),
    ],
)
def test_spans_that_nothing_begins(names: tuple[str, ...], found: list[str]) -> None:
    assert never_begun(names) == found


@pytest.mark.parametrize(
    ("kind", "tags", "fault"),
    [
        ("BIO", ["O", "B-PER", "I-PER", "O"], None),
        ("BIO", ["B-PER", "B-PER", "I-PER"], None),
        ("BIO", ["I-PER"], 0),
        ("BIO", ["O", "I-PER"], 1),
        ("BIO", ["B-LOC", "I-PER"], 1),
        ("BIOES", ["B-PER", "E-PER", "S-LOC", "O"], None),
        ("BIOES", ["B-PER", "O"], 1),
        ("BIOES", ["B-PER", "I-PER"], 2),
        ("BIOES", ["E-PER"], 0),
        ("BIOES", ["S-PER", "I-PER"], 1),
        ("BMES", ["B", "M", "M", "E", "S"], None),
        ("BMES", ["B", "S"], 1),
        ("BIO", [], None),
    ],
)
def test_the_first_fault_is_found(kind: str, tags: list[str], fault: int | None) -> None:
    assert first_fault(kind, tags) == fault


def test_what_is_legal_says_each_span_in_one_way() -> None:
    """Every legal sequence of BIOES marks other spans, and no span is broken or left open."""
    legal = [tags for tags in product(BIOES, repeat=4) if first_fault("BIOES", tags) is None]
    marked = [tuple(spans(tags)) for tags in legal]
    assert len(set(marked)) == len(marked)
    for tags, found in zip(legal, marked, strict=True):
        assert sum(tag.startswith(("B", "S")) for tag in tags) == len(found)


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        (["B-PER", "I-PER", "O", "B-LOC"], [Span(0, 2, "PER"), Span(3, 4, "LOC")]),
        (["B-PER", "B-PER"], [Span(0, 1, "PER"), Span(1, 2, "PER")]),
        (["O", "I-PER", "I-PER"], [Span(1, 3, "PER")]),
        (["B-PER", "I-LOC"], [Span(0, 1, "PER"), Span(1, 2, "LOC")]),
        (["S-PER", "I-PER"], [Span(0, 1, "PER"), Span(1, 2, "PER")]),
        (["B", "M", "E", "S"], [Span(0, 3, ""), Span(3, 4, "")]),
        (["O", "O"], []),
        ([], []),
    ],
)
def test_what_tags_mark(tags: list[str], found: list[Span]) -> None:
    assert list(spans(tags)) == found


def test_nothing_may_begin_inside() -> None:
    assert not may_follow("BIO", None, "I-PER")
    assert may_follow("BIO", "I-PER", None)
    assert not may_follow("BIOES", "I-PER", None)


@pytest.mark.parametrize(
    ("scheme", "tags", "found"),
    [
        ("BIO", "I-PER I-PER O I-PER B-PER I-LOC", "B-PER I-PER O B-PER B-PER B-LOC"),
        ("BIO", "O I I B", "O B I B"),
        ("BIOES", "I-PER O B-PER I-PER O E-LOC", "S-PER O B-PER E-PER O S-LOC"),
        ("BMES", "M-A M-A M-A S-A B-A", "B-A M-A E-A S-A S-A"),
    ],
)
def test_forbidden_tags_are_mended(scheme: str, tags: str, found: str) -> None:
    assert repaired(scheme, tags.split()) == found.split()


@pytest.mark.parametrize("known", SCHEMES)
def test_mended_tags_mark_the_same_spans_and_are_allowed(known: str) -> None:
    letters = sorted(SCHEMES[known] - {"O"})
    names = ["O", *(f"{letter}-{kind}" for letter in letters for kind in ("PER", "LOC"))]
    for tags in product(names, repeat=4):
        better = repaired(known, tags)
        assert first_fault(known, better) is None
        assert list(spans(better)) == list(spans(tags))
        assert set(better) <= completed(tags) or scheme(tags) != known


def test_tags_that_mending_may_need_are_known() -> None:
    assert completed(("O", "I-PER", "I-LOC")) == set(BIO), "IOB1 where no span touches another"
    assert completed(("O", "B-PER", "I-LOC")) == set(BIO)
    assert completed(("NOUN", "I", "VERB")) == {"NOUN", "I", "VERB"}
    assert completed(("O", "I")) == {"O", "I"}
