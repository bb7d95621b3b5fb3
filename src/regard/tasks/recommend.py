"""recommend: what a user will want next, ranked over the whole catalogue, from a history in time order.

A model of the next item (SASRec, GRU4Rec) learns at every place of a history what comes after it; one that
fills in (BERT4Rec) learns what is hidden at random places, and is asked with a hidden item at the end.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import BaseModel, Field, ValidationError
from torch import Tensor, nn

from regard.baselines import Baseline
from regard.baselines.next_item import ItemKNN, Markov, MostPopular, RecentlyPopular
from regard.config import Config, without_prefix
from regard.data.cache import Arrays, Examples
from regard.data.example import Example
from regard.data.histories import WindowedHistories
from regard.data.last_items import AtTime, LastOf
from regard.data.splits import HoldOut
from regard.decode import in_order
from regard.errors import DataError, RecipeError, quoted
from regard.fields.axis import Axis
from regard.fields.field import Coded
from regard.fields.field import Field as AnyField
from regard.fields.items import Items, ItemsSettings
from regard.files.catalogue import Described
from regard.files.interactions import Grouping
from regard.files.row import Row
from regard.layers.heads import HeadInput, log_probs
from regard.layers.inputs import Inputs
from regard.layers.retrieval import Excluded, target_ranks, top_items
from regard.layers.sampled import LossConfig, SoftmaxConfig
from regard.metrics.metric import Metric
from regard.models.widths import Widths
from regard.tasks.recommend_data import RECOMMEND, strange
from regard.tasks.recommended import (
    Answer,
    Place,
    RankTally,
    Recommendation,
    reasons_of,
    recommendations,
    sentences,
    states,
)
from regard.tasks.shared import moved, tensors
from regard.tasks.task import Axes, Choice, Fields, Loss, Part, Task, TaskSettings, layer_of
from regard.tasks.task_data import TaskData
from regard.text.tokenizer import Tokenizer

SAMPLING_POWER = 0.75
"""Negatives are drawn by how often items are chosen, to this power."""
HISTORIES_TOGETHER = 256
MOST_CHOICES = 50_000
"""Items that a server knows by their titles."""
MOST_K, MOST_REASONS = 1000, 50
"""Items of a list, and reasons of each."""
ASKED = ("k", "remove_seen", "because", "item")
"""Settings of a question."""
SHOWN = 5
"""Items of a history in a sample."""
ONLY_LAST = 0.2
"""How often an example hides its last item alone, which is what will be asked."""


class HistoryFields(Config):
    items: ItemsSettings = ItemsSettings()


class RecommendConfig(TaskSettings):
    """A history of items in, what is wanted next out."""

    kind: Literal["recommend"] = "recommend"
    roles: ClassVar[tuple[str, ...]] = ("user", "item", "rating", "time")
    inputs: ClassVar[tuple[str, ...]] = ("items",)
    fields: HistoryFields = Field(
        HistoryFields(), description="how histories are made of interactions: a table `[fields.items]`"
    )
    max_length: int = Field(50, ge=1, description="items that are read of a history, its last ones")
    objective: Literal["next", "masked"] = Field(
        "next", description="what is learnt: the item after each place, or hidden items (bert4rec)"
    )
    mask_share: float = Field(
        0.3, gt=0, lt=1, description="of the items, hidden where the objective is masked"
    )
    loss: LossConfig = SoftmaxConfig()
    split: Literal["last", "time"] = Field(
        "last",
        description="what is held out: the last item of each history for the test and the one before for "
        "validation, or what comes after two moments",
    )
    k: int = Field(10, ge=1, le=MOST_K, description="items that are recommended, and scored")
    remove_seen: bool = Field(True, description="recommend nothing that stands in the history")
    because: int = Field(
        0,
        ge=0,
        le=MOST_REASONS,
        description="items of the history that are named for each recommendation, because they spoke most "
        "for it; every one is left out in turn to measure that",
    )

    @property
    def grouping(self) -> Grouping:
        return self.fields.items.grouping

    @property
    def unfitted(self) -> Fields:
        return self.asked

    @property
    def asked(self) -> Mapping[str, AnyField]:
        return {"items": Items(limit=self.max_length)}

    @property
    def hold_out(self) -> HoldOut:
        return LastOf() if self.split == "last" else AtTime()


@dataclass(frozen=True)
class HistoryBatch:
    inputs: Inputs
    at_N: Tensor
    """The places, among all of the batch's, whose states say which item is wanted."""
    target_N: Tensor
    """Its number; −1 where nobody knows."""
    seen: Excluded | None
    examples: tuple[Example, ...]

    @property
    def counts(self) -> dict[str, int]:
        return {"items": len(self.target_N)}

    def to(self, device: torch.device) -> Self:
        seen = self.seen and Excluded(self.seen.rows_N.to(device), self.seen.items_N.to(device))
        return replace(
            self,
            inputs=moved(self.inputs, device),
            at_N=self.at_N.to(device),
            target_N=self.target_N.to(device),
            seen=seen,
        )


