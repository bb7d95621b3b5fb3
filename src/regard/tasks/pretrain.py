"""pretrain: hidden words, and whether one text follows another, from documents without labels.

What it leaves behind is an encoder that other tasks begin with (`model.init_from`). By itself it fills the
blanks of a text that holds `[MASK]`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, Self
from zlib import crc32

import numpy as np
import torch
from pydantic import BaseModel, Field, model_validator
from torch import Tensor, nn
from torch.nn import functional as F

from regard.baselines import Baseline
from regard.baselines.language import Unigram
from regard.data.cache import Arrays, Examples, Ints
from regard.data.paired import Paired
from regard.data.sample import sampled
from regard.data.splits import End, Every, HoldOut, closes
from regard.errors import CheckpointError, DataError, RecipeError
from regard.fields.axis import Axis, ended
from regard.files.documents import By
from regard.files.row import Row
from regard.layers.heads import log_probs, log_probs_and_hits, smoothed_cross_entropy
from regard.metrics.metric import Metric
from regard.models.widths import Widths
from regard.tasks.masked import (
    DOES_NOT,
    FOLLOWS,
    NO_PAIR,
    Blank,
    Document,
    Filled,
    Masked,
    MaskedTally,
    MaskedTexts,
    Told,
)
from regard.tasks.masking import Masking
from regard.tasks.pretrain_data import PRETRAIN
from regard.tasks.pretrain_data import Filled as FilledAnswer
from regard.tasks.task import Axes, Loss, Part, Picture, Task, TaskSettings, layer_of
from regard.tasks.task_data import TaskData
from regard.text.sentences import Sentences, sentences
from regard.text.tokenizer import Tokenizer, TokenizerConfig
from regard.text.wordpiece import MASK

ENOUGH_PARTS = 100_000
"""Of documents, a few thousand characters each, that a vocabulary is learnt from at most."""
CANDIDATES = 5
"""Pieces told for each blank."""


class PretrainTokenizer(TokenizerConfig):
    """A BERT's: other tasks, and other tools, will read texts with it."""

    kind: Literal["wordpiece"] = Field("wordpiece", description="as BERT's, with its marks")
    lowercase: bool = Field(True, description="fold case, and leave out accents, before anything else")


class PretrainConfig(TaskSettings):
    kind: Literal["pretrain"] = "pretrain"
    roles: ClassVar[tuple[str, ...]] = ("text",)
    inputs: ClassVar[tuple[str, ...]] = ("text",)
    tokenizer: PretrainTokenizer = PretrainTokenizer()
    documents: By = Field(
        "paragraphs",
        description="what a document of plain text is: what stands between blank lines, a line, or a file; "
        "of .tsv, .csv, .jsonl and .parquet it is each row",
    )
    sentences: Sentences = Field(
        "lines", description="a sentence a line; or marks: they end at .!? before a space, and at 。！？"
    )
    max_length: int = Field(
        128, ge=8, le=60_000, description="pieces of both texts together; three marks come on top"
    )
    mask_share: float = Field(0.15, gt=0, lt=1, description="of the pieces, to be hidden and told")
    whole_words: bool = Field(False, description="hide all pieces of a word or none")

    @model_validator(mode="after")
    def _has_sentences(self) -> Self:
        if self.documents == self.sentences == "lines":
            raise ValueError(
                "documents and sentences cannot both be lines, as every document would have one sentence; "
                'set sentences = "marks", or documents = "paragraphs"'
            )
        return self

    @property
    def document(self) -> By:
        return self.documents

    @property
    def hold_out(self) -> HoldOut:
        return End() if self.documents == "files" else Every("documents")


