"""translate: a text in, a text out. Summaries and replies have the same shape."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from regard.config import Config
from regard.data.examples import Ints, Kept
from regard.data.sample import sampled
from regard.data.source import Row
from regard.data.tokenizer import BOS, EOS, PAD, Tokenizer, TokenizerConfig
from regard.decode import NOBODY, DecodeConfig, Hypothesis, Listener
from regard.layers.heads import smoothed_cross_entropy
from regard.metrics.text import BleuTokenizer, bleu, chrf
from regard.models import Ensemble, RNNSeq2Seq, Transformer
from regard.models.dims import Dims
from regard.tasks.task import ROWS_TOGETHER, Ground, Loss, Part, Picture, padded, without_each
from regard.tasks.writer import Writer
from regard.tasks.writing import Writing


class TranslateConfig(Config):
    kind: Literal["translate"] = "translate"
    tokenizer: TokenizerConfig = TokenizerConfig()
    joint: bool = Field(False, description="one vocabulary for both sides; good for related languages")
    max_length: int = Field(256, ge=4, description="pieces; longer training pairs are left out and counted")
    label_smoothing: float = Field(0.1, ge=0, lt=1)
    bleu_tokenize: BleuTokenizer = Field(
        "13a", description="sacrebleu's; 'zh' for Chinese output, 'none' for tokenised text"
    )
    decode: DecodeConfig = DecodeConfig()


@dataclass(frozen=True, slots=True)
class Pair:
    """`source` ends with EOS; `target` begins with BOS and ends with EOS, or is BOS alone when unknown."""

    row: Row
    source: Ints
    target: Ints
    cut: bool = False


@dataclass(frozen=True)
class Pairs:
    source_BK: Tensor
    source_lengths_B: Tensor
    target_BT: Tensor
    """BOS and the target's pieces: what the decoder reads. What it shall say is one place further."""
    labels_BT: Tensor
    examples: tuple[Pair, ...]

    @property
    def keep_BT(self) -> Tensor:
        return self.labels_BT != PAD

    @property
    def counts(self) -> dict[str, int]:
        return {"tokens": int(self.keep_BT.sum())}

    def to(self, device: torch.device) -> Self:
        return replace(
            self,
            source_BK=self.source_BK.to(device),
            source_lengths_B=self.source_lengths_B.to(device),
            target_BT=self.target_BT.to(device),
            labels_BT=self.labels_BT.to(device),
        )


@dataclass(frozen=True)
class Translation:
    text: str
    ids: tuple[int, ...]
    score: float
    others: tuple["Translation", ...] = ()
    """The rest of the n best."""
    cut: bool = False
    """The input was longer than max_length; this answers its beginning."""
    steps: tuple[float, ...] = ()
    """The log-probability of each piece, and of the end."""

    def to_json(self) -> dict[str, Any]:
        answer: dict[str, Any] = {"text": self.text, "score": round(self.score, 4)}
        if self.cut:
            answer["input_cut"] = True
        if self.others:
            answer["others"] = [other.to_json() for other in self.others]
        return answer


QUICK = {"beam": 1, "n_best": 1, "groups": 1, "sample": False}
"""How validation searches while a model learns."""
NOTHING = Translation("", (), 0.0)
"""The translation of an empty line."""


@dataclass(frozen=True)
class TextTally:
    tokenize: BleuTokenizer
    hypotheses: list[str] = field(default_factory=list)
    references: list[str] = field(default_factory=list)

    def __add__(self, other: "TextTally") -> "TextTally":
        return TextTally(
            self.tokenize, self.hypotheses + other.hypotheses, self.references + other.references
        )

    def metrics(self) -> dict[str, float]:
        return {
            "bleu": bleu(self.hypotheses, self.references, self.tokenize)[0],
            "chrf": chrf(self.hypotheses, self.references)[0],
        }

    def signatures(self) -> dict[str, str]:
        return {
            "bleu": bleu(self.hypotheses, self.references, self.tokenize)[1],
            "chrf": chrf(self.hypotheses, self.references)[1],
        }

    def by_kind(self) -> dict[str, dict[str, float]]:
        return {}


