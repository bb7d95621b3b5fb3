"""Span F1 against rules written out anew, chunk by chunk, as the conlleval script states them."""

import random
from itertools import product

import pytest

from regard.metrics.spans import by_kind, span_counts, span_scores


def chunks(tags: list[str]) -> set[tuple[int, int, str]]:
    """All (first, last, kind) that no neighbouring tag would make longer, found by trying every pair."""

    def inside(first: int, last: int, kind: str) -> bool:
        return all(tag != "O" and tag[2:] == kind for tag in tags[first : last + 1])

    def starts(place: int) -> bool:
        now, before = tags[place], tags[place - 1] if place else "O"
        return now[0] in "BS" or before == "O" or before[0] in "ES" or before[2:] != now[2:]

    found = set()
    for first, last in product(range(len(tags)), repeat=2):
        if first > last or tags[first] == "O":
            continue
        kind = tags[first][2:]
        alone = starts(first) and not any(starts(place) for place in range(first + 1, last + 1))
        goes_on = last + 1 < len(tags) and tags[last + 1] != "O" and not starts(last + 1)
        if inside(first, last, kind) and alone and not goes_on:
            found.add((first, last, kind))
    return found


def span_f1(predicted: list[list[str]], gold: list[list[str]]) -> dict[str, float]:
    sums_13 = span_counts(predicted, gold).sum(0, keepdims=True)
    return {name: float(score) for name, (score,) in span_scores(sums_13).items()}


def by_hand(predicted: list[list[str]], gold: list[list[str]], kind: str | None = None) -> tuple[float, ...]:
    def all_of(sentences: list[list[str]]) -> set[tuple[int, int, int, str]]:
        return {
            (n, *chunk)
            for n, tags in enumerate(sentences)
            for chunk in chunks(tags)
            if kind in (None, chunk[2])
        }

    told, there = all_of(predicted), all_of(gold)
    precision, recall = len(told & there) / len(told), len(told & there) / len(there)
    return 2 * precision * recall / (precision + recall), precision, recall


@pytest.mark.parametrize("letters", ["BI", "BIES", "BMES"])
def test_against_conlleval(letters: str) -> None:
    rng = random.Random(letters)
    names = ["O", "O", *(f"{letter}-{kind}" for letter in letters for kind in ("PER", "LOC"))]
    gold = [rng.choices(names, k=rng.randint(1, 7)) for _ in range(200)]
    predicted = [[tag if rng.random() < 0.8 else rng.choice(names) for tag in tags] for tags in gold]
    f1, precision, recall = by_hand(predicted, gold)
    assert span_f1(predicted, gold) == pytest.approx({"f1": f1, "precision": precision, "recall": recall})
    found = by_kind(predicted, gold)
    assert set(found) == {"PER", "LOC"}
    for kind, scores in found.items():
        assert (scores["f1"], scores["precision"], scores["recall"]) == pytest.approx(
            by_hand(predicted, gold, kind)
        )
        assert scores["n"] == sum(chunk[2] == kind for tags in gold for chunk in chunks(tags))


def test_nothing_to_find() -> None:
    nothing, something = [["O", "O"]], [["O", "B-PER"]]
    assert span_f1(nothing, nothing) == {"f1": 1, "precision": 1, "recall": 1}
    assert span_f1(something, nothing) == {"f1": 0, "precision": 0, "recall": 1}
    assert span_f1(nothing, something) == {"f1": 0, "precision": 0, "recall": 0}
