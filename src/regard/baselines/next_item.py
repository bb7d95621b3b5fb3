"""Baselines of recommendation: popularity, recent popularity, a Markov chain, item-kNN.

Each scores every item of the catalogue. Items of the history are left out if the task says so; of equal
scores the more frequent item comes first, as in the catalogue.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from regard.baselines.baseline import Baseline
from regard.errors import DataError
from regard.files.row import Row

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

RECENT = 0.9
"""Share of all interactions that are not recent."""
MOST_PAIRED = 50
"""The last items of a history, of which each two count as chosen together."""
PAIRS_AT_ONCE = 4_000_000


class NextItem(Baseline):
    """Base class: scores of all items, and from them the list and the rank that `Recommend.tally` takes."""

    def __init__(self, task: Any) -> None:
        self.task, self.n_items = task, len(task.items.names)

    @abstractmethod
    def scores(self, history: Ints) -> Floats:
        """The score of every item after a history of known items, which may be empty."""

    def answers(self, examples: Sequence[Any]) -> Sequence[Any]:
        config = self.task.config
        return [
            listed(
                self.scores(history),
                int(one.arrays["target"][0]),
                history if config.remove_seen else None,
                config.k,
            )
            for one in examples
            for history in [_known(one.arrays["items"])]
        ]


def listed(scores_V: Floats, target: int, seen: Ints | None, k: int) -> tuple[int, tuple[int, ...]]:
    """The rank of the target among all items, from 1, and the best k; `seen` items are left out."""
    if seen is not None:
        scores_V = scores_V.copy()
        scores_V[seen] = -np.inf
    best = np.lexsort((np.arange(len(scores_V)), -scores_V))[:k]
    top = tuple(best[scores_V[best] > -np.inf].tolist())
    if target < 0 or scores_V[target] == -np.inf:
        return len(scores_V), top
    before = (scores_V > scores_V[target]).sum() + (scores_V[:target] == scores_V[target]).sum()
    return int(before) + 1, top


class MostPopular(NextItem):
    """The items chosen most often."""

    name: ClassVar[str] = "most popular"

    def __init__(self, task: Any, counts_V: Floats) -> None:
        super().__init__(task)
        self.counts_V = counts_V

    @classmethod
    def fit(cls, task: Any, rows: Sequence[Row]) -> Self:
        numbers = np.concatenate([_numbers(task, row) for row in rows])
        return cls(task, np.bincount(numbers, minlength=len(task.items.names)).astype(np.float64))

    def scores(self, history: Ints) -> Floats:
        return self.counts_V


class RecentlyPopular(MostPopular):
    """The items chosen most often in the last tenth of the interactions."""

    name: ClassVar[str] = "recently popular"

    @classmethod
    def fit(cls, task: Any, rows: Sequence[Row]) -> Self:
        if not all("times" in row.cells for row in rows):
            raise DataError("the interactions have no times")
        times = np.concatenate([np.array(row.cells["times"]) for row in rows])
        numbers = np.concatenate([_numbers(task, row) for row in rows])
        recent = numbers[times >= np.quantile(times, RECENT)]
        return cls(task, np.bincount(recent, minlength=len(task.items.names)).astype(np.float64))


@dataclass(frozen=True)
class Sparse:
    """A sparse matrix, row by row."""

    ends: Ints
    columns: Ints
    values: Floats

    @classmethod
    def of(cls, keys: Ints, values: Floats, n: int) -> Self:
        """The n × n matrix with these values at sorted keys row · n + column."""
        return cls(np.searchsorted(keys, np.arange(n) * n), keys % n, values)

    def row(self, number: int) -> tuple[Ints, Floats]:
        begin = self.ends[number]
        end = self.ends[number + 1] if number + 1 < len(self.ends) else len(self.columns)
        return self.columns[begin:end], self.values[begin:end]


class Markov(NextItem):
    """The items that followed the last one most often (a first-order chain), then the others by
    popularity.
    """

    name: ClassVar[str] = "Markov chain"

    def __init__(self, task: Any, followed: Sparse, counts_V: Floats) -> None:
        super().__init__(task)
        self.followed, self.share_V = followed, counts_V / (counts_V.sum() + 1)

    @classmethod
    def fit(cls, task: Any, rows: Sequence[Row]) -> Self:
        n = len(task.items.names)
        histories = [_numbers(task, row) for row in rows]
        keys = np.concatenate([history[:-1] * n + history[1:] for history in histories])
        unique, counts = np.unique(keys, return_counts=True)
        popular = np.bincount(np.concatenate(histories), minlength=n).astype(np.float64)
        return cls(task, Sparse.of(unique, counts.astype(np.float64), n), popular)

    def scores(self, history: Ints) -> Floats:
        scores_V: Floats = self.share_V.copy()  # less than following once
        if len(history):
            columns, counts = self.followed.row(int(history[-1]))
            scores_V[columns] += counts
        return scores_V


class ItemKNN(NextItem):
    """The items most similar to those of the history: sums of cosines over the users who chose both."""

    name: ClassVar[str] = "item-kNN"

    def __init__(self, task: Any, alike: Sparse) -> None:
        super().__init__(task)
        self.alike = alike

    @classmethod
    def fit(cls, task: Any, rows: Sequence[Row]) -> Self:
        n = len(task.items.names)
        chosen = [np.unique(_numbers(task, row)[-MOST_PAIRED:]) for row in rows]
        counts_V = np.maximum(np.bincount(np.concatenate(chosen), minlength=n), 1)
        keys, together = _pairs(chosen, n)
        cosines = together / np.sqrt(counts_V[keys // n] * counts_V[keys % n])
        return cls(task, Sparse.of(keys, cosines, n))

    def scores(self, history: Ints) -> Floats:
        scores_V = np.zeros(self.n_items)
        for number in history[-MOST_PAIRED:].tolist():
            columns, cosines = self.alike.row(number)
            scores_V[columns] += cosines
        return scores_V


def _pairs(chosen: Sequence[Ints], n: int) -> tuple[Ints, Floats]:
    """Sorted keys, row · n + column, of items that were chosen together, with counts."""
    keys, counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for part in _blocks(chosen):
        pair_keys = np.concatenate(
            [(items[:, None] * n + items)[~np.eye(len(items), dtype=bool)] for items in part]
        )
        unique, times = np.unique(pair_keys, return_counts=True)
        both, places = np.unique(np.concatenate([keys, unique]), return_inverse=True)
        counts = np.bincount(places, np.concatenate([counts, times]), len(both)).astype(np.int64)
        keys = both
    return keys, counts.astype(np.float64)


def _blocks(chosen: Sequence[Ints]) -> Iterator[Sequence[Ints]]:
    """Yield blocks of histories whose pairs fit into memory."""
    begin = n_pairs = 0
    for end, items in enumerate(chosen, 1):
        n_pairs += len(items) ** 2
        if n_pairs >= PAIRS_AT_ONCE or end == len(chosen):
            yield chosen[begin:end]
            begin, n_pairs = end, 0


def _numbers(task: Any, row: Row) -> Ints:
    numbers = task.items.numbers
    return np.array([numbers[name] for name in row.cells["items"]], np.int64)


def _known(items: NDArray[Any]) -> Ints:
    return np.asarray(items[items >= 0], np.int64)
