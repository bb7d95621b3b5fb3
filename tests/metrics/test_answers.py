"""Exact match and F1 beside a slow twin, written from the definition: Rajpurkar et al. 2016 and 2018."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.metrics.answers import scores


def counted_words(text: str) -> list[str]:
    """Lower case, without punctuation, without the words a, an, the."""
    kept = "".join(character for character in text.lower() if character not in string.punctuation)
    return [word for word in kept.split() if word not in ("a", "an", "the")]


def twin(answer: str, right: str) -> tuple[float, float]:
    said, wanted = counted_words(answer), counted_words(right)
    if not said or not wanted:
        return (1.0, 1.0) if said == wanted else (0.0, 0.0)
    left, hits = list(wanted), 0
    for word in said:
        if word in left:
            left.remove(word)
            hits += 1
    if not hits:
        return 0.0, 0.0
    precision, recall = hits / len(said), hits / len(wanted)
    return float(said == wanted), 2 * precision * recall / (precision + recall)


WORDS = st.lists(
    st.sampled_from(["The", "a", "An", "fog", "fog,", "Rhine", "the.", "old", "1,000", "U.S."]), max_size=5
)
TEXT = WORDS.map(" ".join)


@given(TEXT, st.lists(TEXT, max_size=3))
def test_scores_are_those_of_the_twin(answer: str, right: list[str]) -> None:
    each = [twin(answer, one) for one in [one for one in right if counted_words(one)] or [""]]
    found = scores(answer, right)
    assert found["em"] == max(em for em, _ in each)
    assert found["f1"] == pytest.approx(max(f1 for _, f1 in each))


@pytest.mark.parametrize(
    ("answer", "right", "em", "f1"),
    [
        ("the Rhine", ("Rhine!",), 1, 1),
        ("the old Rhine", ("Rhine", "old river"), 0, 2 / 3),
        ("", (), 1, 1),
        ("Rhine", (), 0, 0),
        ("", ("Rhine",), 0, 0),
        ("", ("the", "Rhine"), 0, 0),
        ("fog fog", ("fog",), 0, 2 / 3),
    ],
)
def test_what_counts(answer: str, right: tuple[str, ...], em: float, f1: float) -> None:
    assert scores(answer, right) == pytest.approx({"em": em, "f1": f1})
