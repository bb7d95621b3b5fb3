"""classify: one label per text; or for as many as the task has inputs."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from regard.data.cache import Arrays
from regard.data.sample import sampled
from regard.decode import untold
from regard.errors import DataError, did_you_mean, quoted
from regard.fields.axis import Axis, ended
from regard.fields.label import Label as LabelField
from regard.files.row import Row
from regard.metrics.metric import Metric
from regard.models.widths import Widths
from regard.tasks.labelled import (
    Label,
    LabelTally,
    Text,
    Texts,
    marks_among,
    segments,
    shortened,
    without_words,
)
from regard.tasks.labels import ClassWeights, read_labels, refuse_texts, weights, write_labels
from regard.tasks.task import Axes, Fields, Loss, Part, Task, TaskSettings, Tell, padded, word_to_word
from regard.text.tokenizer import Tokenizer, TokenizerConfig

MOST_LABELS = 10_000


class LabelConfig(TaskSettings):
    """Of tasks that answer with one label."""

    tokenizer: TokenizerConfig = TokenizerConfig()
    max_length: int = Field(256, ge=4, description="pieces; longer texts are cut (regard check counts them)")
    label_smoothing: float = Field(0.0, ge=0, lt=1)
    class_weights: ClassWeights = Field(
        None, description='what a text counts in training, by label; "balanced": every label as much in all'
    )

    @property
    def fields(self) -> Fields:
        return {"label": LabelField()}


class ClassifyConfig(LabelConfig):
    kind: Literal["classify"] = "classify"


class Classify(Task):
    kind: ClassVar[str] = "classify"
    settings: ClassVar[type[Any]] = ClassifyConfig
    roles: ClassVar[tuple[str, ...]] = ("text", "label")
    inputs: ClassVar[tuple[str, ...]] = ("text",)
    models: ClassVar[tuple[str, ...]] = ("classifier",)
    called: ClassVar[str] = "a classifier"
    metric = Metric("accuracy")
    unusable: ClassVar[str] = "empty"

    def __init__(
        self,
        config: LabelConfig,
        tokenizer: Tokenizer,
        labels: Sequence[str],
        weights: Sequence[float] | None = None,
    ) -> None:
        self.config, self.tokenizer, self.labels = config, tokenizer, tuple(labels)
        self.weights_C = None if weights is None else torch.tensor(weights)
        self.widths = Widths({"vocab": len(tokenizer)}, {"classes": len(self.labels)})

    @classmethod
    def fit(cls, config: LabelConfig, rows: Iterable[Row], tokenizer: Tokenizer | None = None) -> Self:
        labels: Counter[str] = Counter()
        file = "the training data"

        def texts() -> Iterator[str]:
            nonlocal file
            for row in rows:
                if not row.cells["label"]:
                    raise DataError(f"{row.where}: the label is empty; give every training text one")
                refuse_texts([row.cells["label"]], row, "label")
                file = row.file
                labels[row.cells["label"]] += 1
                if len(labels) > MOST_LABELS:
                    raise DataError(
                        f"{file}: more than {MOST_LABELS:,} different labels look like text, not classes; "
                        "choose the right column with data.columns.label"
                    )
                yield cls.spoken(row)

        learnt_from = sampled(texts())
        if len(labels) < 2:
            raise DataError(
                f"{file}: only one label ({', '.join(map(quoted, labels))}) in the training data; "
                f"{cls.called} needs at least two"
            )
        tokenizer = tokenizer or Tokenizer.train(config.tokenizer, learnt_from)
        share = labels.total() / len(labels)
        return cls(
            config, tokenizer, sorted(labels), weights(config.class_weights, labels, lambda n: share / n)
        )

    @classmethod
    def spoken(cls, row: Row) -> str:
        """What the vocabulary is learnt from."""
        return "\n".join(row.cells[role] for role in cls.inputs)

    @property
    def tokenizers(self) -> dict[str, Tokenizer]:
        return {"text": self.tokenizer}

    def save(self, folder: Path) -> None:
        self.tokenizer.save(folder / "tokenizer.json")
        write_labels(folder, self.labels, self.weights_C)

    @classmethod
    def load(cls, config: LabelConfig, folder: Path) -> Self:
        return cls(config, Tokenizer.load(folder / "tokenizer.json"), *read_labels(folder))

    def encode(self, rows: Sequence[Row]) -> list[Text]:
        by_role = (self.tokenizer.ids([row.cells[role] for row in rows]) for role in self.inputs)
        return [self._text(row, texts) for row, *texts in zip(rows, *by_role, strict=True)]

    def _text(self, row: Row, texts: Sequence[list[int]]) -> Text:
        kept = shortened(texts, self.config.max_length)
        second = len(self.tokenizer.framed(kept[0])) if len(kept) > 1 else None
        tokens = np.array(self.tokenizer.framed(*kept))
        return Text(row, tokens, self.index(row), kept != [*texts], second)

    def index(self, row: Row) -> int:
        """Of its label."""
        label = row.cells.get("label")
        if label is None:
            return -1
        if not label:
            raise DataError(f"{row.where}: the label is empty; give every text one")
        if label not in self.labels:
            near = did_you_mean(label, self.labels)
            raise DataError(f"{row.where}: label {quoted(label)} does not occur in the training data{near}")
        return self.labels.index(label)

    def usable(self, example: Text) -> bool:
        """Every text says something."""
        size, least = len(example.tokens), len(self.tokenizer.framed(()))
        return size > least if example.second is None else size > example.second + 1 > least + 1

    def size(self, example: Text) -> tuple[int]:
        return (len(example.tokens),)

    def keep(self, example: Text) -> Arrays:
        second = {} if example.second is None else {"second": np.array([example.second])}
        return {"tokens": example.tokens, "label": np.array([example.label])} | second

    def revive(self, row: Row, kept: Arrays) -> Text:
        second = int(kept["second"][0]) if "second" in kept else None
        return Text(row, kept["tokens"], int(kept["label"][0]), second=second)

    def collate(self, examples: Sequence[Text]) -> Texts:
        return Texts(
            padded([example.tokens for example in examples]),
            torch.tensor([len(example.tokens) for example in examples]),
            torch.tensor([example.label for example in examples]),
            tuple(examples),
            segments(examples),
        )

    def logits(self, model: nn.Module, batch: Texts) -> Tensor:
        told = () if batch.segments_BT is None else (batch.segments_BT,)
        logits_BC: Tensor = model(batch.tokens_BT, batch.lengths_B, *told)
        return logits_BC

    def loss(self, model: nn.Module, batch: Texts) -> Loss:
        logits_BC = self.logits(model, batch)
        smoothed = F.cross_entropy(
            logits_BC,
            batch.labels_B,
            weight=None if self.weights_C is None else self.weights_C.to(logits_BC.device),
            reduction="sum",
            label_smoothing=self.config.label_smoothing,
        )
        plain = F.cross_entropy(logits_BC.detach(), batch.labels_B, reduction="sum")
        return Loss({"texts": Part(smoothed)}, shown={"texts": plain})

    def measure(self, model: nn.Module, batch: Texts, *, thorough: bool) -> LabelTally:
        predicted = [label.text for label in self.predict(model, batch)]
        return LabelTally(predicted, [self.labels[index] for index in batch.labels_B.tolist()])

    def predict(self, model: nn.Module, batch: Texts, tell: Tell = untold) -> list[Label]:
        with torch.inference_mode():
            probabilities = torch.softmax(self.logits(model, batch), dim=-1).tolist()
        labels = [
            self._label(row, example.cut) for row, example in zip(probabilities, batch.examples, strict=True)
        ]
        for place, label in enumerate(labels):
            tell(place, label)
        return labels

    def _label(self, probabilities: list[float], cut: bool) -> Label:
        index = max(range(len(probabilities)), key=probabilities.__getitem__)
        by_label = dict(zip(self.labels, probabilities, strict=True))
        return Label(self.labels[index], probabilities[index], by_label, index, cut)

    def force(self, example: Text, prediction: Label) -> Texts:
        return self.collate([replace(example, label=prediction.index)])

    def replay(self, model: nn.Module, batch: Texts) -> Tensor:
        log_probs_BC = torch.log_softmax(self.logits(model, batch), dim=-1)
        return log_probs_BC.gather(1, batch.labels_B[:, None])

    def stays(self, tokens_1T: Tensor, pieces: Sequence[int]) -> Tensor:
        """Which of the pieces are marks, which are never left out: stays_B."""
        return marks_among(self.tokenizer, tokens_1T, pieces)

    def leave_out(self, batch: Texts, pieces: Sequence[int]) -> Texts:
        n, stays_B = len(pieces), self.stays(batch.tokens_BT, pieces)
        return Texts(
            without_words(batch.tokens_BT, pieces, stays_B),
            batch.lengths_B - 1 + stays_B.long(),
            batch.labels_B.expand(n),
            batch.examples * n,
            None if batch.segments_BT is None else without_words(batch.segments_BT, pieces, stays_B),
        )

    def axes(self, example: Text, prediction: Label) -> Axes:
        marks, size = self.tokenizer.marks, len(example.tokens)
        begin, end = self.tokenizer.pieces(marks.begin), self.tokenizer.pieces([marks.end])
        parts = pairwise((len(begin), size if example.second is None else example.second, size))
        shown = [
            word
            for role, (first, after) in zip(self.inputs, parts, strict=False)
            for word in (*self.tokenizer.words(example.row.cells[role], after - first - 1), *end)
        ]
        by_name = {
            "text": ended("text", (*begin, *shown)),
            "label": Axis("label", (prediction.text,), unit="label"),
        }
        return Axes(by_name, left_out="text", answer="label", site=_site)


def _site(site: str) -> tuple[str, str, str]:
    if site.startswith("pooling"):
        return "pooling: label → words", "label", "text"
    return word_to_word(site)
