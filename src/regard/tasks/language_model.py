"""language_model: what comes next in a text, and what after that: a prompt is continued.

It is learnt from text without seams (data/packed.py): documents one after another, each closed by an end
mark, in blocks of `max_length`. Scores are of whole texts, cut into blocks in the same way.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isnan
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import BaseModel, Field
from torch import Tensor, nn

from regard.baselines import Baseline
from regard.baselines.language import NgramModel
from regard.data.cache import Examples, Ints
from regard.data.example import Example
from regard.data.packed import Packed
from regard.data.sample import sampled
from regard.data.splits import End, Every, HoldOut
from regard.decode import DecodeConfig, Hypothesis, Step, in_order
from regard.errors import DataError
from regard.fields.axis import Axis, ended
from regard.fields.document import Document
from regard.fields.field import Coded
from regard.files.documents import By
from regard.files.row import Row
from regard.layers.heads import log_probs, smoothed_cross_entropy
from regard.layers.inputs import Inputs
from regard.metrics.language import perplexity
from regard.metrics.metric import Metric
from regard.metrics.resample import Floats, Scores, unweighted
from regard.metrics.tally import Columns
from regard.models import GPT
from regard.models.widths import Widths
from regard.tasks.language_model_data import LANGUAGE_MODEL
from regard.tasks.prediction import OTHERS, Written
from regard.tasks.shared import moved, tensors
from regard.tasks.task import Axes, Fields, Loss, Part, TaskSettings, layer_of, padded
from regard.tasks.task_data import TaskData
from regard.tasks.writer import Writer
from regard.tasks.writing import Writing
from regard.text.pretokenize import Space
from regard.text.tokenizer import Tokenizer, TokenizerConfig

ENOUGH_PARTS = 100_000
"""Texts, of a few thousand characters each, that a vocabulary is learnt from at most."""
MOST_WRITTEN = 10_000
"""Tokens of a continuation at most, whoever asks."""
CONTINUATION_BYTES = range(0x80, 0xC0)
"""Bytes of UTF-8 that begin no character."""


class TextTokenizer(TokenizerConfig):
    space: Space = Field(
        "kept",
        description="white space: kept as it is, line ends too (bpe, unigram, char), or made one space",
    )


class ContinueConfig(DecodeConfig):
    """A text goes on for a given length, whatever that of its beginning; the likeliest way soon repeats."""

    sample: bool = Field(True, description="draw each token by its probability; `beam` is not used then")
    top_p: float = Field(0.95, gt=0, le=1, description="draw from the likeliest that make up this share")
    max_length: int | None = Field(200, ge=1, description="tokens at most; max_ratio is not used")

    def limit(self, n_source: int) -> int:
        return MOST_WRITTEN if self.max_length is None else self.max_length + 1

    def changed(self, **changes: Any) -> Self:
        """The settings with these changes; a search with a beam draws nothing."""
        drawn = {"sample": False} if "beam" in changes else {}
        return super().changed(**(drawn | changes))


class LanguageModelConfig(TaskSettings):
    """A text in, how it goes on out."""

    kind: Literal["language_model"] = "language_model"
    roles: ClassVar[tuple[str, ...]] = ("text",)
    inputs: ClassVar[tuple[str, ...]] = ("text",)
    tokenizer: TextTokenizer = TextTokenizer()
    documents: By = Field(
        "files",
        description="what a document of plain text is: a line, what stands between blank lines, or a file; "
        "of .tsv, .csv, .jsonl and .parquet it is each row",
    )
    max_length: int = Field(256, ge=4, description="tokens of a block, and so of what is read back at most")
    label_smoothing: float = Field(0.0, ge=0, lt=1)
    decode: ContinueConfig = ContinueConfig()

    @property
    def given(self) -> dict[str, Any]:
        """The unfitted field that is read, by role."""
        return {"text": Document(self.tokenizer)}

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
class PassageBatch:
    inputs: Inputs
    examples: tuple[Example, ...]
    continued: Tensor | None = None
    """The tokens of an answer that is replayed, in one row; they stand at the end of the passage."""
    left_out: Sequence[int] | None = None
    """The places of a replay that are left out, each in a row of its own."""

    @cached_property
    def keep_BT(self) -> Tensor | None:
        """True where a token is predicted; None for everywhere."""
        ids_BT, lengths_B = self.inputs["ids"], self.inputs["lengths"]
        places_T = torch.arange(1, ids_BT.shape[1], device=ids_BT.device)
        keep_BT = places_T < lengths_B[:, None]
        return None if bool(keep_BT.all()) else keep_BT

    @property
    def labels_N(self) -> Tensor:
        labels_BT = self.inputs["ids"][:, 1:]
        return labels_BT.flatten() if self.keep_BT is None else labels_BT[self.keep_BT]

    @property
    def counts(self) -> dict[str, int]:
        return {"tokens": int(self.inputs["lengths"].sum()) - len(self.inputs["lengths"])}

    def to(self, device: torch.device) -> Self:
        continued = None if self.continued is None else self.continued.to(device)
        return replace(self, inputs=moved(self.inputs, device), continued=continued)


class Continuation(Written):
    """`text` is what follows the prompt, without it."""

    others: tuple["Continuation", ...] = OTHERS


@dataclass(frozen=True)
class BlockTally(Columns):
    """The cost of every block, its tokens, its characters, and how many of the tokens are unknown."""

    has_loss: ClassVar[bool] = True
    vocabulary: str
    """Its digest."""
    nats: list[float]
    tokens: list[int]
    characters: list[int]
    unknown: list[int]

    @property
    def n_tokens(self) -> int:
        return sum(self.tokens)

    @property
    def truth(self) -> list[tuple[str, int, int]]:
        """Blocks of another vocabulary are other blocks."""
        return [(self.vocabulary, *of) for of in zip(self.tokens, self.characters, strict=True)]

    def weighed(self, weights_RN: Floats) -> Scores:
        """Add the share of unknown tokens, if there are any: what they stand for was not predicted."""
        sums_R4 = weights_RN @ np.array([self.nats, self.tokens, self.characters, self.unknown]).T
        nats_R, tokens_R, characters_R, unknown_R = sums_R4.T
        scores = perplexity(nats_R, tokens_R, characters_R)
        return scores | ({"unknown": 100 * unknown_R / tokens_R} if any(self.unknown) else {})

    def metrics(self) -> dict[str, float]:
        return unweighted(self)

    def signatures(self) -> dict[str, str]:
        return {}

    def by_kind(self) -> dict[str, dict[str, float]]:
        return {}


class LanguageModel(Writing):
    kind: ClassVar[str] = "language_model"
    data: ClassVar[TaskData] = LANGUAGE_MODEL
    says: ClassVar[str] = "Texts in, how they go on out; with `stream`, events as for /v1/translate."
    prediction: ClassVar[type[BaseModel]] = Continuation
    route: ClassVar[str] = "generate"
    settings: ClassVar[type[Any]] = LanguageModelConfig
    models: ClassVar[tuple[str, ...]] = ("gpt",)
    called: ClassVar[str] = "a language model"
    layout: ClassVar[type[Examples]] = Packed
    shares_length: ClassVar[bool] = True
    metric = Metric("probability")
    baselines: ClassVar[tuple[type[Baseline], ...]] = (NgramModel,)

    def __init__(self, config: LanguageModelConfig, text: Document) -> None:
        """Takes the fitted field."""
        self.config, self.text = config, text
        self.given = {"text": text}
        self.input = text.streamed(config.max_length)
        self.widths = Widths(text.width, text.width, shared=True)
        self.writer = Writer(self.tokenizer, MOST_WRITTEN, f"the {MOST_WRITTEN:,} of any continuation")

    @classmethod
    def fit(
        cls, config: LanguageModelConfig, rows: Iterable[Row], tokenizer: Tokenizer | None = None
    ) -> Self:
        texts = () if tokenizer else sampled((row.cells["text"] for row in rows), ENOUGH_PARTS)
        return cls(config, config.given["text"].fit(texts, tokenizer)).checked()

    @classmethod
    def of_vocabulary(cls, config: LanguageModelConfig, tokenizer: Tokenizer) -> Self:
        """The task with a vocabulary that was learnt elsewhere."""
        return cls(config, replace(config.given["text"], learnt=tokenizer))

    @property
    def tokenizer(self) -> Tokenizer:
        return self.text.tokenizer

    @property
    def block(self) -> int:
        return self.config.max_length

    @property
    def decode(self) -> DecodeConfig:
        return self.config.decode

    @property
    def tokenizers(self) -> dict[str, Tokenizer]:
        return {"text": self.tokenizer}

    def with_settings(self, **changes: Any) -> Self:
        decode = self.config.decode.changed(**changes)
        return type(self)(self.config.model_copy(update={"decode": decode}), self.text)

    def save(self, folder: Path) -> None:
        self.text.save(folder)

    @classmethod
    def load(cls, config: LanguageModelConfig, folder: Path) -> Self:
        return cls(config, config.given["text"].load(folder))

    def encode(self, rows: Sequence[Row]) -> list[Example]:
        parts = self.text.encode([self.text.parse(row.cells["text"], row.where) for row in rows])
        read = [self.input.assemble([part]) for part in parts]
        return [Example(row, *coded) for row, coded in zip(rows, read, strict=True)]

    def is_answerable(self, example: Example) -> bool:
        return not self.input.is_empty(example.arrays)

    def size(self, example: Example) -> tuple[int]:
        return (max(1, len(self.input.opened(_coded(example)))),)

    def collate(self, examples: Sequence[Example]) -> PassageBatch:
        return PassageBatch(tensors(self.input.collate([one.arrays for one in examples])), tuple(examples))

    def loss(self, model: nn.Module, batch: PassageBatch) -> Loss:
        read = smoothed_cross_entropy(batch.labels_N, self.config.label_smoothing)
        smoothed, plain = model(batch.inputs["ids"][:, :-1], batch.keep_BT, read)
        return Loss({"tokens": Part(smoothed)}, shown={"tokens": plain.detach()})

    def measure(self, model: nn.Module, batch: PassageBatch, *, thorough: bool) -> BlockTally:
        log_prob_N = model(batch.inputs["ids"][:, :-1], batch.keep_BT, log_probs(batch.labels_N))
        blocks = torch.split(log_prob_N, (batch.inputs["lengths"] - 1).tolist())
        return self.tally(batch.examples, [-float(each.double().sum()) for each in blocks])

    def tally(self, examples: Sequence[Example], answers: Sequence[Any]) -> BlockTally:
        """The tally of −log of the probability of each block after its first token."""
        labels = [one.arrays["ids"][1:] for one in examples]
        sums = [self._spelt_V2[ids].sum(0).tolist() for ids in labels]
        return BlockTally(
            self.tokenizer.digest,
            [*answers],
            list(map(len, labels)),
            [characters for characters, _ in sums],
            [unknown for _, unknown in sums],
        )

    @cached_property
    def _spelt_V2(self) -> Ints:
        """Number of characters that each token begins, and whether it is unknown; end marks begin none."""
        spelt = [spelling.encode("utf-8", "surrogateescape") for spelling in self.tokenizer.spellings]
        counts = [sum(byte not in CONTINUATION_BYTES for byte in token) for token in spelt]
        special = self.tokenizer.special
        spelt_V2 = np.array([(n_characters, 0) for n_characters in counts])
        if special.unknown not in special.skipped:
            spelt_V2[special.unknown] = 1
        return spelt_V2

    def samples(
        self, model: nn.Module, examples: Sequence[Example], device: torch.device
    ) -> list[dict[str, str]]:
        """The second half of some blocks, as it is and as the model would have it."""
        halves = [np.split(one.arrays["ids"], [len(one.arrays["ids"]) // 2]) for one in examples]
        prompts = [
            replace(one, arrays={"ids": first}) for one, (first, _) in zip(examples, halves, strict=True)
        ]
        longest = max(self.writer.asked(self.decode), *(len(rest) for _, rest in halves))
        short = {"max_length": longest, "min_length": 0, "n_best": 1}
        config = self.config.model_copy(update={"decode": self.decode.model_copy(update=short)})
        task = type(self)(config, self.text)
        answers = in_order(task.predict(model, self.collate(prompts).to(device)))
        return [
            {
                "input": self.tokenizer.decode(first.tolist()),
                "expected": self.text_of(prompt, rest.tolist()),
                "answer": answer.text,
            }
            for prompt, (first, rest), answer in zip(prompts, halves, answers, strict=True)
        ]

    def search(self, model: nn.Module, batch: PassageBatch, decode: DecodeConfig) -> Iterator[Step]:
        assert isinstance(model, GPT)
        prompts = [self.prompt(example) for example in batch.examples]
        device = batch.inputs["ids"].device
        lengths_B = torch.tensor([len(prompt) for prompt in prompts], device=device)
        state = model.start(padded(prompts).to(device), lengths_B, self.block)
        return self.writer(model, state, [prompt.tolist() for prompt in prompts], decode, device)

    def prompt(self, example: Example) -> Ints:
        """The tokens to continue: after an end mark where they begin a document, or are too few to tell."""
        ids: Ints = self.input.opened(_coded(example))
        if self.config.documents != "files" or len(ids) < 2:
            ids = np.insert(ids, 0, self.input.end)
        if len(ids) > self.block:
            raise DataError(
                f"{example.row.where}: the text has {len(ids)} tokens, this model reads {self.block} "
                "at most (task.max_length); give less of it"
            )
        return ids

    def text_of(self, example: Example, ids: Sequence[int]) -> str:
        """Decoded together with the prompt, since a token may mean something else at the beginning."""
        before = self.input.opened(_coded(example)).tolist()
        prompt = self.tokenizer.decode(before)
        return self.tokenizer.decode([*before, *ids])[len(prompt) :]

    def told(self, example: Example, found: Sequence[Hypothesis]) -> Continuation:
        best, *rest = found
        return Continuation(
            text=self.text_of(example, best.ids),
            score=None if isnan(best.score) else best.score,
            others=tuple(self.told(example, [other]) for other in rest),
            ids=best.ids,
            steps=best.steps,
        )

    def _forced(self, example: Example, prediction: Continuation) -> tuple[list[int], list[int]]:
        """The prompt and as much of the answer as one block holds."""
        prompt = self.prompt(example).tolist()
        answer = list(prediction.ids) or [self.input.end]
        return prompt, answer[: self.block + 1 - len(prompt)]

    def force(self, example: Example, prediction: Continuation) -> PassageBatch:
        prompt, answer = self._forced(example, prediction)
        batch = self.collate([Example(example.row, {"ids": np.array(prompt + answer)})])
        return replace(batch, continued=torch.tensor([answer]))

    def replay(self, model: nn.Module, batch: PassageBatch) -> Tensor:
        """NaN for what comes before the token that was left out, as it cannot change."""
        assert batch.continued is not None
        ids_BT, labels_1Q = batch.inputs["ids"], batch.continued
        n_rows, length = ids_BT.shape
        end = length + (batch.left_out is not None)
        before_1Q = torch.arange(end - labels_1Q.shape[1], end, device=ids_BT.device)[None] - 1
        if batch.left_out is None:
            return _log_probs(model, ids_BT[:, :-1], before_1Q, labels_1Q)
        left_out_B1 = torch.tensor(batch.left_out, device=ids_BT.device)[:, None]
        moved_BQ = before_1Q - (before_1Q >= left_out_B1).long()
        log_probs_BQ = _log_probs(model, ids_BT[:, :-1], moved_BQ, labels_1Q.expand(n_rows, -1))
        return log_probs_BQ.masked_fill(before_1Q < left_out_B1, torch.nan)

    def leave_out(self, batch: PassageBatch, axis: Axis, units: Sequence[int]) -> PassageBatch:
        arrays = {name: tensor.cpu().numpy() for name, tensor in batch.inputs.items()}
        shorter = tensors(self.input.without(arrays, axis, units, "shorten"))
        inputs = moved(shorter, batch.inputs["ids"].device)
        return replace(batch, inputs=inputs, examples=batch.examples * len(units), left_out=units)

    def axes(self, example: Example, prediction: Continuation) -> Axes:
        prompt, answer = self._forced(example, prediction)
        labels = self.tokenizer.tokens([*prompt, *answer])
        by_name = {
            "context": ended("the text so far", tuple(labels[:-1])),
            "next": Axis("what comes next", tuple(labels[len(prompt) :])),
        }
        return Axes(by_name, left_out="context", answer="next", site=_site)


def _coded(example: Example) -> Coded:
    return Coded(example.arrays, example.notes)


def _site(site: str) -> tuple[str, str, str]:
    return f"layer {layer_of(site)}: what comes next → the text so far", "next", "context"


def _log_probs(model: nn.Module, ids_BT: Tensor, before_BQ: Tensor, labels_BQ: Tensor) -> Tensor:
    """The log-probability of each label after all tokens up to a place before it."""
    rows_B1 = torch.arange(len(ids_BT), device=ids_BT.device)[:, None]
    places_N = (rows_B1 * ids_BT.shape[1] + before_BQ).flatten()
    head = log_probs(labels_BQ.flatten())
    log_prob_N: Tensor = model(ids_BT, None, lambda out: head(out.at(places_N)))
    return log_prob_N.view(len(ids_BT), -1)
