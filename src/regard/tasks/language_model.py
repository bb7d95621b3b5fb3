"""language_model: what comes next in a text, and what after that: a prompt is continued.

It is learnt from text without seams (data/packed.py): documents one after another, each closed by an end
mark, in blocks of `max_length`. Scores are of whole texts, cut into blocks in the same way.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import BaseModel, Field
from torch import Tensor, nn

from regard.baselines import Baseline
from regard.baselines.language import NgramModel
from regard.data.cache import Arrays, Examples, Ints
from regard.data.packed import Packed
from regard.data.sample import sampled
from regard.data.splits import End, Every, HoldOut
from regard.decode import DecodeConfig, Hypothesis, Step, in_order
from regard.errors import DataError
from regard.fields.axis import Axis, ended
from regard.files.documents import By, goes_on
from regard.files.row import Row
from regard.layers.heads import log_probs, smoothed_cross_entropy
from regard.metrics.metric import Metric
from regard.models import GPT
from regard.models.widths import Widths
from regard.tasks.language_model_data import LANGUAGE_MODEL
from regard.tasks.language_model_data import Continuation as ContinuationAnswer
from regard.tasks.stretch import BlockTally, Continuation, Stretch, Stretches
from regard.tasks.task import Axes, Loss, Part, TaskSettings, layer_of, padded, without_each
from regard.tasks.task_data import TaskData
from regard.tasks.writer import Writer
from regard.tasks.writing import Writing
from regard.text.tokenizer import Tokenizer, TokenizerConfig
from regard.text.writing import Space

ENOUGH_PARTS = 100_000
"""Of texts, a few thousand characters each, that a vocabulary is learnt from at most."""
MOST_WRITTEN = 10_000
"""Pieces of a continuation at most, whoever asks."""
CONTINUATION_BYTES = range(0x80, 0xC0)
"""In UTF-8: they begin no character."""


class TextTokenizer(TokenizerConfig):
    space: Space = Field(
        "kept",
        description="white space: kept as it is, line ends too (bpe, unigram, char), or made one space",
    )


class ContinueConfig(DecodeConfig):
    """A text goes on for a given length, whatever that of its beginning; the likeliest way soon repeats."""

    sample: bool = Field(True, description="draw each piece by its probability; `beam` is not used then")
    top_p: float = Field(0.95, gt=0, le=1, description="draw from the likeliest that make up this share")
    max_length: int | None = Field(200, ge=1, description="pieces at most; max_ratio is not used")

    def limit(self, n_source: int) -> int:
        return MOST_WRITTEN if self.max_length is None else self.max_length + 1

    def changed(self, **changes: Any) -> Self:
        """Who asks for a beam wants nothing drawn."""
        drawn = {"sample": False} if "beam" in changes else {}
        return super().changed(**(drawn | changes))


class LanguageModelConfig(TaskSettings):
    kind: Literal["language_model"] = "language_model"
    roles: ClassVar[tuple[str, ...]] = ("text",)
    inputs: ClassVar[tuple[str, ...]] = ("text",)
    tokenizer: TextTokenizer = TextTokenizer()
    documents: By = Field(
        "files",
        description="what a document of plain text is: a line, what stands between blank lines, or a file; "
        "of .tsv, .csv, .jsonl and .parquet it is each row",
    )
    max_length: int = Field(256, ge=4, description="pieces of a block, and so of what is read back at most")
    label_smoothing: float = Field(0.0, ge=0, lt=1)
    decode: ContinueConfig = ContinueConfig()

    @property
    def document(self) -> By:
        return self.documents

    @property
    def hold_out(self) -> HoldOut:
        return End() if self.documents == "files" else Every("documents")


class LanguageModel(Writing):
    kind: ClassVar[str] = "language_model"
    data: ClassVar[TaskData] = LANGUAGE_MODEL
    says: ClassVar[str] = "Texts in, how they go on out; with `stream`, events as for /v1/translate."
    prediction: ClassVar[type[BaseModel]] = ContinuationAnswer
    route: ClassVar[str] = "generate"
    settings: ClassVar[type[Any]] = LanguageModelConfig
    models: ClassVar[tuple[str, ...]] = ("gpt",)
    called: ClassVar[str] = "a language model"
    layout: ClassVar[type[Examples]] = Packed
    metric = Metric("probability")
    baselines: ClassVar[tuple[type[Baseline], ...]] = (NgramModel,)

    def __init__(self, config: LanguageModelConfig, tokenizer: Tokenizer) -> None:
        self.config, self.tokenizer = config, tokenizer
        self.widths = Widths({"vocab": len(tokenizer)}, {"vocab": len(tokenizer)}, shared=True)
        self.writer = Writer(tokenizer, MOST_WRITTEN, f"the {MOST_WRITTEN:,} of any continuation")

    @classmethod
    def fit(
        cls, config: LanguageModelConfig, rows: Iterable[Row], tokenizer: Tokenizer | None = None
    ) -> Self:
        if tokenizer is None:
            texts = sampled((row.cells["text"] for row in rows), ENOUGH_PARTS)
            tokenizer = Tokenizer.train(config.tokenizer, texts)
        return cls(config, tokenizer).checked()

    @property
    def block(self) -> int:
        return self.config.max_length

    @property
    def end(self) -> int:
        """What closes a document."""
        return self.tokenizer.marks.end

    @property
    def decode(self) -> DecodeConfig:
        return self.config.decode

    @property
    def tokenizers(self) -> dict[str, Tokenizer]:
        return {"text": self.tokenizer}

    def with_settings(self, **changes: Any) -> Self:
        decode = self.config.decode.changed(**changes)
        return type(self)(self.config.model_copy(update={"decode": decode}), self.tokenizer)

    def save(self, folder: Path) -> None:
        self.tokenizer.save(folder / "tokenizer.json")

    @classmethod
    def load(cls, config: LanguageModelConfig, folder: Path) -> Self:
        return cls(config, Tokenizer.load(folder / "tokenizer.json"))

    def encode(self, rows: Sequence[Row]) -> list[Stretch]:
        found = self.tokenizer.ids([row.cells["text"] for row in rows])
        return [Stretch(row, np.array(ids, np.int64)) for row, ids in zip(rows, found, strict=True)]

    def is_answerable(self, example: Stretch) -> bool:
        return len(example.tokens) > 0

    def size(self, example: Stretch) -> tuple[int]:
        return (max(1, len(example.tokens)),)

    def keep(self, example: Stretch) -> Arrays:
        """A document is closed where it ends."""
        tokens = example.tokens
        is_part = goes_on(example.row.cells["text"])
        return {"tokens": tokens if is_part else np.append(tokens, self.end)}

    def revive(self, row: Row, kept: Arrays) -> Stretch:
        return Stretch(row, kept["tokens"])

    def collate(self, examples: Sequence[Stretch]) -> Stretches:
        lengths = torch.tensor([len(example.tokens) for example in examples])
        return Stretches(padded([example.tokens for example in examples]), lengths, tuple(examples))

    def loss(self, model: nn.Module, batch: Stretches) -> Loss:
        read = smoothed_cross_entropy(batch.labels_N, self.config.label_smoothing)
        smoothed, plain = model(batch.tokens_BT[:, :-1], batch.keep_BT, read)
        return Loss({"tokens": Part(smoothed)}, shown={"tokens": plain.detach()})

    def measure(self, model: nn.Module, batch: Stretches, *, thorough: bool) -> BlockTally:
        log_prob_N = model(batch.tokens_BT[:, :-1], batch.keep_BT, log_probs(batch.labels_N))
        blocks = torch.split(log_prob_N, (batch.lengths_B - 1).tolist())
        return self.tally(batch.examples, [-float(each.double().sum()) for each in blocks])

    def tally(self, examples: Sequence[Stretch], answers: Sequence[Any]) -> BlockTally:
        """The tally of −log of the probability of each block after its first token."""
        sums = [self._spelt_V2[one.tokens[1:]].sum(0).tolist() for one in examples]
        return BlockTally(
            self.tokenizer.digest,
            [*answers],
            [len(one.tokens) - 1 for one in examples],
            [characters for characters, _ in sums],
            [unknown for _, unknown in sums],
        )

    @cached_property
    def _spelt_V2(self) -> Ints:
        """How many characters each piece begins, and whether it is unknown; end marks begin none."""
        spelt = [spelling.encode("utf-8", "surrogateescape") for spelling in self.tokenizer.spellings]
        counts = [sum(byte not in CONTINUATION_BYTES for byte in piece) for piece in spelt]
        marks = self.tokenizer.marks
        spelt_V2 = np.array([(n_characters, 0) for n_characters in counts])
        if marks.unknown not in marks.unspoken:
            spelt_V2[marks.unknown] = 1
        return spelt_V2

    def samples(
        self, model: nn.Module, examples: Sequence[Stretch], device: torch.device
    ) -> list[dict[str, str]]:
        """The second half of some blocks, as it is and as the model would have it."""
        prompts = [replace(one, tokens=one.tokens[: len(one.tokens) // 2]) for one in examples]
        rests = [one.tokens[len(one.tokens) // 2 :].tolist() for one in examples]
        longest = max(self.writer.asked(self.decode), *map(len, rests))
        short = {"max_length": longest, "min_length": 0, "n_best": 1}
        task = type(self)(
            self.config.model_copy(update={"decode": self.config.decode.model_copy(update=short)}),
            self.tokenizer,
        )
        answers = in_order(task.predict(model, self.collate(prompts).to(device)))
        return [
            {
                "input": self.tokenizer.decode(prompt.tokens.tolist()),
                "expected": self.text_of(prompt, rest),
                "answer": answer.text,
            }
            for prompt, rest, answer in zip(prompts, rests, answers, strict=True)
        ]

    def search(self, model: nn.Module, batch: Stretches, decode: DecodeConfig) -> Iterator[Step]:
        assert isinstance(model, GPT)
        prompts = [self.begun(example) for example in batch.examples]
        device = batch.tokens_BT.device
        lengths_B = torch.tensor([len(prompt) for prompt in prompts], device=device)
        state = model.start(padded(prompts).to(device), lengths_B, self.block)
        return self.writer(model, state, [prompt.tolist() for prompt in prompts], decode, device)

    def begun(self, example: Stretch) -> Ints:
        """What is continued. A document begins where another has ended; so does what is too short to tell."""
        tokens = example.tokens
        if self.config.documents != "files" or len(tokens) < 2:
            tokens = np.insert(tokens, 0, self.end)
        if len(tokens) > self.block:
            raise DataError(
                f"{example.row.where}: the text has {len(tokens)} pieces, this model reads {self.block} "
                "at most (task.max_length); give less of it"
            )
        return tokens

    def text_of(self, example: Stretch, ids: Sequence[int]) -> str:
        """Decoded together with the prompt, since a piece may mean something else at the beginning."""
        given = example.tokens.tolist()
        prompt = self.tokenizer.decode(given)
        return self.tokenizer.decode([*given, *ids])[len(prompt) :]

    def told(self, example: Stretch, found: Sequence[Hypothesis]) -> Continuation:
        best, *rest = found
        others = tuple(self.told(example, [other]) for other in rest)
        return Continuation(self.text_of(example, best.ids), best.ids, best.score, others, best.steps)

    def _forced(self, example: Stretch, prediction: Continuation) -> tuple[list[int], list[int]]:
        """The prompt and as much of the answer as one block holds."""
        prompt = self.begun(example).tolist()
        answer = list(prediction.ids) or [self.end]
        return prompt, answer[: self.block + 1 - len(prompt)]

    def force(self, example: Stretch, prediction: Continuation) -> Stretches:
        prompt, answer = self._forced(example, prediction)
        batch = self.collate([Stretch(example.row, np.array(prompt + answer))])
        return replace(batch, n_given=len(prompt))

    def replay(self, model: nn.Module, batch: Stretches) -> Tensor:
        """NaN for what comes before the token that was left out, which nothing was left out of."""
        tokens_BT, first = batch.tokens_BT, batch.n_given
        labels_BT = tokens_BT[:, first:]
        before_BT = torch.arange(first - 1, tokens_BT.shape[1] - 1, device=tokens_BT.device)[None]
        read_BT = tokens_BT[:, :-1]
        if batch.left_out is None:
            return _told(model, read_BT, before_BT, labels_BT)
        left_out_B1 = torch.tensor(batch.left_out, device=tokens_BT.device)[:, None]
        moved_BT = before_BT - (before_BT >= left_out_B1).long()
        labels_BT = labels_BT.expand(len(batch.left_out), -1)
        told_BT = _told(model, without_each(read_BT, batch.left_out), moved_BT, labels_BT)
        return told_BT.masked_fill(before_BT < left_out_B1, torch.nan)

    def leave_out(self, batch: Stretches, axis: Axis, pieces: Sequence[int]) -> Stretches:
        return replace(batch, left_out=pieces)

    def axes(self, example: Stretch, prediction: Continuation) -> Axes:
        prompt, answer = self._forced(example, prediction)
        labels = self.tokenizer.pieces([*prompt, *answer])
        by_name = {
            "context": ended("the text so far", tuple(labels[:-1])),
            "next": Axis("what comes next", tuple(labels[len(prompt) :])),
        }
        return Axes(by_name, left_out="context", answer="next", site=_site)


def _site(site: str) -> tuple[str, str, str]:
    return f"layer {layer_of(site)}: what comes next → the text so far", "next", "context"


def _told(model: nn.Module, read_BT: Tensor, before_BQ: Tensor, labels_BQ: Tensor) -> Tensor:
    """The log-probability of each label after what was read up to a place before it."""
    rows_B1 = torch.arange(len(read_BT), device=read_BT.device)[:, None]
    places_N = (rows_B1 * read_BT.shape[1] + before_BQ).flatten()
    read = log_probs(labels_BQ.flatten())
    told_N: Tensor = model(read_BT, None, lambda out: read(out.at(places_N)))
    return told_N.view(len(read_BT), -1)
