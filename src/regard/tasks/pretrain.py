"""pretrain: hidden words, and whether one text follows another, from documents without labels.

What it leaves behind is an encoder that other tasks begin with (`model.init_from`). By itself it fills the
blanks of a text that holds `[MASK]`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self
from zlib import crc32

import numpy as np
import torch
from pydantic import BaseModel, Field, model_validator
from torch import Tensor, nn
from torch.nn import functional as F

from regard.baselines import Baseline
from regard.baselines.language import Unigram
from regard.data.cache import Examples, Ints
from regard.data.example import Example
from regard.data.paired import Paired
from regard.data.sample import sampled
from regard.data.splits import End, Every, HoldOut
from regard.errors import CheckpointError, DataError, RecipeError
from regard.fields.axis import Axis
from regard.fields.field import Coded
from regard.fields.sentences import NO_PAIR, SentencePairs
from regard.fields.sentences import Sentences as SentencesField
from regard.files.documents import By
from regard.files.row import Row
from regard.layers.heads import log_probs, log_probs_and_hits, smoothed_cross_entropy
from regard.layers.inputs import Inputs
from regard.metrics.language import MAX_LOSS
from regard.metrics.metric import Metric
from regard.metrics.resample import Floats, Scores, unweighted
from regard.metrics.tally import Columns
from regard.models.widths import Widths
from regard.tasks.prediction import Prediction, Rounded
from regard.tasks.pretrain_data import PRETRAIN
from regard.tasks.shared import moved, tensors
from regard.tasks.task import Axes, Fields, Loss, Part, Picture, Task, TaskSettings, layer_of
from regard.tasks.task_data import TaskData
from regard.text.sentences import Sentences
from regard.text.tokenizer import Tokenizer, TokenizerConfig
from regard.text.wordpiece import MASK

ENOUGH_PARTS = 100_000
"""Documents, of a few thousand characters each, that a vocabulary is learnt from at most."""
CANDIDATES = 5
"""Tokens that each blank is answered with."""


class PretrainTokenizer(TokenizerConfig):
    """A vocabulary as BERT's: other tasks, and other tools, will read texts with it."""

    may_spell: ClassVar[bool] = False
    kind: Literal["wordpiece"] = Field("wordpiece", description="as BERT's, with its marks")
    lowercase: bool = Field(True, description="fold case, and leave out accents, before anything else")


class PretrainConfig(TaskSettings):
    """Documents in, an encoder out; and a text with blanks in, what fills them out."""

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
        128, ge=8, le=60_000, description="tokens of both texts together; three marks come on top"
    )
    mask_share: float = Field(0.15, gt=0, lt=1, description="of the tokens, to be hidden and found")
    whole_words: bool = Field(False, description="hide all tokens of a word or none")

    @model_validator(mode="after")
    def _has_sentences(self) -> Self:
        if self.documents == self.sentences == "lines":
            raise ValueError(
                "documents and sentences cannot both be lines, as every document would have one sentence; "
                'set sentences = "marks", or documents = "paragraphs"'
            )
        return self

    @property
    def given(self) -> dict[str, Any]:
        """The unfitted field that is read, by role."""
        return {"text": SentencesField(self.tokenizer, by=self.sentences)}

    @property
    def unfitted(self) -> Fields:
        return self.given

    @property
    def document(self) -> By:
        return self.documents

    @property
    def hold_out(self) -> HoldOut:
        return End() if self.documents == "files" else Every("documents")


@dataclass(frozen=True)
class MaskedBatch:
    inputs: Inputs
    """Tensors of the input, with the `places` of hidden tokens."""
    labels_N: Tensor
    follows_B: Tensor
    examples: tuple[Example, ...]
    candidates: tuple[int, ...] = ()
    """The tokens of a replay whose probabilities are shown."""

    @property
    def counts(self) -> dict[str, int]:
        return {"masked": len(self.labels_N), "pairs": int((self.follows_B != NO_PAIR).sum())}

    def to(self, device: torch.device) -> Self:
        labels_N, follows_B = self.labels_N.to(device), self.follows_B.to(device)
        return replace(self, inputs=moved(self.inputs, device), labels_N=labels_N, follows_B=follows_B)


class Candidate(BaseModel):
    text: str
    probability: Rounded
    id: int = Field(exclude=True)


class Blank(BaseModel):
    start: int = Field(description="character of the text it begins with, counted from 0")
    end: int = Field(description="character before which it ends")
    candidates: tuple[Candidate, ...] = Field(description="the likeliest first")


class Filled(Prediction):
    """`text` has the likeliest token in each blank."""

    blanks: tuple[Blank, ...]


