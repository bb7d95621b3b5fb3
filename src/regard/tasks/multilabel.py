"""multilabel: any number of labels for an input, each decided by itself."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import BaseModel, Field
from torch import Tensor, nn
from torch.nn import functional as F

from regard.data.example import Example
from regard.data.sample import sampled
from regard.decode import in_order
from regard.errors import DataError, RecipeError, shown
from regard.fields.axis import Axis
from regard.fields.label import MOST_LABELS, refuse_texts
from regard.fields.labels import Labels
from regard.files.row import Row
from regard.metrics.classify import Weigh, by_label, multi_label
from regard.metrics.metric import Metric
from regard.metrics.resample import unweighted
from regard.metrics.tally import Columns
from regard.tasks.classify import Classify, ClassifyConfig, LabelBatch, mixed_labels
from regard.tasks.labels import ClassWeights, class_weights
from regard.tasks.multilabel_data import MULTILABEL
from regard.tasks.prediction import Prediction, Ranked, Rounded, by_probability
from regard.tasks.task import Axes, Fields, Loss, Part, unit_to_unit
from regard.tasks.task_data import TaskData
from regard.text.tokenizer import Tokenizer


class MultilabelConfig(ClassifyConfig):
    """A text, or something else, in; any number of labels out."""

    kind: Literal["multilabel"] = "multilabel"  # type: ignore[assignment]
    separator: str = Field(",", min_length=1, max_length=8, description="stands between the labels of a text")
    threshold: float = Field(0.5, gt=0, lt=1, description="the probability from which a label is given")
    class_weights: ClassWeights = Field(
        None,
        description='what having a label counts in training; "balanced": as much in all as not having it',
    )

    @property
    def unfitted(self) -> Fields:
        return self.given | {"label": Labels(self.separator)}


class LabelsPrediction(Prediction):
    """`text` is as in the data: the labels, with what separates them."""

    labels: tuple[str, ...]
    probability: Rounded
    """Probability that exactly these are right."""
    probabilities: dict[str, Rounded]

    def ranked(self) -> list[Ranked]:
        """Labels by their probabilities, whether they are answered or not."""
        return by_probability(self.probabilities)


@dataclass(frozen=True)
class LabelsTally(Columns):
    predicted: list[tuple[str, ...]] = field(default_factory=list)
    gold: list[tuple[str, ...]] = field(default_factory=list)

    @property
    def truth(self) -> list[tuple[str, ...]]:
        return self.gold

    @cached_property
    def weighed(self) -> Weigh:
        return multi_label(self.predicted, self.gold)

    def metrics(self) -> dict[str, float]:
        return unweighted(self)

    def signatures(self) -> dict[str, str]:
        return {"accuracy": "texts with exactly their labels"}

    def by_kind(self) -> dict[str, dict[str, float]]:
        """Precision, recall and F1 of every label, the commonest first."""
        return by_label(self.predicted, self.gold)


class Multilabel(Classify):
    kind: ClassVar[str] = "multilabel"
    data: ClassVar[TaskData] = MULTILABEL
    says: ClassVar[str] = "Texts in, the labels of each with all probabilities out."
    settings: ClassVar[type[Any]] = MultilabelConfig
    prediction: ClassVar[type[BaseModel]] = LabelsPrediction
    called: ClassVar[str] = "a classifier of several labels"
    target_name: ClassVar[str] = "labels"
    metric = Metric("micro_f1")
    config: MultilabelConfig
    label: Any

    @classmethod
    def fit(cls, config: Any, rows: Iterable[Row], tokenizer: Tokenizer | None = None) -> Self:
        counts: Counter[str] = Counter()
        n_examples = 0
        fields, label = config.given, Labels(config.separator)

        def values() -> Iterator[tuple[Any, ...]]:
            nonlocal n_examples
            for row in rows:
                labels = label.split(row.cells["label"])
                refuse_texts(labels, row.where, "label")
                counts.update(labels)
                if len(counts) > MOST_LABELS:
                    raise DataError(
                        f"{row.where}: more than {MOST_LABELS:,} different labels look like text; "
                        "choose the right column with data.columns.label, or another task.separator"
                    )
                n_examples += 1
                yield tuple(one.parse(row.cells[role], row.where) for role, one in fields.items())

        learnt_from = sampled(values())
        if len(counts) < 2:
            raise DataError(
                f"the training data have only {len(counts)} different labels; at least two are needed "
                f"(what stands between labels is task.separator, {config.separator!r})"
            )
        weights = class_weights(config.class_weights, counts, lambda n: max(1, n_examples - n) / n)
        return cls(config, cls.fit_given(fields, learnt_from, tokenizer), label.fit(counts), weights)

    def with_settings(self, *, threshold: Any = None, **changes: Any) -> Self:
        """It does not search, but it may be told from which probability on a label is given."""
        if changes:
            raise RecipeError(f"{next(iter(changes))}: {self.called} has one setting, threshold")
        try:
            wanted = float(threshold)
        except (TypeError, ValueError, OverflowError):
            wanted = 0.0
        if not 0 < wanted < 1:
            raise RecipeError(f"threshold: {shown(threshold)} should be a number above 0 and below 1")
        config = self.config.model_copy(update={"threshold": wanted})
        weights = None if self.weights_C is None else self.weights_C.tolist()
        return type(self)(config, self.given, self.label, weights)

    def samples(
        self, model: nn.Module, examples: Sequence[Example], device: torch.device
    ) -> list[dict[str, str]]:
        """Labels of a list are shown as those of a text are."""
        examples_shown = super().samples(model, examples, device)
        cells = [example.row.cells["label"] for example in examples]
        return [
            sample | {"expected": self.config.separator.join(cell)} if isinstance(cell, list) else sample
            for sample, cell in zip(examples_shown, cells, strict=True)
        ]

    def target(self, row: Row) -> dict[str, Any]:
        """The numbers of the labels; none when they are unknown."""
        (coded,) = self.label.encode([self.label.parse(row.cells.get("label", ""), row.where)])
        return dict(coded.arrays)

    def collate(self, examples: Sequence[Example]) -> LabelBatch:
        """`labels_B` has a column for each label: 1 where an example has it, else 0."""
        if "share" in examples[0].arrays:
            labels_BC = mixed_labels(examples, self.target_name, len(self.labels))
            return LabelBatch(self.collated(examples), labels_BC, tuple(examples))
        labels_BC = torch.zeros(len(examples), len(self.labels))
        for row, example in enumerate(examples):
            labels_BC[row, example.arrays["labels"].tolist()] = 1
        return LabelBatch(self.collated(examples), labels_BC, tuple(examples))

    def loss(self, model: nn.Module, batch: LabelBatch) -> Loss:
        """A question for each label; what is shown is −log of the probability of exactly these labels."""
        logits_BC, labels_BC = model(batch.inputs), batch.labels_B
        smoothing = self.config.label_smoothing
        learnt = F.binary_cross_entropy_with_logits(
            logits_BC,
            (1 - smoothing) * labels_BC + smoothing / 2,
            pos_weight=None if self.weights_C is None else self.weights_C.to(logits_BC.device),
            reduction="sum",
        )
        plain = -log_prob_of_all(logits_BC.detach(), labels_BC).sum()
        return Loss({"examples": Part(learnt)}, shown={"examples": plain})

    def measure(self, model: nn.Module, batch: LabelBatch, *, thorough: bool) -> LabelsTally:
        return self.tally(batch.examples, [answer.labels for answer in in_order(self.predict(model, batch))])

    def mistakes(self, tally: Any) -> None:
        """Return nothing, as some of several labels may be right."""

    def tally(self, examples: Sequence[Example], answers: Sequence[Any]) -> LabelsTally:
        """The tally of tuples of labels."""
        gold = [
            tuple(self.labels[n] for n in sorted(example.arrays["labels"].tolist())) for example in examples
        ]
        return LabelsTally([*answers], gold)

    def predict(self, model: nn.Module, batch: LabelBatch) -> Iterator[tuple[int, LabelsPrediction]]:
        with torch.inference_mode():
            logits_BC = model(batch.inputs)
            likely_BC = torch.sigmoid(logits_BC)
            given_BC = likely_BC >= self.config.threshold
            sure_B = log_prob_of_all(logits_BC, given_BC.to(logits_BC.dtype)).exp()
        for place, example in enumerate(batch.examples):
            labels = tuple(self.labels[n] for n in given_BC[place].nonzero().flatten().tolist())
            yield (
                place,
                LabelsPrediction(
                    text=self.config.separator.join(labels),
                    labels=labels,
                    probability=sure_B[place].item(),
                    probabilities=dict(zip(self.labels, likely_BC[place].tolist(), strict=True)),
                    input_cut=example.notes.get("cut", False),
                ),
            )

    def force(self, example: Example, prediction: LabelsPrediction) -> LabelBatch:
        numbers = np.array([self.labels.index(label) for label in prediction.labels], np.int64)
        return self.collate([replace(example, arrays={**example.arrays, "labels": numbers})])

    def replay(self, model: nn.Module, batch: LabelBatch) -> Tensor:
        """The log-probability of the answer as a whole: these labels, and no others."""
        return log_prob_of_all(model(batch.inputs), batch.labels_B)[:, None]

    def answered(self, labels_B: Tensor) -> Tensor:
        return labels_B

    def axes(self, example: Example, prediction: LabelsPrediction) -> Axes:
        read = self.axis(example)
        by_name = {"input": read, "labels": Axis("labels", (prediction.text or "(none)",), unit="label")}
        return Axes(by_name, left_out="input", answer="labels", site=unit_to_unit("labels"))


def log_prob_of_all(logits_BC: Tensor, labels_BC: Tensor) -> Tensor:
    """The log-probability of having exactly these labels, of each example."""
    return -F.binary_cross_entropy_with_logits(logits_BC, labels_BC, reduction="none").sum(-1)