class Pretrain(Task):
    kind: ClassVar[str] = "pretrain"
    data: ClassVar[TaskData] = PRETRAIN
    says: ClassVar[str] = "Texts with [MASK] in, the likeliest pieces for every blank out."
    prediction: ClassVar[type[BaseModel]] = FilledAnswer
    route: ClassVar[str] = "fill"
    settings: ClassVar[type[Any]] = PretrainConfig
    models: ClassVar[tuple[str, ...]] = ("bert_pretraining",)
    called: ClassVar[str] = "a pretrained BERT"
    sample: ClassVar[str] = f"your {MASK}"
    layout: ClassVar[type[Examples]] = Paired
    metric = Metric("mlm_accuracy")
    baselines: ClassVar[tuple[type[Baseline], ...]] = (Unigram,)

    def __init__(self, config: PretrainConfig, tokenizer: Tokenizer) -> None:
        self.config, self.tokenizer = config, tokenizer
        self.widths = Widths({"vocab": len(tokenizer)})
        self.masking = Masking(tokenizer, config.mask_share, whole_words=config.whole_words)

    @classmethod
    def fit(cls, config: PretrainConfig, rows: Iterable[Row], tokenizer: Tokenizer | None = None) -> Self:
        if tokenizer is None:
            texts = sampled((row.cells["text"] for row in rows), ENOUGH_PARTS)
            tokenizer = Tokenizer.train_berts(config.tokenizer, texts)
        if tokenizer.marks.mask is None:
            raise RecipeError(
                f"model.init_from: its vocabulary has no {MASK} to hide words behind; begin with a BERT that "
                "has one, or without init_from"
            )
        return cls(config, tokenizer)

    @property
    def room(self) -> int:
        return self.config.max_length

    @property
    def tokenizers(self) -> dict[str, Tokenizer]:
        return {"text": self.tokenizer}

    def save(self, folder: Path) -> None:
        self.tokenizer.save(folder / "tokenizer.json")

    @classmethod
    def load(cls, config: PretrainConfig, folder: Path) -> Self:
        path = folder / "tokenizer.json"
        tokenizer = Tokenizer.load(path)
        if tokenizer.marks.mask is None:
            raise CheckpointError(f"{path}: the vocabulary lacks {MASK}, which this model needs")
        return cls(config, tokenizer)

    def encode(self, rows: Sequence[Row]) -> list[Document]:
        """No sentence has more than half of the room: longer ones become several."""
        cut = [sentences(row.cells["text"], self.config.sentences) for row in rows]
        found = iter(self.tokenizer.ids([sentence for own in cut for sentence in own]))
        return [self._document(row, [next(found) for _ in own]) for row, own in zip(rows, cut, strict=True)]

    def _document(self, row: Row, own: list[list[int]]) -> Document:
        most = self.room // 2
        lengths = [min(most, len(ids) - at) for ids in own for at in range(0, len(ids), most)]
        tokens = np.array([piece for ids in own for piece in ids], np.int64)
        return Document(row, tokens, np.array(lengths, np.int64))

    def unusable(self, example: Document) -> None:
        """A part without words may still be where its document ends."""

    def is_answerable(self, example: Document | Masked) -> bool:
        return len(example.tokens) > 0

    def size(self, example: Document | Masked) -> tuple[int]:
        return (max(1, len(example.tokens)),)

    def keep(self, example: Document) -> Arrays:
        ends = np.array([closes(example.row)], np.int64)
        return {"tokens": example.tokens, "lengths": example.lengths, "closes": ends}

    def revive(self, row: Row, kept: Arrays) -> Document:
        return Document(row, kept["tokens"], kept["lengths"])

    def drawn(
        self, row: Row, texts: tuple[Ints, ...], follows: bool | None, rng: np.random.Generator
    ) -> Masked:
        own = [text.tolist() for text in texts]
        tokens = np.array(self.tokenizer.framed(*own))
        seen, places = self.masking(tokens, rng)
        answer = NO_PAIR if follows is None else FOLLOWS if follows else DOES_NOT
        return Masked(row, seen, np.array(self.tokenizer.segments(*own)), places, tokens[places], answer)

    def collate(self, examples: Sequence[Document | Masked]) -> MaskedTexts:
        return MaskedTexts.of([self._blanks(one) if isinstance(one, Document) else one for one in examples])

    def _blanks(self, document: Document) -> Masked:
        """The text as it is, with the mask wherever it says so."""
        row, mask = document.row, self.masking.mask
        first, *rest = self.tokenizer.ids(row.cells["text"].split(MASK))
        tokens = np.array(self.tokenizer.framed([*first, *(i for ids in rest for i in (mask, *ids))]))
        if row.cells["text"].strip() and not rest:
            raise DataError(f"{row.where}: the text has no {MASK}; write it where a word is to be found")
        if (n_pieces := len(tokens) - len(self.tokenizer.framed(()))) > self.room:
            raise DataError(
                f"{row.where}: the text has {n_pieces} pieces, this model reads {self.room} at most "
                "(task.max_length); give less of it"
            )
        places = np.flatnonzero(tokens == mask)
        return Masked(row, tokens, np.zeros_like(tokens), places, tokens[places])

    def loss(self, model: nn.Module, batch: MaskedTexts) -> Loss:
        told_2, scores_B2 = model(*batch.inputs, smoothed_cross_entropy(batch.labels_N, 0.0))
        pairs = _pair_costs(scores_B2, batch.follows_B).sum()
        return Loss(
            {"masked": Part(told_2[0]), "pairs": Part(pairs)},
            shown={"masked": told_2[1].detach(), "pairs": pairs.detach()},
        )

    def measure(self, model: nn.Module, batch: MaskedTexts, *, thorough: bool) -> MaskedTally:
        told_2N, scores_B2 = model(*batch.inputs, log_probs_and_hits(batch.labels_N))
        counts = [len(example.places) for example in batch.examples]
        nats, hits = (torch.split(row.double(), counts) for row in told_2N)
        answers = zip(
            (-float(each.sum()) for each in nats),
            (int(each.sum()) for each in hits),
            _pair_costs(scores_B2, batch.follows_B).tolist(),
            (scores_B2.argmax(-1) == batch.follows_B).int().tolist(),
            strict=True,
        )
        return self.tally(batch.examples, [*answers])

    def tally(self, examples: Sequence[Masked], answers: Sequence[Any]) -> MaskedTally:
        """The tally of tuples: the cost of hidden tokens, how many are right; that of the pair, if it is."""
        told = [
            Told(len(one.places), nats, hits, int(one.follows != NO_PAIR), pair_nats, pair_hits)
            for one, (nats, hits, pair_nats, pair_hits) in zip(examples, answers, strict=True)
        ]
        seen = [crc32(one.tokens.tobytes()) for one in examples]
        return MaskedTally(self.tokenizer.digest, seen, told)

    def samples(
        self, model: nn.Module, examples: Sequence[Masked], device: torch.device
    ) -> list[dict[str, str]]:
        """What is hidden in some validation examples, and what the model says is there."""
        batch = self.collate(examples).to(device)
        best_N = model(*batch.inputs)[0].argmax(-1)
        counts = [len(example.places) for example in examples]
        return [
            {
                "input": self._shown(one.tokens),
                "expected": self._named(one.labels),
                "answer": self._named(best),
            }
            for one, best in zip(examples, torch.split(best_N.cpu(), counts), strict=True)
        ]

    def _shown(self, tokens: Ints) -> str:
        spelt = self.tokenizer.spellings
        return "".join(f" {MASK}" if i == self.masking.mask else spelt[i] for i in tokens.tolist()).strip()

    def _named(self, ids: Ints | Tensor) -> str:
        return " ".join(self.tokenizer.pieces(ids.tolist()))

    def predict(self, model: nn.Module, batch: MaskedTexts) -> Iterator[tuple[int, Filled]]:
        with torch.inference_mode():
            likely_NV = torch.softmax(model(*batch.inputs)[0].float(), dim=-1)
            likely_NV[:, self._never] = 0.0
            best = torch.topk(likely_NV, min(CANDIDATES, likely_NV.shape[1] - len(self._never)))
        counts = [len(example.places) for example in batch.examples]
        found = zip(torch.split(best.indices, counts), torch.split(best.values, counts), strict=True)
        for number, (example, (ids, likely)) in enumerate(zip(batch.examples, found, strict=True)):
            yield number, self._filled(example.row, ids.tolist(), likely.tolist())

    @cached_property
    def _never(self) -> list[int]:
        """No word is a mark."""
        return sorted({*self.tokenizer.marks.unspoken, self.tokenizer.marks.unknown})

    def _filled(self, row: Row, ids: list[list[int]], likely: list[list[float]]) -> Filled:
        """A piece that continues a word stands without the space before it."""
        text, *rest = row.cells["text"].split(MASK)
        blanks, start = [], len(text)
        for found, p, after in zip(ids, likely, rest, strict=True):
            names = [self.tokenizer.names[i] for i in found]
            told = [name.removeprefix("##") for name in names]
            blanks.append(Blank(start, start + len(MASK), tuple(zip(found, told, p, strict=True))))
            text = (text.rstrip() if names[0] != told[0] else text) + told[0] + after
            start += len(MASK) + len(after)
        return Filled(text, tuple(blanks))

    def force(self, example: Document, prediction: Filled) -> MaskedTexts:
        batch = self.collate([example])
        labels = [blank.candidates[0][0] for blank in prediction.blanks]
        return replace(batch, labels_N=torch.tensor(labels), candidates=tuple(_candidates(prediction)))

    def replay(self, model: nn.Module, batch: MaskedTexts) -> Tensor:
        told_N: Tensor = model(*batch.inputs, log_probs(batch.labels_N))[0]
        return told_N.view(len(batch.lengths_B), -1)

    def leave_out(self, batch: MaskedTexts, axis: Axis, pieces: Sequence[int]) -> MaskedTexts:
        """It is hidden: to a model of hidden words that is to know nothing of it."""
        return batch.hiding(pieces, self.masking.mask)

    def axes(self, example: Document, prediction: Filled) -> Axes:
        (masked,) = self.collate([example]).examples
        filled = tuple(blank.candidates[0][1] for blank in prediction.blanks)
        by_name = {
            "text": ended("text", tuple(self.tokenizer.pieces(masked.tokens.tolist()))),
            "filled": Axis("filled in", filled),
            "candidates": Axis("could stand there", tuple(_candidates(prediction).values())),
        }
        return Axes(by_name, left_out="text", answer="filled", site=_site)

    def pictures(self, model: nn.Module, batch: MaskedTexts) -> list[Picture]:
        likely_NV = torch.softmax(model(*batch.inputs)[0].float(), dim=-1)
        shown_NC = likely_NV[:, list(batch.candidates)]
        return [Picture("candidates", "probability: blank → pieces", shown_NC, "filled", "candidates")]


def _site(site: str) -> tuple[str, str, str]:
    return f"encoder layer {layer_of(site)}: piece → piece", "text", "text"


def _pair_costs(scores_B2: Tensor, follows_B: Tensor) -> Tensor:
    """0 where there is no pair."""
    return F.cross_entropy(scores_B2.float(), follows_B, ignore_index=NO_PAIR, reduction="none")


def _candidates(prediction: Filled) -> dict[int, str]:
    """Of all blanks, each once."""
    return {piece: name for blank in prediction.blanks for piece, name, _ in blank.candidates}