class Counts(NamedTuple):
    """The hidden tokens of an example, their cost, and how many were found; the same of its pair."""

    masked: int
    nats: float
    hits: int
    pairs: int
    pair_nats: float
    pair_hits: int


@dataclass(frozen=True)
class MaskedTally(Columns):
    has_loss: ClassVar[bool] = True
    vocabulary: str
    """Its digest."""
    seen: list[int]
    """A checksum of the tokens of each example as they were seen."""
    counts: list[Counts]

    @property
    def n_tokens(self) -> int:
        return sum(one.masked for one in self.counts)

    @property
    def truth(self) -> list[tuple[str, int, int]]:
        """Tokens of another vocabulary are other tokens, and so are those in other places."""
        examples = zip(self.seen, self.counts, strict=True)
        return [(self.vocabulary, seen, one.masked) for seen, one in examples]

    def weighed(self, weights_RN: Floats) -> Scores:
        """Leave out the score of what follows if there are no pairs."""
        sums_R6 = weights_RN @ np.array(self.counts, np.float64).reshape(-1, 6)
        masked_R, nats_R, hits_R, pairs_R, pair_nats_R, pair_hits_R = sums_R6.T
        masked_R, among_R = np.maximum(1, masked_R), np.maximum(1, pairs_R)
        loss_R = nats_R / masked_R
        scores = {
            "loss": loss_R + pair_nats_R / among_R,
            "mlm_accuracy": 100 * hits_R / masked_R,
            "mlm_perplexity": np.exp(np.minimum(loss_R, MAX_LOSS)),
        }
        if any(one.pairs for one in self.counts):
            scores["nsp_accuracy"] = 100 * pair_hits_R / among_R
        return scores

    def metrics(self) -> dict[str, float]:
        """DataError where nothing was hidden, which would look like finding all of it."""
        if not self.n_tokens:
            raise DataError(
                "nothing could be hidden: the vocabulary knows no token of the texts to be scored; give "
                "others, or a vocabulary that was learnt from such texts"
            )
        return unweighted(self)

    def signatures(self) -> dict[str, str]:
        return {}

    def by_kind(self) -> dict[str, dict[str, float]]:
        return {}


