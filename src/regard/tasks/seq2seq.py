"""Translating, summarising and replying: an input in, a text out, by a model that encodes
the one and decodes the other. The source may be a field of any kind, the target is text. What differs is in
their files: roles, what becomes of long inputs, metrics.
"""

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn import functional as F

from regard.data.example import Example
from regard.data.sample import sampled
from regard.decode import DecodeConfig, Hypothesis, Step, hypotheses
from regard.fields.axis import Axis
from regard.fields.field import Coded, Input
from regard.fields.padding import PAD, padded
from regard.fields.text import Text
from regard.files.row import Row, text_of
from regard.layers import heads
from regard.layers.heads import smoothed_cross_entropy
from regard.layers.inputs import Inputs
from regard.models import Captioner, Ensemble, RNNSeq2Seq, Transformer
from regard.models.widths import Widths
from regard.tasks.prediction import Written
from regard.tasks.shared import moved, tensors
from regard.tasks.task import Axes, Fields, Loss, Part, Tally, TaskSettings, layer_of
from regard.tasks.writer import Writer
from regard.tasks.writing import Writing
from regard.text.tokenizer import BOS, EOS, Tokenizer, TokenizerConfig

QUICK_SEARCH = {"beam": 1, "n_best": 1, "groups": 1, "sample": False, "scores": False}
"""Settings of the search in validation while a model learns."""
NO_ANSWER = Hypothesis((), 0.0, 0.0)
"""The hypothesis for an empty source."""


class Seq2SeqConfig(TaskSettings):
    kind: str
    tokenizer: TokenizerConfig = TokenizerConfig()
    joint: bool = Field(False, description="one vocabulary for both sides; good for related languages")
    max_length: int = Field(256, ge=4, description="tokens; longer training pairs are left out and counted")
    label_smoothing: float = Field(0.1, ge=0, lt=1)
    decode: DecodeConfig = DecodeConfig()

    @property
    def unfitted(self) -> Fields:
        source, target = self.roles[:2]
        return {source: Text(self.tokenizer), target: Text(self.tokenizer)}

    @property
    def asked(self) -> dict[str, Any]:
        source = self.roles[0]
        field: Any = self.unfitted[source]
        return {} if isinstance(field, Text) else {source: field}

    @model_validator(mode="after")
    def _can_be_written(self) -> Self:
        if self.decode.min_length >= self.max_length:
            raise ValueError(
                f"decode.min_length ({self.decode.min_length}) must be less than max_length "
                f"({self.max_length}), as an output has fewer tokens than that; lower it, or raise max_length"
            )
        return self


Co = TypeVar("Co", bound=Seq2SeqConfig)


@dataclass(frozen=True)
class Seq2SeqBatch:
    inputs: Inputs
    """Tensors of the sources."""
    target_BT: Tensor
    """The begin mark and the target's tokens, as the decoder reads them."""
    labels_BT: Tensor
    """The target's tokens and the end mark, which it predicts."""
    examples: tuple[Example, ...]

    @property
    def keep_BT(self) -> Tensor:
        return self.labels_BT != PAD

    @property
    def counts(self) -> dict[str, int]:
        return {"tokens": int(self.keep_BT.sum())}

    def to(self, device: torch.device) -> Self:
        return replace(
            self,
            inputs=moved(self.inputs, device),
            target_BT=self.target_BT.to(device),
            labels_BT=self.labels_BT.to(device),
        )


