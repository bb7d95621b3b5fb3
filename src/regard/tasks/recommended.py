"""What is recommended, and what lists of recommendations are worth."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from pydantic import BaseModel, Field
from torch import nn

from regard.data.example import Example
from regard.fields.axis import Axis
from regard.layers.heads import HeadInput
from regard.layers.retrieval import target_ranks, top_items
from regard.metrics.ranking import ranked, recommended
from regard.metrics.resample import Floats, Scores, unweighted
from regard.metrics.tally import Columns
from regard.tasks.prediction import Prediction, Ranked, Rounded


class Reason(BaseModel):
    """An item of the history, and what a recommendation would be without it."""

    item: str
    title: str = ""
    change: Rounded = Field(description="what the score loses without the item")
    rank: int = Field(description="the place of the recommendation without the item")


class Recommended(BaseModel):
    item: str
    title: str = ""
    category: str = ""
    rank: int = Field(description="the place among all items that may be recommended, from 1")
    score: Rounded = Field(description="log-probability among the whole catalogue")
    because: tuple[Reason, ...] = Field(
        (), description="items of the history that spoke for it, the most first"
    )

    @property
    def name(self) -> str:
        return self.title or self.item


class Recommendation(Prediction):
    items: tuple[Recommended, ...]
    unknown: tuple[str, ...] = Field((), description="items of the history that are not in the catalogue")
    explained: int = Field(0, exclude=True)
    """Which of the items is explained."""

    @classmethod
    def of(cls, items: Sequence[Recommended], unknown: Sequence[str] = (), explained: int = 0) -> Self:
        text = ", ".join(one.name for one in items)
        return cls(text=text, items=tuple(items), unknown=tuple(unknown), explained=explained)

    def ranked(self) -> list[Ranked]:
        return [(f"{one.item} {one.title}".rstrip(), one.score) for one in self.items]

    def rows(self) -> list[dict[str, Any]]:
        """A row for each item."""
        return [one.model_dump(mode="json", exclude={"because"}) for one in self.items]


class Place(NamedTuple):
    """An item of a list."""

    number: int
    rank: int
    score: float


def states(x: HeadInput) -> HeadInput:
    """The head that leaves the scores of the catalogue to `layers.retrieval`."""
    return x


def recommendations(task: Any, model: nn.Module, batch: Any) -> Iterator[Recommendation]:
    """The list of each example of a batch; with the item that the task is asked about, wherever it stands.

    Of a history in which nothing is known it is empty.
    """
    state: HeadInput = model(batch.inputs, batch.at_N, states)
    best = top_items(state, task.config.k, batch.seen)
    found = [
        [Place(number, rank, score) for rank, (number, score) in enumerate(pairs, 1) if score > -inf]
        for pairs in map(zip, best.items_BK.tolist(), best.log_probs_BK.tolist())
    ]
    if task.wanted is not None:
        wanted_B = torch.full_like(batch.target_N, task.wanted)
        ranks = (column.tolist() for column in target_ranks(state, wanted_B, batch.seen))
        for places, rank, score in zip(found, *ranks, strict=True):
            if task.wanted not in [place.number for place in places]:
                places.append(Place(task.wanted, rank, score))
    for example, places in zip(batch.examples, found, strict=True):
        if not task.is_answerable(example):
            places.clear()
        yield _recommendation(task, model, example, places, batch.at_N.device)


def _recommendation(
    task: Any, model: nn.Module, example: Example, places: Sequence[Place], device: torch.device
) -> Recommendation:
    """The answer with these items, and if it is asked for with what spoke for each."""
    reasons: Sequence[Sequence[Reason]] = [()] * len(places)
    if task.config.because:
        batch = task.collate([example]).to(device)
        reasons = reasons_of(task, model, batch, task.history(example), places)
    items = []
    for place, because in zip(places, reasons, strict=True):
        name = task.items.names[place.number]
        title, category = task.items.about(name)
        one = Recommended(item=name, title=title, category=category, rank=place.rank, score=place.score)
        items.append(one.model_copy(update={"because": tuple(because[: task.config.because])}))
    numbers = [place.number for place in places]
    explained = numbers.index(task.wanted) if task.wanted in numbers else 0
    return Recommendation.of(items, example.notes.get("unknown", ()), explained)


def reasons_of(
    task: Any, model: nn.Module, batch: Any, history: Axis, places: Sequence[Place]
) -> list[list[Reason]]:
    """For each of these items what spoke for it in the history, the most first: left out, it would lose.

    `batch` holds one example. Its history is read once without each item; of a single item nothing would be
    left. What was seen is not recommended without it either.
    """
    units = history.free
    if len(units) < 2:
        return [[] for _ in places]
    without = task.leave_out(batch, history, units)
    state: HeadInput = model(without.inputs, without.at_N, states)
    seen = task.seen(without.examples)
    numbers = task.read(batch.examples[0].arrays)["items"][units]
    names = [task.items.names[number] for number in numbers]
    found = []
    for place in places:
        target_U = torch.full((len(units),), place.number, device=without.at_N.device)
        ranks, log_probs = (column.tolist() for column in target_ranks(state, target_U, seen))
        reasons = [
            Reason(item=name, title=task.items.about(name).title, change=place.score - score, rank=rank)
            for name, rank, score in zip(names, ranks, log_probs, strict=True)
        ]
        in_favour = [reason for reason in reasons if reason.change > 0]
        found.append(sorted(in_favour, key=lambda reason: -reason.change))
    return found


def sentences(rank: int, reasons: Sequence[Reason]) -> tuple[str, str]:
    """What places a recommendation would have without its reasons, in English and in Chinese."""
    lower = [reason for reason in reasons if reason.rank > rank][:MOST_SAID]
    if not lower:
        return (
            f"The recommendation stands at place {rank:,}, and no item of the history could be missing that "
            "it would stand lower.",
            f"这条推荐排在第 {rank:,} 位；去掉历史中任何一个物品，名次都不会下降。",
        )
    english = ", ".join(f"without {reason.title or reason.item} at {reason.rank:,}" for reason in lower)
    chinese = "，".join(f"去掉“{reason.title or reason.item}”后排第 {reason.rank:,} 位" for reason in lower)
    return (
        f"The recommendation stands at place {rank:,}; it would stand {english}.",
        f"这条推荐排在第 {rank:,} 位；{chinese}。",
    )


MOST_SAID = 3
"""Items of a history whose lack is told."""


class Answer(NamedTuple):
    """What a list of recommendations is worth."""

    rank: int
    """Of the right item among the whole catalogue, from 1."""
    top: tuple[int, ...]
    """The numbers of the items that stand in the list."""
    nats: float = float("nan")
    """−log of the probability of the right item, where probabilities are given."""


@dataclass(frozen=True)
class RankTally(Columns):
    has_loss: ClassVar[bool] = True
    k: int
    counts_V: Any
    """How often each item of the catalogue stands in the training histories."""
    targets: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    """Of the targets, and of the users."""
    answers: list[Answer] = field(default_factory=list)

    @property
    def truth(self) -> list[str]:
        return self.names

    def weighed(self, weights_RN: Floats) -> Scores:
        ranks_N = np.array([answer.rank for answer in self.answers])
        nats_N = np.array([answer.nats for answer in self.answers])
        lists = [np.array(answer.top[: self.k], np.int64) for answer in self.answers]
        targets_N = np.array(self.targets)
        loss = {} if np.isnan(nats_N).any() else {"loss": _mean_of_known(nats_N, targets_N, weights_RN)}
        about = recommended(lists, targets_N, self.counts_V, weights_RN)
        named = {f"{name}@{self.k}": scores_R for name, scores_R in about.items()}
        return loss | ranked(ranks_N, self.k, weights_RN) | named

    def metrics(self) -> dict[str, float]:
        return unweighted(self)

    def signatures(self) -> dict[str, str]:
        return {}

    def by_kind(self) -> dict[str, dict[str, float]]:
        return {}


def _mean_of_known(nats_N: Floats, targets_N: Any, weights_RN: Floats) -> Floats:
    """The mean cost of right items that training knows; others have no probability at all."""
    known_N = targets_N >= 0
    mean_R: Floats = weights_RN @ np.where(known_N, nats_N, 0.0) / np.maximum(weights_RN @ known_N, 1)
    return mean_R
