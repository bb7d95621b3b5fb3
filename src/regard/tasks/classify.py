"""classify: one label for an input of any kind, or for two texts that are read together."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import BaseModel, Field, field_validator
from torch import Tensor, nn
from torch.nn import functional as F

from regard.baselines import Baseline
from regard.baselines.majority import Majority
from regard.baselines.ngrams import NgramRegression
from regard.baselines.pixels import MeanFrame, NearestMean, OneFrame, PixelRegression
from regard.config import Choice
from regard.data.example import Example
from regard.data.sample import sampled
from regard.decode import in_order
from regard.errors import DataError, quoted
from regard.fields import FIELDS
from regard.fields.axis import Axis
from regard.fields.field import Augmented, Coded, FieldSettings, Input
from regard.fields.label import MOST_LABELS, Label, refuse_texts
from regard.fields.text import Text
from regard.files.row import Row
from regard.layers.inputs import Inputs
from regard.metrics.classify import Weigh, by_label, single_label
from regard.metrics.metric import Metric
from regard.metrics.resample import unweighted
from regard.metrics.tally import Columns
from regard.models.widths import Widths
from regard.tasks.classify_data import CLASSIFY
from regard.tasks.labels import ClassWeights, class_weights, read_weights, write_weights
from regard.tasks.prediction import Prediction, Ranked, Rounded, by_probability
from regard.tasks.shared import moved, tensors
from regard.tasks.task import Axes, Fields, Loss, Part, Picture, Task, TaskSettings, unit_to_unit
from regard.tasks.task_data import TaskData
from regard.text.tokenizer import Tokenizer, TokenizerConfig


class LabelConfig(TaskSettings):
    """Settings of tasks that answer with one label."""

    tokenizer: TokenizerConfig = TokenizerConfig()
    max_length: int = Field(256, ge=4, description="tokens; longer texts are cut (regard check counts them)")
    label_smoothing: float = Field(0.0, ge=0, lt=1)
    class_weights: ClassWeights = Field(
        None, description='what a text counts in training, by label; "balanced": every label as much in all'
    )

    @property
    def given(self) -> dict[str, Any]:
        """The unfitted fields that are read, by role."""
        return {"text": Text(self.tokenizer)}

    @property
    def unfitted(self) -> Fields:
        return self.given | {"label": Label()}

    @property
    def asked(self) -> dict[str, Any]:
        return {role: one for role, one in self.given.items() if not isinstance(one, Text)}

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(self.given)

    @property
    def roles(self) -> tuple[str, ...]:
        return (*self.given, "label")


FieldConfig = Annotated[FieldSettings, Choice(FIELDS, lambda field: field.settings)]


class ClassifyConfig(LabelConfig):
    """A text, or something else, in; one label out."""

    kind: Literal["classify"] = "classify"
    fields: dict[str, FieldConfig] = Field(
        {}, description="settings of an input that is no text, by its name: a table `[fields.NAME]`"
    )

    @field_validator("fields", mode="before")
    @classmethod
    def _kinds_by_name(cls, given: Any) -> Any:
        """A field that is named after a kind of data need not say which it is."""
        if not isinstance(given, Mapping):
            return given
        if "text" in given:
            raise ValueError("a text has no settings here; its vocabulary is task.tokenizer")
        return {
            role: {"kind": role} | dict(table) if isinstance(table, Mapping) and role in FIELDS else table
            for role, table in given.items()
        }

    @property
    def given(self) -> dict[str, Any]:
        """One field of any kind: the one that `[fields]` names, else a text."""
        others = {role: settings for role, settings in self.fields.items() if role != "label"}
        if not others:
            return {"text": Text(self.tokenizer)}
        return {role: FIELDS[settings.kind].of(settings) for role, settings in others.items()}


@dataclass(frozen=True)
class LabelBatch:
    inputs: Inputs
    labels_B: Tensor
    examples: tuple[Example, ...]

    @property
    def counts(self) -> dict[str, int]:
        return {"examples": len(self.examples)}

    def to(self, device: torch.device) -> Self:
        return replace(self, inputs=moved(self.inputs, device), labels_B=self.labels_B.to(device))


class LabelPrediction(Prediction):
    probability: Rounded
    probabilities: dict[str, Rounded]
    index: int = Field(exclude=True)

    def ranked(self) -> list[Ranked]:
        return by_probability(self.probabilities)


@dataclass(frozen=True)
class LabelTally(Columns):
    predicted: list[str] = field(default_factory=list)
    gold: list[str] = field(default_factory=list)

    @property
    def truth(self) -> list[str]:
        return self.gold

    @cached_property
    def weighed(self) -> Weigh:
        return single_label(self.predicted, self.gold)

    def metrics(self) -> dict[str, float]:
        return unweighted(self)

    def signatures(self) -> dict[str, str]:
        return {}

    def by_kind(self) -> dict[str, dict[str, float]]:
        """Precision, recall and F1 of every label, the commonest first."""
        return by_label([(label,) for label in self.predicted], [(label,) for label in self.gold])


class Classify(Task):
    kind: ClassVar[str] = "classify"
    data: ClassVar[TaskData] = CLASSIFY
    says: ClassVar[str] = "Texts in, labels with their probabilities out."
    settings: ClassVar[type[Any]] = ClassifyConfig
    prediction: ClassVar[type[BaseModel]] = LabelPrediction
    models: ClassVar[tuple[str, ...]] = ("classifier",)
    called: ClassVar[str] = "a classifier"
    metric = Metric("accuracy")
    target_name: ClassVar[str] = "label"
    """The array of what is to be answered."""
    baselines: ClassVar[tuple[type[Baseline], ...]] = (
        Majority,
        NgramRegression,
        PixelRegression,
        NearestMean,
        OneFrame,
        MeanFrame,
    )

    def __init__(
        self,
        config: LabelConfig,
        given: dict[str, Any],
        label: Any,
        weights: Sequence[float] | None = None,
    ) -> None:
        """Takes the fitted fields that are read, by role, and that of the label."""
        self.config, self.given, self.label = config, given, label
        self.input = self.joined()
        self.weights_C = None if weights is None else torch.tensor(weights)
        self.augmented = self.input if isinstance(self.input, Augmented) and self.input.draws else None
        self.widths = Widths(self.input.width, label.width)

    def joined(self) -> Input:
        """Input of the encoder."""
        (only,) = self.given.values()
        read: Input = only.alone(self.config.max_length)
        return read

    @property
    def labels(self) -> tuple[str, ...]:
        names: tuple[str, ...] = self.label.names
        return names

    @property
    def tokenizer(self) -> Tokenizer:
        """Tokenizer of all its texts."""
        return next(iter(self.tokenizers.values()))

    @property
    def tokenizers(self) -> dict[str, Tokenizer]:
        """One, as texts that are read together share it."""
        role, first = next(iter(self.given.items()))
        return {role: first.tokenizer} if isinstance(first, Text) else {}

    @classmethod
    def fit(cls, config: LabelConfig, rows: Iterable[Row], tokenizer: Tokenizer | None = None) -> Self:
        counts: Counter[str] = Counter()
        file = "the training data"
        fields = config.given

        def values() -> Iterator[tuple[Any, ...]]:
            nonlocal file
            for row in rows:
                label = row.cells["label"]
                if not label:
                    raise DataError(f"{row.where}: the label is empty; give every training text one")
                refuse_texts([label], row.where, "label")
                file = row.file
                counts[label] += 1
                if len(counts) > MOST_LABELS:
                    raise DataError(
                        f"{file}: more than {MOST_LABELS:,} different labels look like text, not classes; "
                        "choose the right column with data.columns.label"
                    )
                yield tuple(one.parse(row.cells[role], row.where) for role, one in fields.items())

        learnt_from = sampled(values())
        if len(counts) < 2:
            raise DataError(
                f"{file}: only one label ({', '.join(map(quoted, counts))}) in the training data; "
                f"{cls.called} needs at least two"
            )
        share = counts.total() / len(counts)
        weights = class_weights(config.class_weights, counts, lambda n: share / n)
        return cls(
            config, cls.fit_given(fields, learnt_from, tokenizer), cls._label(config).fit(counts), weights
        )

    @classmethod
    def fit_given(
        cls, fields: dict[str, Any], learnt_from: Sequence[tuple[Any, ...]], tokenizer: Tokenizer | None
    ) -> dict[str, Any]:
        """The fitted fields: a vocabulary is learnt from all texts of a row together, unless it is given."""
        first, *_ = fields.values()
        if not isinstance(first, Text):
            return {
                role: one.fit([values[place] for values in learnt_from])
                for place, (role, one) in enumerate(fields.items())
            }
        texts = ("\n".join(map(cls.spoken, values)) for values in learnt_from)
        learnt = first.fit(texts, tokenizer).learnt
        return {role: replace(one, learnt=learnt) for role, one in fields.items()}

    @staticmethod
    def spoken(value: Any) -> str:
        """Part of a text that the vocabulary is learnt from."""
        return str(value)

    def save(self, folder: Path) -> None:
        first, *_ = self.given.values()
        first.save(folder)
        self.label.save(folder)
        write_weights(folder, self.weights_C)

    @classmethod
    def load(cls, config: LabelConfig, folder: Path) -> Self:
        first, *others = config.given.items()
        fitted = first[1].load(folder)
        given = {first[0]: fitted} | {role: replace(one, learnt=fitted.learnt) for role, one in others}
        label = cls._label(config).load(folder)
        return cls(config, given, label, read_weights(folder, len(label.names)))

    @classmethod
    def of_vocabulary(
        cls,
        config: Any,
        tokenizer: Tokenizer,
        labels: Sequence[str],
        weights: Sequence[float] | None = None,
    ) -> Self:
        """The task with a vocabulary and labels that were learnt elsewhere."""
        given = {role: replace(one, learnt=tokenizer) for role, one in config.given.items()}
        return cls(config, given, replace(cls._label(config), names=tuple(labels)), weights)

    @classmethod
    def _label(cls, config: Any) -> Any:
        return config.unfitted["label"]

    def values(self, row: Row) -> list[Any]:
        """The values of what is read of a row."""
        return [one.parse(row.cells[role], row.where) for role, one in self.given.items()]

    def encode(self, rows: Sequence[Row]) -> list[Example]:
        values = list(zip(*map(self.values, rows), strict=True))
        parts = [one.encode(column) for one, column in zip(self.given.values(), values, strict=True)]
        return [
            Example(row, {**coded.arrays, **self.target(row)}, coded.notes)
            for row, coded in zip(rows, map(self.input.assemble, zip(*parts, strict=True)), strict=True)
        ]

    def target(self, row: Row) -> dict[str, Any]:
        """The arrays of what is to be answered; −1 when that is unknown."""
        if "label" not in row.cells:
            return {"label": np.array([-1])}
        (coded,) = self.label.encode([self.label.parse(row.cells["label"], row.where)])
        return dict(coded.arrays)

    def is_answerable(self, example: Example) -> bool:
        return not self.input.is_empty(example.arrays)

    def size(self, example: Example) -> tuple[int]:
        return (self.input.size(example.arrays),)

    @property
    def draws(self) -> bool:  # type: ignore[override]
        return self.augmented is not None

    def draw(self, example: Example, rng: np.random.Generator, others: Sequence[Example]) -> Example:
        """The input as it is this time; perhaps mixed with a partner, whose labels it then has too."""
        assert self.augmented is not None
        arrays = self.augmented.draw(example.arrays, rng)
        if self.augmented.mixup:
            partner = others[int(rng.integers(len(others)))].arrays
            share = float(rng.beta(self.augmented.mixup, self.augmented.mixup))
            mixed = self.augmented.mix(arrays, self.augmented.draw(partner, rng), share)
            arrays = {**mixed, "partner": partner[self.target_name], "share": np.array([share])}
        return replace(example, arrays=arrays)

    def collate(self, examples: Sequence[Example]) -> LabelBatch:
        """Labels by their numbers; where examples are mixed, `labels_B` has the shares of all labels."""
        if "share" in examples[0].arrays:
            labels_B = mixed_labels(examples, self.target_name, len(self.labels))
        else:
            labels_B = torch.tensor([int(example.arrays["label"][0]) for example in examples])
        return LabelBatch(self.collated(examples), labels_B, tuple(examples))

    def collated(self, examples: Sequence[Example]) -> Inputs:
        return tensors(self.input.collate([example.arrays for example in examples]))

    def loss(self, model: nn.Module, batch: LabelBatch) -> Loss:
        logits_BC = model(batch.inputs)
        smoothed = F.cross_entropy(
            logits_BC,
            batch.labels_B,
            weight=None if self.weights_C is None else self.weights_C.to(logits_BC.device),
            reduction="sum",
            label_smoothing=self.config.label_smoothing,
        )
        plain = F.cross_entropy(logits_BC.detach(), batch.labels_B, reduction="sum")
        return Loss({"examples": Part(smoothed)}, shown={"examples": plain})

    def measure(self, model: nn.Module, batch: LabelBatch, *, thorough: bool) -> Any:
        return self.tally(batch.examples, [answer.text for answer in in_order(self.predict(model, batch))])

    def tally(self, examples: Sequence[Example], answers: Sequence[Any]) -> Any:
        """The tally of labels."""
        return LabelTally([*answers], [self.labels[int(one.arrays["label"][0])] for one in examples])

    def mistakes(self, tally: Any) -> list[tuple[int, str]] | None:
        answers = zip(tally.predicted, tally.gold, strict=True)
        return [(at, gold) for at, (predicted, gold) in enumerate(answers) if predicted != gold]

    def predict(self, model: nn.Module, batch: LabelBatch) -> Iterator[tuple[int, Any]]:
        with torch.inference_mode():
            probabilities = torch.softmax(model(batch.inputs), dim=-1).tolist()
        yield from enumerate(map(self._answer, probabilities, batch.examples))

    def _answer(self, probabilities: list[float], example: Example) -> LabelPrediction:
        index = max(range(len(probabilities)), key=probabilities.__getitem__)
        return LabelPrediction(
            text=self.labels[index],
            probability=probabilities[index],
            probabilities=dict(zip(self.labels, probabilities, strict=True)),
            index=index,
            input_cut=example.notes.get("cut", False),
        )

    def force(self, example: Example, prediction: Any) -> Any:
        label = {"label": np.array([prediction.index])}
        return self.collate([replace(example, arrays={**example.arrays, **label})])

    def replay(self, model: nn.Module, batch: Any) -> Tensor:
        log_probs_BC = torch.log_softmax(model(batch.inputs), dim=-1)
        return log_probs_BC.gather(1, batch.labels_B[:, None])

    def leave_out(self, batch: Any, axis: Axis, units: Sequence[int]) -> Any:
        n, device = len(units), batch.labels_B.device
        arrays = {name: tensor.cpu().numpy() for name, tensor in batch.inputs.items()}
        left = tensors(self.input.without(arrays, axis, units, "remove"))
        return replace(
            batch,
            inputs=moved(left, device),
            labels_B=batch.labels_B.expand(n, *batch.labels_B.shape[1:]),
            examples=batch.examples * n,
        )

    def pictures(self, model: nn.Module, batch: Any) -> list[Picture]:
        """Map of what n-grams say for the answer, where the model reads such."""
        ngrams: Any = getattr(model, "ngrams", None)
        if ngrams is None:
            return []
        shares_1T = ngrams.shares(batch.inputs, self.answered(batch.labels_B))
        title = f"n-grams: {self.target_name} → tokens"
        return [Picture("ngrams", title, shares_1T, self.target_name, "input", holds="share", rated=True)]

    def answered(self, labels_B: Tensor) -> Tensor:
        """1 for each label that is answered, else 0."""
        return F.one_hot(labels_B, len(self.labels)).float()

    def axis(self, example: Example) -> Axis:
        return self.input.axis(self.values(example.row), Coded(example.arrays, example.notes))

    def axes(self, example: Example, prediction: Any) -> Axes:
        read = self.axis(example)
        by_name = {"input": read, "label": Axis("label", (prediction.text,), unit="label")}
        return Axes(by_name, left_out="input", answer="label", site=unit_to_unit("label"))


def mixed_labels(examples: Sequence[Example], name: str, n_labels: int) -> Tensor:
    """Shares of the labels in examples that were mixed by twos."""
    labels_BC = torch.zeros(len(examples), n_labels)
    for labels_C, example in zip(labels_BC, examples, strict=True):
        share = float(example.arrays["share"][0])
        labels_C[example.arrays[name].tolist()] += share
        labels_C[example.arrays["partner"].tolist()] += 1 - share
    return labels_BC