class Seq2Seq(Writing, Generic[Co]):
    """Arrays of an example: those of its input, and `target`, from the begin mark to the end mark; only the
    begin mark where the target is unknown.
    """

    kind: ClassVar[str]
    models: ClassVar[tuple[str, ...]] = ("transformer", "rnn_seq2seq")
    called: ClassVar[str] = "a model that writes"
    learns_from_cut: ClassVar[bool] = False
    """True if a part of a source is enough to learn its target from."""
    prediction: ClassVar[type[Written]]

    def __init__(self, config: Co, source: Any, target: Text) -> None:
        """Takes the fitted fields."""
        self.config, self.source, self.target = config, source, target
        self.input: Input = source.alone(config.max_length)
        self.widths = Widths(self.input.width, target.width, shared=config.joint)
        self.writer = Writer(target.tokenizer, config.max_length)

    @classmethod
    def fit(cls, config: Co, rows: Iterable[Row], tokenizer: Tokenizer | None = None) -> Self:
        source, target = cls._unfitted(config)
        given, wanted = config.roles[:2]
        pairs = sampled(
            (source.parse(row.cells[given], row.where), target.parse(row.cells[wanted], row.where))
            for row in rows
        )
        if config.joint:
            learnt = target.fit(text for pair in pairs for text in pair).learnt
            return cls(config, replace(source, learnt=learnt), replace(target, learnt=learnt)).checked()
        sources, targets = zip(*pairs, strict=True) if pairs else ((), ())
        return cls(config, source.fit(sources), target.fit(targets)).checked()

    @classmethod
    def of_vocabularies(cls, config: Co, source: Tokenizer, target: Tokenizer) -> Self:
        """The task with vocabularies that were learnt elsewhere; one for both sides if `joint`."""
        fields = zip(cls._unfitted(config), (source, target), strict=True)
        return cls(config, *(replace(field, learnt=tokenizer) for field, tokenizer in fields))

    @staticmethod
    def _unfitted(config: Co) -> tuple[Any, Any]:
        """The fields of source and target before anything is learnt."""
        source, target = (config.unfitted[role] for role in config.roles[:2])
        return source, target

    @property
    def decode(self) -> DecodeConfig:
        return self.config.decode

    @property
    def fields(self) -> dict[str, Any]:
        """The fitted fields, by role."""
        return dict(zip(self.roles[:2], (self.source, self.target), strict=True))

    @property
    def tokenizers(self) -> dict[str, Tokenizer]:
        return {role: field.tokenizer for role, field in self.fields.items() if isinstance(field, Text)}

    def with_settings(self, **changes: Any) -> Self:
        decode = self.decode.changed(**changes)
        return type(self)(self.config.model_copy(update={"decode": decode}), self.source, self.target)

    def save(self, folder: Path) -> None:
        """A shared vocabulary once, in the folder itself."""
        if self.config.joint:
            self.target.save(folder)
            return
        for role, field in self.fields.items():
            (folder / role).mkdir()
            field.save(folder / role)

    @classmethod
    def load(cls, config: Co, folder: Path) -> Self:
        source, target = cls._unfitted(config)
        if config.joint:
            learnt = target.load(folder).learnt
            return cls(config, replace(source, learnt=learnt), replace(target, learnt=learnt))
        given, wanted = config.roles[:2]
        return cls(config, source.load(folder / given), target.load(folder / wanted))

    def value(self, row: Row) -> Any:
        """The value of a row's source."""
        return self.source.parse(row.cells[self.roles[0]], row.where)

    def encode(self, rows: Sequence[Row]) -> list[Example]:
        _, wanted = self.roles[:2]
        limit = self.config.max_length
        sources = self.source.encode([self.value(row) for row in rows])
        targets = self.target.encode([row.cells.get(wanted, "") for row in rows])
        examples = []
        for row, source, target in zip(rows, sources, targets, strict=True):
            coded = self.input.assemble([source])
            ids = target.arrays["ids"].tolist()
            framed = (BOS, *ids[:limit], EOS) if wanted in row.cells else (BOS,)
            notes = {**coded.notes, "target_cut": len(ids) > limit}
            examples.append(Example(row, {**coded.arrays, "target": np.array(framed)}, notes))
        return examples

    def unusable(self, example: Example) -> str | None:
        """Why nothing can be learnt: a side is empty, or not all of it that is needed was read."""
        if not self.is_answerable(example) or len(example.arrays["target"]) <= 2:
            return "empty"
        is_cut = example.notes.get("target_cut") or (example.notes.get("cut") and not self.learns_from_cut)
        return "too long" if is_cut else None

    def is_answerable(self, example: Example) -> bool:
        return not self.input.is_empty(example.arrays)

    def size(self, example: Example) -> tuple[int, int]:
        return self.input.size(example.arrays), max(1, len(example.arrays["target"]) - 1)

    def targets(self, example: Example) -> Sequence[Any]:
        """The target of an example, framed; several where several are right."""
        return [example.arrays["target"]]

    def collate(self, examples: Sequence[Example]) -> Seq2SeqBatch:
        by_example = [self.targets(example) for example in examples]
        targets = [target for several in by_example for target in several]
        inputs = tensors(self.input.collate([example.arrays for example in examples]))
        if len(targets) > len(examples):
            counts = torch.tensor([len(several) for several in by_example])
            inputs["rows"] = torch.arange(len(examples)).repeat_interleave(counts)
        return Seq2SeqBatch(
            inputs,
            torch.from_numpy(padded([target[:-1] for target in targets])),
            torch.from_numpy(padded([target[1:] for target in targets])),
            tuple(examples),
        )

    def forward(
        self,
        model: Any,
        batch: Seq2SeqBatch,
        keep_BT: Tensor | None = None,
        head: heads.Head | None = None,
    ) -> Tensor:
        """The `head` of the states that predict the labels; logits without one."""
        settings = {} if head is None else {"head": head}
        output: Tensor = model(batch.inputs, batch.target_BT, keep_BT, **settings)
        return output

    def start(self, model: nn.Module, batch: Seq2SeqBatch) -> Any:
        """The state of a search before the first token."""
        assert isinstance(model, Transformer | RNNSeq2Seq | Captioner | Ensemble)
        return model.start(batch.inputs)

    def loss(self, model: nn.Module, batch: Seq2SeqBatch) -> Loss:
        return self.loss_of(model, batch)

    def loss_of(self, model: Any, batch: Seq2SeqBatch) -> Loss:
        """The loss of a model, or of a function that takes the same and gives the same."""
        keep_BT = batch.keep_BT
        if isinstance(model, Ensemble):  # which is scored, never trained
            log_prob_NV = self.forward(model, batch, keep_BT)
            plain = F.nll_loss(log_prob_NV, batch.labels_BT[keep_BT], reduction="sum")
            return Loss({"tokens": Part(plain)}, shown={"tokens": plain})
        head = smoothed_cross_entropy(batch.labels_BT[keep_BT], self.config.label_smoothing)
        smoothed, plain = self.forward(model, batch, keep_BT, head)
        return Loss({"tokens": Part(smoothed)}, shown={"tokens": plain.detach()})

    def log_probs(self, model: nn.Module, batch: Seq2SeqBatch) -> Tensor:
        """Log-probabilities of the labels, those of a text after those of the one before it."""
        keep_BT = batch.keep_BT
        labels_N = batch.labels_BT[keep_BT]
        if isinstance(model, Ensemble):
            return self.forward(model, batch, keep_BT).gather(1, labels_N[:, None]).squeeze(1)
        return self.forward(model, batch, keep_BT, heads.log_probs(labels_N))

    @abstractmethod
    def measure(self, model: nn.Module, batch: Seq2SeqBatch, *, thorough: bool) -> Tally: ...

    def texts(self, model: nn.Module, batch: Seq2SeqBatch, *, thorough: bool) -> list[str]:
        """The text that the model writes for each example: as the recipe says, or greedily.

        What is only scored has room for all that is asked of it, so that no example ends a training run.
        """
        decode = self.decode if thorough else self.decode.model_copy(update=QUICK_SEARCH)
        ranked = hypotheses(self.search(model, batch, decode, extends=True))
        return [self.told(*answer).text for answer in zip(batch.examples, ranked, strict=True)]

    def samples(
        self, model: nn.Module, examples: Sequence[Example], device: torch.device
    ) -> list[dict[str, str]]:
        given = self.roles[0]
        answers = self.texts(model, self.collate(examples).to(device), thorough=True)
        return [
            {
                "input": text_of(example.row.cells[given]),
                "expected": self.expected(example),
                "answer": answer,
            }
            for example, answer in zip(examples, answers, strict=True)
        ]

    def expected(self, example: Example) -> str:
        """The right answer, as it is shown."""
        text: str = example.row.cells[self.roles[1]]
        return text

    def text_of(self, example: Example, ids: Sequence[int]) -> str:
        return self.target.tokenizer.decode(ids)

    def source_ids(self, example: Example) -> list[int]:
        """The ids of a source: as many as bound the length of its answers, and the seed of their draws."""
        ids: list[int] = example.arrays["ids"].tolist()
        return ids

    def search(
        self, model: nn.Module, batch: Seq2SeqBatch, decode: DecodeConfig, *, extends: bool = False
    ) -> Iterator[Step]:
        """Search for every source but empty ones, so that no setting asks too much of those."""
        examples, device = batch.examples, batch.target_BT.device
        answerable = [place for place, example in enumerate(examples) if self.is_answerable(example)]
        if len(answerable) < len(examples):
            yield Step([(place, [NO_ANSWER]) for place in range(len(examples)) if place not in answerable])
            batch = (
                self.collate([examples[place] for place in answerable]).to(device) if answerable else batch
            )
        if answerable:
            stepper: Any = model
            sources = [self.source_ids(example) for example in batch.examples]
            state = self.start(model, batch)
            for step in self.writer(stepper, state, sources, decode, device, extends=extends):
                yield step.at(answerable)

    def told(self, example: Example, ranked: Sequence[Hypothesis]) -> Written:
        best, *rest = ranked
        others = tuple(self._written(other) for other in rest)
        cut = bool(example.notes.get("cut")) and self.is_answerable(example)
        return self._written(best, others=others, input_cut=cut)

    def _written(self, hypothesis: Hypothesis, **others: Any) -> Written:
        ids, score = hypothesis.ids, hypothesis.score
        return self.prediction(
            text=self.target.tokenizer.decode(ids),
            score=None if math.isnan(score) else score,
            ids=ids,
            steps=hypothesis.steps,
            **others,
        )

    def force(self, example: Example, prediction: Written) -> Seq2SeqBatch:
        target = {"target": np.array((BOS, *prediction.ids, EOS))}
        return self.collate([replace(example, arrays={**example.arrays, **target})])

    def replay(self, model: nn.Module, batch: Seq2SeqBatch) -> Tensor:
        n_rows, length = batch.target_BT.shape
        log_probs_BTV = torch.log_softmax(self.forward(model, batch), dim=-1).view(n_rows, length, -1)
        return log_probs_BTV.gather(2, batch.labels_BT[..., None]).squeeze(-1)

    def leave_out(self, batch: Seq2SeqBatch, axis: Axis, units: Sequence[int]) -> Seq2SeqBatch:
        n = len(units)
        arrays = {name: tensor.cpu().numpy() for name, tensor in batch.inputs.items()}
        shorter = tensors(self.input.without(arrays, axis, units, "shorten"))
        return Seq2SeqBatch(
            moved(shorter, batch.target_BT.device),
            batch.target_BT.expand(n, -1),
            batch.labels_BT.expand(n, -1),
            batch.examples * n,
        )

    def axes(self, example: Example, prediction: Written) -> Axes:
        given, wanted = self.roles[:2]
        source = self.input.axis([self.value(example.row)], Coded(example.arrays, example.notes))
        target = tuple(self.target.tokenizer.tokens(prediction.ids))
        by_name = {
            "source": replace(source, name=given),
            "target": Axis(wanted, (*target, "</s>")),
            "written": Axis("written so far", ("<s>", *target)),
        }
        return Axes(by_name, left_out="source", answer="target", site=self.site_axes)

    def site_axes(self, site: str) -> tuple[str, str, str]:
        """The title of an attention site, and the axes of its rows and columns."""
        given, wanted = self.roles[:2]
        layer = layer_of(site)
        if site.startswith("encoder."):
            return f"encoder layer {layer}: {given} → {given}", "source", "source"
        if site.endswith(".self"):
            return f"decoder layer {layer}: {wanted} → what was written", "target", "written"
        if site.startswith("copying."):
            return f"copying: {wanted} → {given}", "target", "source"
        if layer is None:
            return f"alignment: {wanted} → {given}", "target", "source"
        return f"decoder layer {layer}: {wanted} → {given}", "target", "source"