class Pretrain(Task):
    kind: ClassVar[str] = "pretrain"
    data: ClassVar[TaskData] = PRETRAIN
    says: ClassVar[str] = "Texts with [MASK] in, the likeliest tokens for every blank out."
    prediction: ClassVar[type[BaseModel]] = Filled
    route: ClassVar[str] = "fill"
    settings: ClassVar[type[Any]] = PretrainConfig
    models: ClassVar[tuple[str, ...]] = ("bert_pretraining",)
    called: ClassVar[str] = "a pretrained BERT"
    sample: ClassVar[str] = f"your {MASK}"
    layout: ClassVar[type[Examples]] = Paired
    draws: ClassVar[bool] = True
    metric = Metric("mlm_accuracy")
    baselines: ClassVar[tuple[type[Baseline], ...]] = (Unigram,)

    def __init__(self, config: PretrainConfig, text: SentencesField) -> None:
        """Takes the fitted field."""
        self.config, self.text = config, text
        self.given = {"text": text}
        self.input = SentencePairs(
            (text,), config.max_length, share=config.mask_share, whole_words=config.whole_words
        )
        self.widths = Widths(text.width)

    @classmethod
    def fit(cls, config: PretrainConfig, rows: Iterable[Row], tokenizer: Tokenizer | None = None) -> Self:
        texts = () if tokenizer else sampled((row.cells["text"] for row in rows), ENOUGH_PARTS)
        text = config.given["text"].fit(texts, tokenizer)
        if text.tokenizer.special.mask is None:
            raise RecipeError(
                f"model.init_from: its vocabulary has no {MASK} to hide words behind; begin with a BERT that "
                "has one, or without init_from"
            )
        return cls(config, text)

    @classmethod
    def of_vocabulary(cls, config: PretrainConfig, tokenizer: Tokenizer) -> Self:
        """The task with a vocabulary that was learnt elsewhere."""
        return cls(config, replace(config.given["text"], learnt=tokenizer))

    @property
    def tokenizer(self) -> Tokenizer:
        return self.text.tokenizer

    @property
    def room(self) -> int:
        return self.config.max_length

    @property
    def tokenizers(self) -> dict[str, Tokenizer]:
        return {"text": self.tokenizer}

    def save(self, folder: Path) -> None:
        self.text.save(folder)

    @classmethod
    def load(cls, config: PretrainConfig, folder: Path) -> Self:
        text = config.given["text"].load(folder)
        if text.tokenizer.special.mask is None:
            path = folder / "tokenizer.json"
            raise CheckpointError(f"{path}: the vocabulary lacks {MASK}, which this model needs")
        return cls(config, text)

    def encode(self, rows: Sequence[Row]) -> list[Example]:
        parts = self.text.encode([self.text.parse(row.cells["text"], row.where) for row in rows])
        read = [self.input.assemble([part]) for part in parts]
        return [Example(row, *coded) for row, coded in zip(rows, read, strict=True)]

    def unusable(self, example: Example) -> None:
        """A part without words may still be where its document ends."""

    def is_answerable(self, example: Example) -> bool:
        return not self.input.is_empty(example.arrays)

    def size(self, example: Example) -> tuple[int]:
        return (self.input.size(example.arrays),)

    def draw(self, example: Example, rng: np.random.Generator, others: Sequence[Any]) -> Example:
        """Two runs of sentences with some tokens hidden; the layout has drawn which runs."""
        return replace(example, arrays=self.input.draw(example.arrays, rng))

    def collate(self, examples: Sequence[Example]) -> MaskedBatch:
        """Runs as they were drawn; in a document that is asked about, the masks are what is hidden."""
        drawn = tuple(one if "places" in one.arrays else self.blanked(one) for one in examples)
        arrays = [one.arrays for one in drawn]
        return MaskedBatch(
            tensors(self.input.collate(arrays)),
            torch.from_numpy(np.concatenate([one["labels"] for one in arrays]).astype(np.int64)),
            torch.from_numpy(np.concatenate([one["follows"] for one in arrays])),
            drawn,
        )

    def blanked(self, example: Example) -> Example:
        """A text to fill in, with the mask wherever it says so."""
        row = example.row
        parts = self.tokenizer.ids(row.cells["text"].split(MASK))
        if row.cells["text"].strip() and len(parts) == 1:
            raise DataError(f"{row.where}: the text has no {MASK}; write it where a word is to be found")
        if (n_tokens := sum(map(len, parts)) + len(parts) - 1) > self.room:
            raise DataError(
                f"{row.where}: the text has {n_tokens} tokens, this model reads {self.room} at most "
                "(task.max_length); give less of it"
            )
        return replace(example, arrays=self.input.blanked(parts))

    def loss(self, model: nn.Module, batch: MaskedBatch) -> Loss:
        costs_2, scores_B2 = model(batch.inputs, smoothed_cross_entropy(batch.labels_N, 0.0))
        pairs = _pair_costs(scores_B2, batch.follows_B).sum()
        return Loss(
            {"masked": Part(costs_2[0]), "pairs": Part(pairs)},
            shown={"masked": costs_2[1].detach(), "pairs": pairs.detach()},
        )

    def measure(self, model: nn.Module, batch: MaskedBatch, *, thorough: bool) -> MaskedTally:
        scores_2N, scores_B2 = model(batch.inputs, log_probs_and_hits(batch.labels_N))
        counts = [len(example.arrays["places"]) for example in batch.examples]
        nats, hits = (torch.split(row.double(), counts) for row in scores_2N)
        answers = zip(
            (-float(each.sum()) for each in nats),
            (int(each.sum()) for each in hits),
            _pair_costs(scores_B2, batch.follows_B).tolist(),
            (scores_B2.argmax(-1) == batch.follows_B).int().tolist(),
            strict=True,
        )
        return self.tally(batch.examples, [*answers])

    def tally(self, examples: Sequence[Example], answers: Sequence[Any]) -> MaskedTally:
        """The tally of tuples: the cost of hidden tokens, how many are right; that of the pair, if it is."""
        counts = [
            Counts(len(one.arrays["places"]), nats, hits, int(has_pair(one)), pair_nats, pair_hits)
            for one, (nats, hits, pair_nats, pair_hits) in zip(examples, answers, strict=True)
        ]
        seen = [crc32(one.arrays["ids"].tobytes()) for one in examples]
        return MaskedTally(self.tokenizer.digest, seen, counts)

    def samples(
        self, model: nn.Module, examples: Sequence[Example], device: torch.device
    ) -> list[dict[str, str]]:
        """The hidden tokens of some validation examples, and those that the model finds."""
        batch = self.collate(examples).to(device)
        best_N = model(batch.inputs)[0].argmax(-1)
        counts = [len(example.arrays["places"]) for example in examples]
        return [
            {
                "input": self._seen(one.arrays["ids"]),
                "expected": self._named(one.arrays["labels"]),
                "answer": self._named(best),
            }
            for one, best in zip(examples, torch.split(best_N.cpu(), counts), strict=True)
        ]

    def _seen(self, ids: Ints) -> str:
        """The text of these tokens, with the mask where it stands among them."""
        spelt = self.tokenizer.spellings
        return "".join(f" {MASK}" if i == self.input.blank else spelt[i] for i in ids.tolist()).strip()

    def _named(self, ids: Ints | Tensor) -> str:
        return " ".join(self.tokenizer.tokens(ids.tolist()))

    def predict(self, model: nn.Module, batch: MaskedBatch) -> Iterator[tuple[int, Filled]]:
        with torch.inference_mode():
            likely_NV = torch.softmax(model(batch.inputs)[0].float(), dim=-1)
            likely_NV[:, self._never] = 0.0
            best = torch.topk(likely_NV, min(CANDIDATES, likely_NV.shape[1] - len(self._never)))
        counts = [len(example.arrays["places"]) for example in batch.examples]
        parts = zip(torch.split(best.indices, counts), torch.split(best.values, counts), strict=True)
        for number, (example, (ids, likely)) in enumerate(zip(batch.examples, parts, strict=True)):
            yield number, self._filled(example.row, ids.tolist(), likely.tolist())

    @cached_property
    def _never(self) -> list[int]:
        """The marks, which are no words."""
        return sorted({*self.tokenizer.special.skipped, self.tokenizer.special.unknown})

    def _filled(self, row: Row, ids: list[list[int]], likely: list[list[float]]) -> Filled:
        """The filled text, in which a token that continues a word stands without the space before it."""
        text, *rest = row.cells["text"].split(MASK)
        blanks, start = [], len(text)
        for best, probabilities, after in zip(ids, likely, rest, strict=True):
            names = [self.tokenizer.names[i] for i in best]
            candidates = tuple(
                Candidate(text=name.removeprefix("##"), probability=probability, id=i)
                for name, probability, i in zip(names, probabilities, best, strict=True)
            )
            blanks.append(Blank(start=start, end=start + len(MASK), candidates=candidates))
            continues = names[0] != candidates[0].text
            text = (text.rstrip() if continues else text) + candidates[0].text + after
            start += len(MASK) + len(after)
        return Filled(text=text, blanks=tuple(blanks))

    def force(self, example: Example, prediction: Filled) -> MaskedBatch:
        batch = self.collate([example])
        labels = [blank.candidates[0].id for blank in prediction.blanks]
        return replace(batch, labels_N=torch.tensor(labels), candidates=tuple(_candidates(prediction)))

    def replay(self, model: nn.Module, batch: MaskedBatch) -> Tensor:
        log_prob_N: Tensor = model(batch.inputs, log_probs(batch.labels_N))[0]
        return log_prob_N.view(len(batch.follows_B), -1)

    def leave_out(self, batch: MaskedBatch, axis: Axis, units: Sequence[int]) -> MaskedBatch:
        n, device = len(units), batch.labels_N.device
        arrays = {name: tensor.cpu().numpy() for name, tensor in batch.inputs.items()}
        inputs = moved(tensors(self.input.without(arrays, axis, units, "blank")), device)
        labels_N, follows_B = batch.labels_N.repeat(n), batch.follows_B.expand(n)
        return MaskedBatch(inputs, labels_N, follows_B, batch.examples * n, batch.candidates)

    def axes(self, example: Example, prediction: Filled) -> Axes:
        read = self.blanked(example)
        best = tuple(blank.candidates[0].text for blank in prediction.blanks)
        by_name = {
            "text": self.input.axis([read.row.cells["text"]], Coded(read.arrays)),
            "filled": Axis("filled in", best),
            "candidates": Axis("could stand there", tuple(_candidates(prediction).values())),
        }
        return Axes(by_name, left_out="text", answer="filled", site=_site)

    def pictures(self, model: nn.Module, batch: MaskedBatch) -> list[Picture]:
        likely_NV = torch.softmax(model(batch.inputs)[0].float(), dim=-1)
        shown_NC = likely_NV[:, list(batch.candidates)]
        return [Picture("candidates", "probability: blank → tokens", shown_NC, "filled", "candidates")]


def has_pair(example: Example) -> bool:
    """True if it has two runs of sentences."""
    return bool(example.arrays["follows"][0] != NO_PAIR)


def _site(site: str) -> tuple[str, str, str]:
    return f"encoder layer {layer_of(site)}: token → token", "text", "text"


def _pair_costs(scores_B2: Tensor, follows_B: Tensor) -> Tensor:
    """The cross entropy of each pair; 0 where there is none."""
    return F.cross_entropy(scores_B2.float(), follows_B, ignore_index=NO_PAIR, reduction="none")


def _candidates(prediction: Filled) -> dict[int, str]:
    """The candidates of all blanks, each once."""
    return {one.id: one.text for blank in prediction.blanks for one in blank.candidates}
