"""multilabel: any number of labels per text, each decided by itself."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
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
from regard.errors import DataError, RecipeError, did_you_mean, quoted, shown
from regard.fields.axis import Axis, ended
from regard.fields.labels import Labels as LabelsField
from regard.files.row import Row
from regard.metrics.metric import Metric
from regard.models.widths import Widths
from regard.tasks.classify import MOST_LABELS
from regard.tasks.labelled import marks_among, without_words
from regard.tasks.labels import ClassWeights, read_labels, refuse_texts, weights, write_labels
from regard.tasks.multilabelled import Labels, LabelsTally, Multilabelled, Multilabelleds
from regard.tasks.task import Axes, Loss, Part, Task, TaskSettings, Tell, padded, word_to_word
from regard.text.tokenizer import Tokenizer, TokenizerConfig


class MultilabelConfig(TaskSettings):
    kind: Literal["multilabel"] = "multilabel"
    tokenizer: TokenizerConfig = TokenizerConfig()
    separator: str = Field(",", min_length=1, max_length=8, description="stands between the labels of a text")
    threshold: float = Field(0.5, gt=0, lt=1, description="the probability from which a label is given")
    max_length: int = Field(256, ge=4, description="pieces; longer texts are cut (regard check counts them)")
    label_smoothing: float = Field(0.0, ge=0, lt=1)
    class_weights: ClassWeights = Field(
        None,
        description='what having a label counts in training; "balanced": as much in all as not having it',
    )

    @property
    def fields(self) -> dict[str, LabelsField]:
        return {"label": LabelsField(self.separator)}


class Multilabel(Task):
    kind: ClassVar[str] = "multilabel"
    settings: ClassVar[type[Any]] = MultilabelConfig
    roles: ClassVar[tuple[str, ...]] = ("text", "label")
    inputs: ClassVar[tuple[str, ...]] = ("text",)
    models: ClassVar[tuple[str, ...]] = ("classifier",)
    metric = Metric("micro_f1")
    unusable: ClassVar[str] = "empty"

    def __init__(
        self,
        config: MultilabelConfig,
        tokenizer: Tokenizer,
        labels: Sequence[str],
        weights: Sequence[float] | None = None,
    ) -> None:
        self.config, self.tokenizer, self.labels = config, tokenizer, tuple(labels)
        self.index = {label: n for n, label in enumerate(self.labels)}
        self.weights_C = None if weights is None else torch.tensor(weights)
        self.widths = Widths({"vocab": len(tokenizer)}, {"classes": len(self.labels)})

    @classmethod
    def fit(cls, config: MultilabelConfig, rows: Iterable[Row], tokenizer: Tokenizer | None = None) -> Self:
        counts: Counter[str] = Counter()
        n_texts = 0

        def texts() -> Iterator[str]:
            nonlocal n_texts
            for row in rows:
                own = config.fields["label"].parse(row.cells["label"])
                refuse_texts(own, row, "label")
                counts.update(own)
                if len(counts) > MOST_LABELS:
                    raise DataError(
                        f"{row.where}: more than {MOST_LABELS:,} different labels look like text; "
                        "choose the right column with data.columns.label, or another task.separator"
                    )
                n_texts += 1
                yield row.cells["text"]

        learnt_from = sampled(texts())
        if len(counts) < 2:
            raise DataError(
                f"the training data have only {len(counts)} different labels; at least two are needed "
                f"(what stands between labels is task.separator, {config.separator!r})"
            )
        tokenizer = tokenizer or Tokenizer.train(config.tokenizer, learnt_from)
        found = weights(config.class_weights, counts, lambda n: max(1, n_texts - n) / n)
        return cls(config, tokenizer, sorted(counts), found)

    @property
    def tokenizers(self) -> dict[str, Tokenizer]:
        return {"text": self.tokenizer}

    def searching(self, *, threshold: Any = None, **changes: Any) -> Self:
        """It does not search, but it may be told from which probability on a label is given."""
        if changes:
            raise RecipeError(f"{next(iter(changes))}: such a model has no such setting; it has threshold")
        try:
            wanted = float(threshold)
        except (TypeError, ValueError, OverflowError):
            wanted = 0.0
        if not 0 < wanted < 1:
            raise RecipeError(f"threshold: {shown(threshold)} should be a number above 0 and below 1")
        config = self.config.model_copy(update={"threshold": wanted})
        own = None if self.weights_C is None else self.weights_C.tolist()
        return type(self)(config, self.tokenizer, self.labels, own)

    def save(self, folder: Path) -> None:
        self.tokenizer.save(folder / "tokenizer.json")
        write_labels(folder, self.labels, self.weights_C)

    @classmethod
    def load(cls, config: MultilabelConfig, folder: Path) -> Self:
        return cls(config, Tokenizer.load(folder / "tokenizer.json"), *read_labels(folder))

    def encode(self, rows: Sequence[Row]) -> list[Multilabelled]:
        found = self.tokenizer.ids([row.cells["text"] for row in rows])
        return [self._labelled(row, ids) for row, ids in zip(rows, found, strict=True)]

    def _labelled(self, row: Row, ids: list[int]) -> Multilabelled:
        limit = self.config.max_length
        own = self.config.fields["label"].parse(row.cells.get("label", ""))
        for label in own:
            if label not in self.index:
                near = did_you_mean(label, self.labels)
                raise DataError(
                    f"{row.where}: label {quoted(label)} does not occur in the training data{near}"
                )
        labels = np.array([self.index[label] for label in own], np.int64)
        return Multilabelled(row, np.array(self.tokenizer.framed(ids[:limit])), labels, cut=len(ids) > limit)

    def usable(self, example: Multilabelled) -> bool:
        return len(example.tokens) > len(self.tokenizer.framed(()))

    def usable_input(self, example: Multilabelled) -> bool:
        return self.usable(example)

    def size(self, example: Multilabelled) -> tuple[int]:
        return (len(example.tokens),)

    def keep(self, example: Multilabelled) -> Arrays:
        return {"tokens": example.tokens, "labels": example.labels}

    def revive(self, row: Row, kept: Arrays) -> Multilabelled:
        return Multilabelled(row, kept["tokens"], kept["labels"])

    def collate(self, examples: Sequence[Multilabelled]) -> Multilabelleds:
        labels_BC = torch.zeros(len(examples), len(self.labels))
        for row, example in enumerate(examples):
            labels_BC[row, example.labels.tolist()] = 1
        return Multilabelleds(
            padded([example.tokens for example in examples]),
            torch.tensor([len(example.tokens) for example in examples]),
            labels_BC,
            tuple(examples),
        )

    def loss(self, model: nn.Module, batch: Multilabelleds) -> Loss:
        """Of a text: the sum over all labels, which is −log of the probability of exactly its own."""
        logits_BC, labels_BC = model(batch.tokens_BT, batch.lengths_B), batch.labels_BC
        smoothing = self.config.label_smoothing
        learnt = F.binary_cross_entropy_with_logits(
            logits_BC,
            (1 - smoothing) * labels_BC + smoothing / 2,
            pos_weight=None if self.weights_C is None else self.weights_C.to(logits_BC.device),
            reduction="sum",
        )
        plain = -told_together(logits_BC.detach(), labels_BC).sum()
        return Loss({"texts": Part(learnt)}, shown={"texts": plain})

    def measure(self, model: nn.Module, batch: Multilabelleds, *, thorough: bool) -> LabelsTally:
        predicted = [answer.labels for answer in self.predict(model, batch)]
        gold = [tuple(self.labels[n] for n in sorted(example.labels.tolist())) for example in batch.examples]
        return LabelsTally(predicted, gold)

    def predict(self, model: nn.Module, batch: Multilabelleds, tell: Tell = untold) -> list[Labels]:
        with torch.inference_mode():
            logits_BC = model(batch.tokens_BT, batch.lengths_B)
            likely_BC = torch.sigmoid(logits_BC)
            given_BC = likely_BC >= self.config.threshold
            sure_B = told_together(logits_BC, given_BC.to(logits_BC.dtype)).exp()
        answers = []
        for place, example in enumerate(batch.examples):
            likely = dict(zip(self.labels, likely_BC[place].tolist(), strict=True))
            given = tuple(self.labels[n] for n in given_BC[place].nonzero().flatten().tolist())
            text = self.config.separator.join(given)
            answers.append(Labels(text, given, sure_B[place].item(), likely, example.cut))
            tell(place, answers[-1])
        return answers

    def force(self, example: Multilabelled, prediction: Labels) -> Multilabelleds:
        given = np.array([self.index[label] for label in prediction.labels], np.int64)
        return self.collate([replace(example, labels=given)])

    def replay(self, model: nn.Module, batch: Multilabelleds) -> Tensor:
        """Of the answer as a whole: these labels, and no others."""
        return told_together(model(batch.tokens_BT, batch.lengths_B), batch.labels_BC)[:, None]

    def leave_out(self, batch: Multilabelleds, pieces: Sequence[int]) -> Multilabelleds:
        n, stays_B = len(pieces), marks_among(self.tokenizer, batch.tokens_BT, pieces)
        return Multilabelleds(
            without_words(batch.tokens_BT, pieces, stays_B),
            batch.lengths_B - 1 + stays_B.long(),
            batch.labels_BC.expand(n, -1),
            batch.examples * n,
        )

    def axes(self, example: Multilabelled, prediction: Labels) -> Axes:
        words = self.tokenizer.words(example.row.cells["text"], self.config.max_length)
        marks = self.tokenizer.pieces(self.tokenizer.framed(()))
        told = prediction.text or "(none)"
        by_name = {
            "text": ended("text", (*marks[:-1], *words, marks[-1])),
            "labels": Axis("labels", (told,), unit="label"),
        }
        return Axes(by_name, left_out="text", answer="labels", site=_site)


def told_together(logits_BC: Tensor, labels_BC: Tensor) -> Tensor:
    """Log-probability of having exactly these labels: told_B."""
    return -F.binary_cross_entropy_with_logits(logits_BC, labels_BC, reduction="none").sum(-1)


def _site(site: str) -> tuple[str, str, str]:
    if site.startswith("pooling"):
        return "pooling: labels → words", "labels", "text"
    return word_to_word(site)