class Recommend(Task):
    kind: ClassVar[str] = "recommend"
    data: ClassVar[TaskData] = RECOMMEND
    says: ClassVar[str] = "Histories of items in, the items that are wanted next out, the best first."
    settings: ClassVar[type[Any]] = RecommendConfig
    prediction: ClassVar[type[BaseModel]] = Recommendation
    models: ClassVar[tuple[str, ...]] = ("sasrec", "bert4rec", "gru4rec")
    called: ClassVar[str] = "a recommender"
    best: ClassVar[str] = "k"
    lists: ClassVar[bool] = True
    options: ClassVar[tuple[str, ...]] = ("item",)
    takes: ClassVar[str] = "items"
    request_settings: ClassVar[tuple[str, ...]] = ASKED
    layout: ClassVar[type[Examples]] = WindowedHistories
    baselines: ClassVar[tuple[type[Baseline], ...]] = (MostPopular, RecentlyPopular, Markov, ItemKNN)

    def __init__(self, config: RecommendConfig, items: Items, wanted: int | None = None) -> None:
        self.config, self.wanted = config, wanted
        """The number of an item that stands in every list, and is explained; by default the best is."""
        self.items = items.alone(config.max_length)
        self.widths = Widths(items.width, items.width)

    @property
    def metric(self) -> Metric:
        return Metric(f"ndcg@{self.config.k}")

    @property
    def max_batch_rows(self) -> int:
        return HISTORIES_TOGETHER

    @property
    def question(self) -> Mapping[str, AnyField]:
        return {"items": self.items}

    @property
    def tokenizers(self) -> dict[str, Tokenizer]:
        return {}

    @classmethod
    def fit(
        cls,
        config: RecommendConfig,
        rows: Iterable[Row],
        tokenizer: Tokenizer | None = None,
        described: Mapping[str, Described] | None = None,
    ) -> Self:
        items = Items().fit(row.cells["items"] for row in rows)
        if described and not described.keys() & set(items.names):
            ours, theirs = (", ".join(map(quoted, islice(some, 3))) for some in (items.names, described))
            raise DataError(
                f"data.titles: names none of the {len(items.names):,} items ({ours} …), but {theirs} …; "
                "give the right column with data.title_columns.item"
            )
        return cls(config, replace(items, described=described or {}))

    def save(self, folder: Path) -> None:
        self.items.save(folder)

    @classmethod
    def load(cls, config: RecommendConfig, folder: Path) -> Self:
        return cls(config, Items().load(folder))

    def as_text(self, row: Row) -> str:
        return ", ".join(map(self.items.title, row.cells["items"]))

    def with_settings(self, **changes: Any) -> Self:
        """The same task with other lists, or about one item."""
        if unknown := [name for name in changes if name not in ASKED]:
            *others, last = ASKED
            raise RecipeError(f"{unknown[0]}: {self.called} can be asked with {', '.join(others)} and {last}")
        item, wanted = changes.pop("item", None), self.wanted
        if item is not None:
            self.items.refuse_strange([str(item)], "item")
            wanted = self.items.numbers[str(item)]
        return type(self)(changed(self.config, changes), self.items, wanted)

    def choices(self) -> list[Choice]:
        return [Choice(name, *self.items.about(name)) for name in self.items.names[:MOST_CHOICES]]

    def asked(self, values: Iterable[Any], first: int = 1) -> list[Row]:
        """Rows of histories; one that is typed, and not of a file, must hold something that is known."""
        rows = super().asked(values, first)
        for row in rows:
            if row.file == "input":
                self.items.refuse_strange(row.cells["items"], f"input {row.line}")
        return rows

    def notes(self, scored: Mapping[str, Sequence[Any]]) -> list[str]:
        return strange(self.items, scored)

    def encode(self, rows: Sequence[Row]) -> list[Example]:
        coded = self.items.encode([row.cells["items"] for row in rows])
        return [
            Example(row, {**one.arrays, **_times(row)}, one.notes)
            for row, one in zip(rows, coded, strict=True)
        ]

    def tested(self, rows: Sequence[Row]) -> list[Example]:
        """Examples whose last item is the target."""
        return [
            replace(
                example,
                arrays={name: array[:-1] for name, array in example.arrays.items()}
                | {"target": example.arrays["items"][-1:]},
            )
            for example in self.encode(rows)
        ]

    def unusable(self, example: Example) -> str | None:
        return None if len(example.arrays["items"]) > 1 else "of a single item"

    def is_answerable(self, example: Example) -> bool:
        return not self.items.is_empty(example.arrays)

    def size(self, example: Example) -> tuple[int]:
        return (self.items.size(example.arrays),)

    @property
    def overlap(self) -> int:
        """A target is the input of the next window."""
        return 1 if self.config.objective == "next" else 0

    @property
    def window(self) -> int:
        return self.config.max_length + self.overlap

    @property
    def mask(self) -> int:
        """The number of a hidden item."""
        return len(self.items.names)

    @property
    def draws(self) -> bool:  # type: ignore[override]
        return self.config.objective == "masked"

    def revive(self, row: Row, kept: Arrays) -> Example:
        """A window, of which the items but the first are what comes next."""
        if self.draws:
            return Example(row, kept)
        read = {name: array[:-1] for name, array in kept.items()}
        return Example(row, {**read, "targets": np.asarray(kept["items"][1:], np.int64)})

    def draw(self, example: Example, rng: np.random.Generator, others: Sequence[Any]) -> Example:
        """A window in which some items are hidden."""
        items = np.asarray(example.arrays["items"], np.int64)
        hidden = hide(len(items), self.config.mask_share, rng)
        drawn = {"items": np.where(hidden, self.mask, items), "targets": np.where(hidden, items, -1)}
        return replace(example, arrays={**example.arrays, **drawn})

    def collate(self, examples: Sequence[Example]) -> HistoryBatch:
        if examples and "targets" in examples[0].arrays:
            inputs = tensors(self.items.collate([one.arrays for one in examples]))
            targets = [np.asarray(one.arrays["targets"], np.int64) for one in examples]
            width = inputs["items"].shape[1]
            at = [row * width + np.flatnonzero(each >= 0) for row, each in enumerate(targets)]
            at_N = torch.from_numpy(np.concatenate(at))
            target_N = torch.from_numpy(np.concatenate([each[each >= 0] for each in targets]))
            return HistoryBatch(inputs, at_N, target_N, None, tuple(examples))
        wanted = [int(one.arrays["target"][0]) if "target" in one.arrays else -1 for one in examples]
        inputs = tensors(self.items.collate([self.read(one.arrays) for one in examples]))
        places = last_places(inputs)
        return HistoryBatch(inputs, places, torch.tensor(wanted), self.seen(examples), tuple(examples))

    def read(self, arrays: Arrays) -> Arrays:
        """What is read of a history of which the next item is asked; of nothing, the most frequent item."""
        history = {name: array for name, array in arrays.items() if name != "target"}
        if self.items.is_empty(history):
            history = {"items": np.zeros(1, np.int64)}
        if self.config.objective == "next":
            return self.items.read(history)
        room = replace(self.items, limit=max(1, self.items.limit - 1))
        read = room.read(history)
        return {
            name: np.append(array, self.mask if name == "items" else array[-1:])
            for name, array in read.items()
        }

    def seen(self, examples: Sequence[Example]) -> Excluded | None:
        """The items of whole histories, also what is too long ago to be read; none if they may come again."""
        if not self.config.remove_seen:
            return None
        known = [one.arrays["items"][one.arrays["items"] >= 0] for one in examples]
        rows_N = np.repeat(np.arange(len(known)), [len(items) for items in known])
        items_N = np.concatenate(known).astype(np.int64)
        order_N = np.argsort(items_N, kind="stable")
        return Excluded(torch.from_numpy(rows_N[order_N]), torch.from_numpy(items_N[order_N]))

    def loss(self, model: nn.Module, batch: HistoryBatch) -> Loss:
        head = self.config.loss.head(batch.target_N, self.log_q_V)
        found: Tensor = model(batch.inputs, batch.at_N, head)
        learnt, plain = found if found.dim() else (found, found)
        return Loss({"items": Part(learnt)}, shown={"items": plain.detach()})

    @cached_property
    def log_q_V(self) -> Tensor:
        """The log-probability that an item is drawn as a negative."""
        return torch.log_softmax(SAMPLING_POWER * torch.tensor(self.items.counts).log(), 0)

    @cached_property
    def counts_V(self) -> Any:
        return np.array(self.items.counts, np.int64)

    def measure(self, model: nn.Module, batch: HistoryBatch, *, thorough: bool) -> RankTally:
        state: HeadInput = model(batch.inputs, batch.at_N, states)
        rank_B, log_prob_B = target_ranks(state, batch.target_N, batch.seen)
        best = top_items(state, self.config.k, batch.seen)
        lists = [
            tuple(items[scores > -torch.inf].tolist())
            for items, scores in zip(best.items_BK, best.scores_BK, strict=True)
        ]
        answers = zip(rank_B.tolist(), lists, (-log_prob_B).tolist(), strict=True)
        return self.tally(batch.examples, [*answers])

    def tally(self, examples: Sequence[Example], answers: Sequence[Any]) -> RankTally:
        """The tally of ranks and lists, and where they are given the costs of the right items (`Answer`)."""
        targets = [int(one.arrays["target"][0]) for one in examples]
        names = [f"{one.row.cells['user']}\n{one.row.cells['items'][-1]}" for one in examples]
        return RankTally(self.config.k, self.counts_V, targets, names, [Answer(*each) for each in answers])

    def predict(self, model: nn.Module, batch: HistoryBatch) -> Iterator[tuple[int, Recommendation]]:
        with torch.inference_mode():
            yield from enumerate(recommendations(self, model, batch))

    def history(self, example: Example) -> Axis:
        """What is read of a history, item by item."""
        return self.items.axis([], Coded(self.read(example.arrays)))

    def samples(
        self, model: nn.Module, examples: Sequence[Example], device: torch.device
    ) -> list[dict[str, str]]:
        answers = in_order(self.predict(model, self.collate(examples).to(device)))
        return [
            {
                "input": ", ".join(map(self.items.title, one.row.cells["items"][:-1][-SHOWN:])),
                "expected": self.items.title(one.row.cells["items"][-1]),
                "answer": answer.text,
            }
            for one, answer in zip(examples, answers, strict=True)
        ]

    def force(self, example: Example, prediction: Recommendation) -> HistoryBatch:
        if not prediction.items:
            raise DataError(
                "there is nothing to explain: every item stands in the history; set remove_seen = false"
            )
        number = self.items.numbers[prediction.items[prediction.explained].item]
        arrays = {**example.arrays, "target": np.array([number])}
        return self.collate([replace(example, arrays=arrays)])

    def replay(self, model: nn.Module, batch: HistoryBatch) -> Tensor:
        log_prob_B: Tensor = model(batch.inputs, batch.at_N, log_probs(batch.target_N))
        return log_prob_B[:, None]

    def leave_out(self, batch: HistoryBatch, axis: Axis, units: Sequence[int]) -> HistoryBatch:
        device, n = batch.at_N.device, len(units)
        arrays = {name: tensor.cpu().numpy() for name, tensor in batch.inputs.items()}
        inputs = tensors(self.items.without(arrays, axis, units, "remove"))
        return replace(
            batch,
            inputs=moved(inputs, device),
            at_N=last_places(inputs).to(device),
            target_N=batch.target_N.expand(n),
            seen=None,
            examples=batch.examples * n,
        )

    def axes(self, example: Example, prediction: Recommendation) -> Axes:
        wanted = prediction.items[prediction.explained]
        by_name = {"history": self.history(example), "item": Axis("item", (wanted.name,), unit="item")}
        return Axes(by_name, left_out="history", answer="item", site=_site)

    def remark(self, model: nn.Module, batch: HistoryBatch, axis: Axis) -> tuple[str, str]:
        state: HeadInput = model(batch.inputs, batch.at_N, states)
        ((rank,), (score,)) = (one.tolist() for one in target_ranks(state, batch.target_N, batch.seen))
        place = Place(int(batch.target_N), rank, score)
        (reasons,) = reasons_of(self, model, batch, axis, [place])
        return sentences(rank, reasons)


def hide(n: int, share: float, rng: np.random.Generator) -> Any:
    """Which of n items are hidden: each by chance; every fifth time, or where none is, the last alone."""
    hidden_T = rng.random(n) < share
    if rng.random() < ONLY_LAST or not hidden_T.any():
        hidden_T = np.arange(n) == n - 1
    return hidden_T


def last_places(inputs: Inputs) -> Tensor:
    """The place of the last item of each row, among all of the batch's."""
    n_rows, width = inputs["items"].shape
    return torch.arange(n_rows) * width + inputs["lengths"] - 1


def changed(config: RecommendConfig, changes: Mapping[str, Any]) -> RecommendConfig:
    try:
        return RecommendConfig.model_validate(config.model_dump() | dict(changes))
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        name, value = fault["loc"][0], quoted(str(fault["input"]))
        raise RecipeError(f"{name}: {value} {without_prefix(fault['msg'])}") from None


def _times(row: Row) -> dict[str, Any]:
    return {"times": np.array(row.cells["times"], np.float64)} if "times" in row.cells else {}


def _site(site: str) -> tuple[str, str, str]:
    layer = layer_of(site)
    return (
        f"{'attention' if layer is None else f'layer {layer}'}: recommendation → history",
        "item",
        "history",
    )
