"""What translating, summarising and replying have in common: a text in, a text out, by a model that reads the
one and writes the other. What differs is in their files: roles, what becomes of long inputs, metrics.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn import functional as F

from regard.data.cache import Arrays
from regard.data.sample import sampled
from regard.decode import DecodeConfig, Hypothesis, Step, hypotheses
from regard.fields.axis import Axis, ended
from regard.files.row import Row
from regard.layers import heads
from regard.layers.heads import smoothed_cross_entropy
from regard.models import Ensemble, RNNSeq2Seq, Transformer
from regard.models.widths import Widths
from regard.tasks.pair import NOTHING, Pair, Pairs, Written
from regard.tasks.task import Axes, Loss, Part, Tally, TaskSettings, layer_of, padded, without_each
from regard.tasks.writer import Writer
from regard.tasks.writing import Writing
from regard.text.tokenizer import BOS, EOS, Tokenizer, TokenizerConfig

QUICK = {"beam": 1, "n_best": 1, "groups": 1, "sample": False, "scores": False}
"""How validation searches while a model learns."""
SILENCE = Hypothesis((), 0.0, 0.0)
"""What is found for an empty text."""


class Seq2SeqConfig(TaskSettings):
    kind: str
    tokenizer: TokenizerConfig = TokenizerConfig()
    joint: bool = Field(False, description="one vocabulary for both sides; good for related languages")
    max_length: int = Field(256, ge=4, description="pieces; longer training pairs are left out and counted")
    label_smoothing: float = Field(0.1, ge=0, lt=1)
    decode: DecodeConfig = DecodeConfig()

    @model_validator(mode="after")
    def _can_be_written(self) -> Self:
        if self.decode.min_length >= self.max_length:
            raise ValueError(
                f"decode.min_length ({self.decode.min_length}) must be less than max_length "
                f"({self.max_length}), as an output has fewer pieces than that; lower it, or raise max_length"
            )
        return self


Co = TypeVar("Co", bound=Seq2SeqConfig)


class Seq2Seq(Writing, Generic[Co]):
    kind: ClassVar[str]
    models: ClassVar[tuple[str, ...]] = ("transformer", "rnn_seq2seq")
    called: ClassVar[str] = "a model that writes"
    learns_from_cut: ClassVar[bool] = False
    """Whether a part of a source is enough to learn its target from."""

    def __init__(self, config: Co, source: Tokenizer, target: Tokenizer) -> None:
        self.config, self.source, self.target = config, source, target
        self.widths = Widths({"vocab": len(source)}, {"vocab": len(target)}, shared=config.joint)
        self.writer = Writer(target, config.max_length)

    @classmethod
    def fit(cls, config: Co, rows: Iterable[Row], tokenizer: Tokenizer | None = None) -> Self:
        pairs = sampled(tuple(row.cells[role] for role in config.roles) for row in rows)
        if config.joint:
            joint = Tokenizer.train(config.tokenizer, (text for pair in pairs for text in pair))
            return cls(config, joint, joint).checked()
        sides = zip(*pairs, strict=True) if pairs else ((), ())
        source, target = (Tokenizer.train(config.tokenizer, texts) for texts in sides)
        return cls(config, source, target).checked()

    @property
    def decode(self) -> DecodeConfig:
        return self.config.decode

    @property
    def tokenizers(self) -> dict[str, Tokenizer]:
        return dict(zip(self.roles, (self.source, self.target), strict=True))

    def with_settings(self, **changes: Any) -> Self:
        decode = self.decode.changed(**changes)
        return type(self)(self.config.model_copy(update={"decode": decode}), self.source, self.target)

    def save(self, folder: Path) -> None:
        if self.config.joint:
            self.source.save(folder / "tokenizer.json")
            return
        for role, tokenizer in self.tokenizers.items():
            (folder / role).mkdir()
            tokenizer.save(folder / role / "tokenizer.json")

    @classmethod
    def load(cls, config: Co, folder: Path) -> Self:
        if config.joint:
            joint = Tokenizer.load(folder / "tokenizer.json")
            return cls(config, joint, joint)
        source, target = (Tokenizer.load(folder / role / "tokenizer.json") for role in config.roles)
        return cls(config, source, target)

    def encode(self, rows: Sequence[Row]) -> list[Pair]:
        _, wanted = self.roles
        targets = self.target.ids([row.cells.get(wanted, "") for row in rows])
        limit = self.config.max_length
        pairs = []
        for row, source, target in zip(rows, self.read(rows), targets, strict=True):
            answer = (BOS, *target[:limit], EOS) if wanted in row.cells else (BOS,)
            part = self.part(source)
            pairs.append(
                Pair(row, np.array(part), np.array(answer), len(part) < len(source), len(target) > limit)
            )
        return pairs

    def read(self, rows: Sequence[Row]) -> list[list[int]]:
        """The whole sources, each closed by an end mark."""
        return [[*ids, EOS] for ids in self.source.ids([row.cells[self.roles[0]] for row in rows])]

    def part(self, source: list[int]) -> list[int]:
        """What is read of a source: its beginning, if it is too long."""
        limit = self.config.max_length
        return source if len(source) <= limit + 1 else [*source[:limit], EOS]

    def unusable(self, example: Pair) -> str | None:
        """A side that says nothing, or that lacks what would be needed to learn."""
        if not self.is_answerable(example) or len(example.target) <= 2:
            return "empty"
        return "too long" if example.target_cut or (example.cut and not self.learns_from_cut) else None

    def is_answerable(self, example: Pair) -> bool:
        return len(example.source) > 1

    def size(self, example: Pair) -> tuple[int, int]:
        return len(example.source), max(1, len(example.target) - 1)

    def keep(self, example: Pair) -> Arrays:
        return {"source": example.source, "target": example.target}

    def revive(self, row: Row, kept: Arrays) -> Pair:
        return Pair(row, kept["source"], kept["target"])

    def collate(self, examples: Sequence[Pair]) -> Pairs:
        return Pairs(
            source_BK=padded([example.source for example in examples]),
            source_lengths_B=torch.tensor([len(example.source) for example in examples]),
            target_BT=padded([example.target[:-1] for example in examples]),
            labels_BT=padded([example.target[1:] for example in examples]),
            examples=tuple(examples),
        )

    def forward(
        self, model: nn.Module, batch: Pairs, keep_BT: Tensor | None = None, read: heads.Head | None = None
    ) -> Tensor:
        """What `read` makes of the states that foretell the labels; without it, logits."""
        reading = {} if read is None else {"head": read}
        made: Tensor = model(batch.source_BK, batch.source_lengths_B, batch.target_BT, keep_BT, **reading)
        return made

    def start(self, model: nn.Module, batch: Pairs) -> Any:
        """The state of a search before the first piece."""
        assert isinstance(model, Transformer | RNNSeq2Seq | Ensemble)
        return model.start(batch.source_BK, batch.source_lengths_B)

    def loss(self, model: nn.Module, batch: Pairs) -> Loss:
        keep_BT = batch.keep_BT
        if isinstance(model, Ensemble):  # which is scored, never trained
            log_prob_NV = self.forward(model, batch, keep_BT)
            plain = F.nll_loss(log_prob_NV, batch.labels_BT[keep_BT], reduction="sum")
            return Loss({"tokens": Part(plain)}, shown={"tokens": plain})
        read = smoothed_cross_entropy(batch.labels_BT[keep_BT], self.config.label_smoothing)
        smoothed, plain = self.forward(model, batch, keep_BT, read)
        return Loss({"tokens": Part(smoothed)}, shown={"tokens": plain.detach()})

    def log_probs(self, model: nn.Module, batch: Pairs) -> Tensor:
        """Of each label, those of a text after those of the one before it."""
        keep_BT = batch.keep_BT
        labels_N = batch.labels_BT[keep_BT]
        if isinstance(model, Ensemble):
            return self.forward(model, batch, keep_BT).gather(1, labels_N[:, None]).squeeze(1)
        return self.forward(model, batch, keep_BT, heads.log_probs(labels_N))

    @abstractmethod
    def measure(self, model: nn.Module, batch: Pairs, *, thorough: bool) -> Tally: ...

    def written(self, model: nn.Module, batch: Pairs, *, thorough: bool) -> list[str]:
        """What the model writes for each example: as the recipe says, or greedily.

        What is only scored has room for all that is asked of it, so that no example ends a training run.
        """
        decode = self.decode if thorough else self.decode.model_copy(update=QUICK)
        found = hypotheses(self.search(model, batch, decode, roomy=True))
        return [self.told(*answer).text for answer in zip(batch.examples, found, strict=True)]

    def samples(
        self, model: nn.Module, examples: Sequence[Pair], device: torch.device
    ) -> list[dict[str, str]]:
        given, wanted = self.roles
        answers = self.written(model, self.collate(examples).to(device), thorough=True)
        return [
            {"input": example.row.cells[given], "expected": example.row.cells[wanted], "answer": answer}
            for example, answer in zip(examples, answers, strict=True)
        ]

    def text_of(self, example: Pair, ids: Sequence[int]) -> str:
        return self.target.decode(ids)

    def search(
        self, model: nn.Module, batch: Pairs, decode: DecodeConfig, *, roomy: bool = False
    ) -> Iterator[Step]:
        """Nothing is searched for where nothing is asked, so that no setting asks too much of it."""
        examples, device = batch.examples, batch.source_BK.device
        asked = [place for place, example in enumerate(examples) if self.is_answerable(example)]
        if len(asked) < len(examples):
            yield Step([(place, [SILENCE]) for place in range(len(examples)) if place not in asked])
            batch = self.collate([examples[place] for place in asked]).to(device) if asked else batch
        if asked:
            stepper: Any = model
            sources = [example.source.tolist() for example in batch.examples]
            state = self.start(model, batch)
            for step in self.writer(stepper, state, sources, decode, device, roomy=roomy):
                yield step.at(asked)

    def told(self, example: Pair, found: Sequence[Hypothesis]) -> Written:
        if not self.is_answerable(example):
            return NOTHING
        best, *rest = found
        others = tuple(self._written(other) for other in rest)
        return self._written(best, others, cut=example.cut)

    def _written(self, found: Hypothesis, others: tuple[Written, ...] = (), *, cut: bool = False) -> Written:
        return Written(self.target.decode(found.ids), found.ids, found.score, others, cut, found.steps)

    def force(self, example: Pair, prediction: Written) -> Pairs:
        answer = np.array((BOS, *prediction.ids, EOS))
        return self.collate([Pair(example.row, example.source, answer)])

    def replay(self, model: nn.Module, batch: Pairs) -> Tensor:
        n_rows, length = batch.target_BT.shape
        log_probs_BTV = torch.log_softmax(self.forward(model, batch), dim=-1).view(n_rows, length, -1)
        return log_probs_BTV.gather(2, batch.labels_BT[..., None]).squeeze(-1)

    def leave_out(self, batch: Pairs, axis: Axis, pieces: Sequence[int]) -> Pairs:
        n = len(pieces)
        return Pairs(
            without_each(batch.source_BK, pieces),
            (batch.source_lengths_B - 1).expand(n),
            batch.target_BT.expand(n, -1),
            batch.labels_BT.expand(n, -1),
            batch.examples * n,
        )

    def source_labels(self, example: Pair) -> tuple[str, ...]:
        """A label for each piece of the source, its end included."""
        words = self.source.words(example.row.cells[self.roles[0]], len(example.source) - 1)
        return (*words, "</s>")

    def axes(self, example: Pair, prediction: Written) -> Axes:
        given, wanted = self.roles
        target = tuple(self.target.pieces(prediction.ids))
        by_name = {
            "source": ended(given, self.source_labels(example)),
            "target": Axis(wanted, (*target, "</s>")),
            "written": Axis("written so far", ("<s>", *target)),
        }
        return Axes(by_name, left_out="source", answer="target", site=self.site_axes)

    def site_axes(self, site: str) -> tuple[str, str, str]:
        """The title of an attention site, and the axes of its rows and columns."""
        given, wanted = self.roles
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
