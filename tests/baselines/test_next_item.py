"""Baselines of recommendation against counting in dictionaries, and on data whose order one of them sees."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from regard.baselines import next_item
from regard.baselines.next_item import ItemKNN, Markov, MostPopular, RecentlyPopular, listed
from regard.data.layout import scored
from regard.errors import DataError
from regard.files.row import Row
from regard.tasks import Recommend, RecommendConfig

ROWS = [
    Row({"user": f"u{h}", "items": items, "times": [10.0 * n + h for n in range(len(items))]}, "file", h + 1)
    for h, items in enumerate(
        [list("abca"), list("bcd"), list("ab"), list("e"), list("dcba"), list("cbe"), list("acde")]
    )
]


def task(**settings: Any) -> Recommend:
    return Recommend.fit(RecommendConfig(**settings), ROWS)


def by_name(recommend: Recommend, scores_V: Any) -> dict[str, float]:
    return dict(zip(recommend.items.names, scores_V.tolist(), strict=True))


def history(recommend: Recommend, items: str) -> Any:
    return np.array([recommend.items.numbers[item] for item in items], np.int64)


def test_popular_is_what_was_counted() -> None:
    recommend = task()
    counted = Counter(item for row in ROWS for item in row.cells["items"])
    found = by_name(recommend, MostPopular.fit(recommend, ROWS).scores(history(recommend, "")))
    assert found == dict(counted)


def test_recent_is_what_came_late() -> None:
    recommend = task()
    pairs = [pair for row in ROWS for pair in zip(row.cells["times"], row.cells["items"], strict=True)]
    border = np.quantile([time for time, _ in pairs], 0.9)
    counted = Counter(item for time, item in pairs if time >= border)
    found = by_name(recommend, RecentlyPopular.fit(recommend, ROWS).scores(history(recommend, "")))
    assert {item: count for item, count in found.items() if count} == dict(counted)
    bare = [Row({"user": "u", "items": ["a"]}, "file", 1)]
    with pytest.raises(DataError, match="the interactions have no times"):
        RecentlyPopular.fit(recommend, bare)


def test_a_chain_counts_what_followed_and_falls_back_on_the_popular() -> None:
    recommend = task()
    chain = Markov.fit(recommend, ROWS)
    followed = Counter(
        pair for row in ROWS for pair in zip(row.cells["items"], row.cells["items"][1:], strict=False)
    )
    counted = Counter(item for row in ROWS for item in row.cells["items"])
    for last in "abcde":
        found = by_name(recommend, chain.scores(history(recommend, "e" + last)))
        order = sorted("abcde", key=lambda item: (-followed[last, item], -counted[item], item))
        assert sorted(found, key=lambda item: (-found[item], item)) == order
        assert {item: math.floor(score) for item, score in found.items()} == {
            item: followed[last, item] for item in "abcde"
        }
    assert chain.scores(history(recommend, "")).argmax() == 0


@pytest.mark.parametrize("at_once", [1, 20, 10**6])
def test_what_goes_together_is_the_cosine_of_who_chose_it(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(next_item, "PAIRS_AT_ONCE", at_once)
    recommend = task()
    knn = ItemKNN.fit(recommend, ROWS)
    chose = {item: {row.line for row in ROWS if item in row.cells["items"]} for item in "abcde"}

    def cosine(one: str, other: str) -> float:
        if one == other:
            return 0.0
        return len(chose[one] & chose[other]) / math.sqrt(len(chose[one]) * len(chose[other]))

    for items in ("a", "ce", "bda", ""):
        found = by_name(recommend, knn.scores(history(recommend, items)))
        assert found == pytest.approx({item: sum(cosine(each, item) for each in items) for item in "abcde"})


@pytest.mark.parametrize("seen", [None, [3, 0]])
def test_ranks_and_lists_are_those_of_a_whole_sort(seen: list[int] | None) -> None:
    scores_V = np.array([2.0, 5, 2, 7, 5, 2, 1])
    order = sorted(range(7), key=lambda item: (-scores_V[item], item))
    allowed = [item for item in order if item not in (seen or ())]
    for target in range(7):
        rank, top = listed(scores_V, target, None if seen is None else np.array(seen), 4)
        assert rank == (allowed.index(target) + 1 if target in allowed else 7)
        assert list(top) == allowed[:4]
    assert listed(scores_V, -1, None, 4)[0] == 7


def test_scored_by_the_tally_of_the_task() -> None:
    """Round and round: only the chain can know what comes next."""
    ring = "abcdefgh"
    rows = [
        Row({"user": str(n), "items": [ring[(n + at) % 8] for at in range(5)]}, "file", n + 1)
        for n in range(40)
    ]
    recommend = Recommend.fit(RecommendConfig(k=1), rows)
    examples = scored(recommend, rows, "rows")
    scores = {}
    for baseline in (MostPopular, Markov, ItemKNN):
        tally = recommend.tally(examples, baseline.fit(recommend, rows).answers(examples))
        metrics = tally.metrics()
        assert "loss" not in metrics
        scores[baseline.name] = metrics["hr@1"]
    assert scores["Markov chain"] == 100 > scores["most popular"]