class Translate(Writing[Pairs, Translation]):
    kind: ClassVar[str] = "translate"
    roles: ClassVar[tuple[str, ...]] = ("source", "target")
    models: ClassVar[tuple[str, ...]] = ("transformer", "rnn_seq2seq")
    metric = "bleu"
    input_ground: ClassVar[str] = "source"
    answer_ground: ClassVar[str] = "target"

    def __init__(self, config: TranslateConfig, source: Tokenizer, target: Tokenizer) -> None:
        self.config, self.source, self.target = config, source, target
        self.dims = Dims(source_vocab=len(source), target_vocab=len(target), joint=config.joint)
        self.writer = Writer(target, config.max_length)

    @classmethod
    def fit(cls, config: TranslateConfig, rows: Iterable[Row]) -> Self:
        pairs = sampled((row.fields["source"], row.fields["target"]) for row in rows)
        if config.joint:
            joint = Tokenizer.train(config.tokenizer, (text for pair in pairs for text in pair))
            return cls(config, joint, joint)
        sides = zip(*pairs, strict=True) if pairs else ((), ())
        source, target = (Tokenizer.train(config.tokenizer, texts) for texts in sides)
        return cls(config, source, target)

    @property
    def rows_together(self) -> int:
        return 1 if self.config.decode.batch_invariant else ROWS_TOGETHER

    @property
    def tokenizers(self) -> dict[str, Tokenizer]:
        return {"source": self.source, "target": self.target}

    def searching(self, **changes: Any) -> Self:
        decode = self.config.decode.changed(**changes)
        return type(self)(self.config.model_copy(update={"decode": decode}), self.source, self.target)

    def save(self, folder: Path) -> None:
        if self.config.joint:
            self.source.save(folder / "tokenizer.json")
            return
        for name, tokenizer in (("source", self.source), ("target", self.target)):
            (folder / name).mkdir()
            tokenizer.save(folder / name / "tokenizer.json")

    @classmethod
    def load(cls, config: TranslateConfig, folder: Path) -> Self:
        if config.joint:
            joint = Tokenizer.load(folder / "tokenizer.json")
            return cls(config, joint, joint)
        source, target = (Tokenizer.load(folder / name / "tokenizer.json") for name in ("source", "target"))
        return cls(config, source, target)

    def encode(self, rows: Sequence[Row]) -> list[Pair]:
        sources = self.source.ids([row.fields["source"] for row in rows])
        targets = self.target.ids([row.fields.get("target", "") for row in rows])
        return [self._pair(*parts) for parts in zip(rows, sources, targets, strict=True)]

    def _pair(self, row: Row, source: list[int], target: list[int]) -> Pair:
        limit = self.config.max_length
        answer = (BOS, *target[:limit], EOS) if "target" in row.fields else (BOS,)
        cut = max(len(source), len(target)) > limit
        return Pair(row, np.array((*source[:limit], EOS)), np.array(answer), cut=cut)

    def usable(self, example: Pair) -> bool:
        """Both sides say something and neither was cut."""
        return len(example.source) > 1 and len(example.target) > 2 and not example.cut

    def usable_input(self, example: Pair) -> bool:
        return len(example.source) > 1

    def size(self, example: Pair) -> tuple[int, int]:
        return len(example.source), max(1, len(example.target) - 1)

    def keep(self, example: Pair) -> Kept:
        return example.source, example.target

    def revive(self, row: Row, kept: Kept) -> Pair:
        source, target = kept
        return Pair(row, source, target)

    def collate(self, examples: Sequence[Pair]) -> Pairs:
        return Pairs(
            source_BK=padded([example.source for example in examples]),
            source_lengths_B=torch.tensor([len(example.source) for example in examples]),
            target_BT=padded([example.target[:-1] for example in examples]),
            labels_BT=padded([example.target[1:] for example in examples]),
            examples=tuple(examples),
        )

    def loss(self, model: nn.Module, batch: Pairs) -> Loss:
        keep_BT = batch.keep_BT
        if isinstance(model, Ensemble):  # which is scored, never trained
            log_prob_NV = model(batch.source_BK, batch.source_lengths_B, batch.target_BT, keep_BT)
            plain = F.nll_loss(log_prob_NV, batch.labels_BT[keep_BT], reduction="sum")
            return Loss({"tokens": Part(plain)}, shown={"tokens": plain})
        read = smoothed_cross_entropy(batch.labels_BT[keep_BT], self.config.label_smoothing)
        smoothed, plain = model(batch.source_BK, batch.source_lengths_B, batch.target_BT, keep_BT, read)
        return Loss({"tokens": Part(smoothed)}, shown={"tokens": plain.detach()})

    def measure(self, model: nn.Module, batch: Pairs, *, thorough: bool) -> TextTally:
        decode = self.config.decode if thorough else self.config.decode.model_copy(update=QUICK)
        found = self.search(model, batch, decode)
        return TextTally(
            self.config.bleu_tokenize,
            [self.told(*answered).text for answered in zip(batch.examples, found, strict=True)],
            [example.row.fields["target"] for example in batch.examples],
        )

    @property
    def decode(self) -> DecodeConfig:
        return self.config.decode

    def text_of(self, example: Pair, ids: Sequence[int]) -> str:
        return self.target.decode(ids)

    def search(
        self, model: nn.Module, batch: Pairs, decode: DecodeConfig, listener: Listener = NOBODY
    ) -> list[list[Hypothesis]]:
        assert isinstance(model, Transformer | RNNSeq2Seq | Ensemble)
        state: Any = model.start(batch.source_BK, batch.source_lengths_B)
        sources = [example.source.tolist() for example in batch.examples]
        return self.writer(model, state, sources, decode, batch.source_BK.device, listener)

    def told(self, example: Pair, found: Sequence[Hypothesis]) -> Translation:
        if not self.usable_input(example):
            return NOTHING
        best, *rest = found
        others = tuple(self._translation(other) for other in rest)
        return self._translation(best, others, cut=example.cut)

    def _translation(
        self, found: Hypothesis, others: tuple[Translation, ...] = (), *, cut: bool = False
    ) -> Translation:
        return Translation(self.target.decode(found.ids), found.ids, found.score, others, cut, found.steps)

    def force(self, example: Pair, prediction: Translation) -> Pairs:
        answer = np.array((BOS, *prediction.ids, EOS))
        return self.collate([Pair(example.row, example.source, answer)])

    def replay(self, model: nn.Module, batch: Pairs) -> Tensor:
        n_rows, length = batch.target_BT.shape
        logits_NV = model(batch.source_BK, batch.source_lengths_B, batch.target_BT)
        log_probs_BTV = torch.log_softmax(logits_NV, dim=-1).view(n_rows, length, -1)
        return log_probs_BTV.gather(2, batch.labels_BT[..., None]).squeeze(-1)

    def leave_out(self, batch: Pairs, pieces: range) -> Pairs:
        n = len(pieces)
        return Pairs(
            without_each(batch.source_BK, pieces),
            (batch.source_lengths_B - 1).expand(n),
            batch.target_BT.expand(n, -1),
            batch.labels_BT.expand(n, -1),
            batch.examples * n,
        )

    def grounds(self, example: Pair, prediction: Translation) -> dict[str, Ground]:
        source = self.source.words(example.row.fields["source"], self.config.max_length)
        target = tuple(self.target.pieces(prediction.ids))
        return {
            "source": Ground("source", (*source, "</s>")),
            "target": Ground("target", (*target, "</s>")),
            "written": Ground("written so far", ("<s>", *target)),
        }

    def site_grounds(self, site: str) -> tuple[str, str, str]:
        layer = next((int(part) + 1 for part in site.split(".") if part.isdigit()), None)
        if site.startswith("encoder."):
            return f"encoder layer {layer}: source → source", "source", "source"
        if site.endswith(".self"):
            return f"decoder layer {layer}: target → what was written", "target", "written"
        if layer is None:
            return "alignment: target → source", "target", "source"
        return f"decoder layer {layer}: target → source", "target", "source"

    def pictures(self, model: nn.Module, batch: Pairs) -> list[Picture]:
        return []
