"""answer: the part of a context that answers a question, or that none does (SQuAD v1.1 and v2).

A context that is too long is read in overlapping windows. In training a window without the answer points at
its first place, as transformers has it; the best span over all windows is the answer. Where training data
have questions without an answer, that place says so, if every window scores it above the best span of all.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import torch
from pydantic import BaseModel, Field, model_validator
from torch import Tensor, nn
from torch.nn import functional as F

from regard.baselines import Baseline
from regard.baselines.spans import NearestSpan, NoAnswer, RandomSpan
from regard.data.example import Example
from regard.data.sample import sampled
from regard.data.splits import Every, HoldOut
from regard.decode import in_order
from regard.errors import DataError
from regard.fields.axis import Axis, ended
from regard.fields.field import Coded
from regard.fields.span import Span, answer_places
from regard.fields.text import Text
from regard.fields.windows import BETWEEN, ContextWindows
from regard.files.row import Row
from regard.layers.inputs import Inputs
from regard.metrics.answers import scores
from regard.metrics.metric import Metric
from regard.metrics.resample import Floats, Scores, unweighted
from regard.metrics.tally import Columns
from regard.models.answerer import best_spans
from regard.models.widths import Widths
from regard.tasks.answer_data import ANSWER
from regard.tasks.prediction import Prediction, Rounded
from regard.tasks.shared import moved, tensors
from regard.tasks.task import Axes, Fields, Loss, Part, Picture, Task, TaskSettings, word_to_word
from regard.tasks.task_data import TaskData
from regard.text.tokenizer import Tokenizer, TokenizerConfig

WINDOWS_TOGETHER = 64
"""Read at once when nothing is learnt: a book has thousands."""
MOST_NEAR = 127
"""Tokens that are made unknown in turn to explain an answer."""


class AnswerConfig(TaskSettings):
    """A question and a context in, the part of the context that answers out."""

    kind: Literal["answer"] = "answer"
    roles: ClassVar[tuple[str, ...]] = ("question", "context", "answer")
    inputs: ClassVar[tuple[str, ...]] = ("question", "context")
    tokenizer: TokenizerConfig = TokenizerConfig()
    max_length: int = Field(
        384,
        ge=8,
        description="tokens read at once: a question, the mark after it, and as much of its context as fits",
    )
    overlap: int = Field(
        128, ge=0, description="tokens that a window of a longer context shares with the one before"
    )
    max_question: int = Field(64, ge=1, description="tokens of a question; longer ones are cut")
    max_answer: int = Field(30, ge=1, description="tokens of an answer at most")

    @model_validator(mode="after")
    def _windows_advance(self) -> Self:
        room = self.max_length - BETWEEN - self.max_question
        if room <= self.overlap:
            raise ValueError(
                f"max_length ({self.max_length}) leaves {room} tokens of a context beside a long question, "
                f"which must be more than overlap ({self.overlap})"
            )
        return self

    @property
    def given(self) -> dict[str, Any]:
        """The unfitted fields that are read, by role."""
        return {"question": Text(self.tokenizer), "context": Text(self.tokenizer, located=True)}

    @property
    def unfitted(self) -> Fields:
        return self.given | {"answer": Span()}

    @property
    def hold_out(self) -> HoldOut:
        return Every("contexts", together="context")


@dataclass(frozen=True)
class AnswerBatch:
    inputs: Inputs
    """Rows of windows: those of all questions, one after another."""
    ends_R2: Tensor
    examples: tuple[Example, ...]

    @property
    def counts(self) -> dict[str, int]:
        return {"windows": len(self.ends_R2)}

    @property
    def keep_RT(self) -> Tensor:
        """True where an answer may stand: in the context."""
        segments_RT, lengths_R = self.inputs["segments"], self.inputs["lengths"]
        within_RT = torch.arange(segments_RT.shape[1], device=lengths_R.device) < lengths_R[:, None] - 1
        return segments_RT.bool() & within_RT

    def to(self, device: torch.device) -> Self:
        return replace(self, inputs=moved(self.inputs, device), ends_R2=self.ends_R2.to(device))


class Answered(Prediction):
    """An empty `text` says that the context does not answer; `input_cut`, that the question was cut."""

    start: int | None = Field(
        description="character of the context it begins with, counted from 0; null without an answer"
    )
    end: int | None = Field(description="character before which it ends")
    probability: Rounded = Field(description="of its beginning times that of its end, in its window")
    windows: int = Field(description="parts in which the context was read")
    window: int = Field(exclude=True)
    """The window in which the answer was found."""
    ends: tuple[int, int] = Field(exclude=True)
    """Its first and its last place there."""


@dataclass(frozen=True)
class AnswerTally(Columns):
    answers: list[str] = field(default_factory=list)
    right: list[tuple[str, ...]] = field(default_factory=list)
    """All that would be right; none where there is no answer."""

    @property
    def truth(self) -> list[tuple[str, ...]]:
        return self.right

    @cached_property
    def _scores(self) -> dict[str, list[float]]:
        """The score of each question, by metric."""
        each = [scores(answer, right) for answer, right in zip(self.answers, self.right, strict=True)]
        return {name: [one[name] for one in each] for name in each[0]}

    def weighed(self, weights_RN: Floats) -> Scores:
        sums_R = weights_RN.sum(1)
        return {name: 100 * (weights_RN @ np.array(column)) / sums_R for name, column in self._scores.items()}

    def metrics(self) -> dict[str, float]:
        return unweighted(self)

    def signatures(self) -> dict[str, str]:
        return {
            "f1": "as SQuAD's script: without case, punctuation, articles; the best over all right answers"
        }

    def by_kind(self) -> dict[str, dict[str, float]]:
        """Scores of questions with and without an answer, where there are both."""
        answered = [place for place, right in enumerate(self.right) if right]
        others = [place for place, right in enumerate(self.right) if not right]
        if not answered or not others:
            return {}
        kinds = {"has an answer": answered, "has none": others}
        return {kind: unweighted(self.taken(places)) | {"n": len(places)} for kind, places in kinds.items()}


class WindowAnswer(NamedTuple):
    """Answer of one window; the second score, and the second probability, are those of no answer."""

    ends: tuple[int, int]
    scores: tuple[float, float]
    probabilities: tuple[float, float]


class Answer(Task):
    kind: ClassVar[str] = "answer"
    data: ClassVar[TaskData] = ANSWER
    says: ClassVar[str] = "Questions and their contexts in, the parts of the contexts that answer them out."
    prediction: ClassVar[type[BaseModel]] = Answered
    settings: ClassVar[type[Any]] = AnswerConfig
    models: ClassVar[tuple[str, ...]] = ("answerer",)
    called: ClassVar[str] = "an answerer"
    limit: ClassVar[str] = "max_question"
    metric = Metric("f1")
    baselines: ClassVar[tuple[type[Baseline], ...]] = (NoAnswer, RandomSpan, NearestSpan)
    config: AnswerConfig

    def __init__(self, config: AnswerConfig, given: Mapping[str, Any], answer: Span) -> None:
        """Takes the fitted fields that are read, by role, and that of the answer."""
        self.config, self.given, self.answer = config, given, answer
        self.input = ContextWindows(
            tuple(given.values()), config.max_length, max_question=config.max_question, overlap=config.overlap
        )
        self.widths = Widths(self.input.width)

    @classmethod
    def rows(cls, record: Row) -> Iterator[Row]:
        if isinstance(record.cells["answer"], list):
            answer_places(record)
        yield record

    @classmethod
    def fit(cls, config: AnswerConfig, rows: Iterable[Row], tokenizer: Tokenizer | None = None) -> Self:
        answerable: set[bool] = set()

        def texts() -> Iterator[str]:
            before = ""
            for row in rows:
                has_answer = bool(answer_places(row))
                if row.cells["question"].strip() and row.cells["context"].strip():  # else it is left out
                    answerable.add(has_answer)
                yield row.cells["question"]
                if row.cells["context"] != before:
                    before = row.cells["context"]
                    yield before

        learnt_from = sampled(texts())
        if True not in answerable:
            raise DataError("no question of the training data has an answer; give some that do")
        made = tokenizer or Tokenizer.train(config.tokenizer, learnt_from)
        return cls.of_vocabulary(config, made, may_be_none=False in answerable)

    @classmethod
    def of_vocabulary(cls, config: AnswerConfig, tokenizer: Tokenizer, *, may_be_none: bool) -> Self:
        """The task with a vocabulary that was learnt elsewhere."""
        given = {role: replace(one, learnt=tokenizer) for role, one in config.given.items()}
        return cls(config, given, Span(may_be_none))

    @property
    def tokenizer(self) -> Tokenizer:
        tokenizer: Tokenizer = self.given["question"].tokenizer
        return tokenizer

    @property
    def tokenizers(self) -> dict[str, Tokenizer]:
        return dict.fromkeys(self.inputs, self.tokenizer)

    def save(self, folder: Path) -> None:
        self.given["question"].save(folder)
        self.answer.save(folder)

    @classmethod
    def load(cls, config: AnswerConfig, folder: Path) -> Self:
        question, context = config.given.values()
        fitted = question.load(folder)
        given = {"question": fitted, "context": replace(context, learnt=fitted.learnt)}
        return cls(config, given, Span().load(folder))

    def values(self, row: Row) -> list[Any]:
        """The values of what is read of a row."""
        return [one.parse(row.cells[role], row.where) for role, one in self.given.items()]

    def encode(self, rows: Sequence[Row]) -> list[Example]:
        columns = zip(*map(self.values, rows), strict=True)
        parts = [one.encode(column) for one, column in zip(self.given.values(), columns, strict=True)]
        return [
            self._example(row, self.input.assemble(part))
            for row, part in zip(rows, zip(*parts, strict=True), strict=True)
        ]

    def _example(self, row: Row, coded: Coded) -> Example:
        """Make an example: windows, the `ends` of the answer in each, and whether it can be spelt."""
        if "answer" not in row.cells:
            return Example(row, coded.arrays, coded.notes)
        (answer,) = self.answer.encode([answer_places(row)])
        ends = np.zeros((len(coded.arrays["lengths"]), 2), np.int64)
        spelt = True
        for characters in answer.arrays["characters"]:  # of the first answer, if there is any
            within = self.input.ends(coded, characters)
            spelt = within is not None
            ends = ends if within is None else within
        return Example(row, {**coded.arrays, "ends": ends}, {**coded.notes, "spelt": spelt})

    def unusable(self, example: Example) -> str | None:
        if not self.is_answerable(example) or "ends" not in example.arrays:
            return "empty"
        return None if example.notes["spelt"] else "with an answer that the vocabulary cannot spell"

    def is_answerable(self, example: Example) -> bool:
        return not self.input.is_empty(example.arrays)

    def size(self, example: Example) -> tuple[int]:
        return (self.input.size(example.arrays),)

    def collate(self, examples: Sequence[Example]) -> AnswerBatch:
        inputs = tensors(self.input.collate([example.arrays for example in examples]))
        ends_R2 = torch.zeros(len(inputs["lengths"]), 2, dtype=torch.long)
        if all("ends" in example.arrays for example in examples):
            ends = np.concatenate([example.arrays["ends"] for example in examples])
            ends_R2 = torch.from_numpy(ends.astype(np.int64))
        return AnswerBatch(inputs, ends_R2, tuple(examples))

    def scores(self, model: nn.Module, inputs: Inputs) -> tuple[Tensor, Tensor]:
        """start_RT and end_RT."""
        if torch.is_grad_enabled():
            start_RT, end_RT = model(inputs)
        else:
            parts = {name: torch.split(tensor, WINDOWS_TOGETHER) for name, tensor in inputs.items()}
            some = [model(dict(zip(parts, part, strict=True))) for part in zip(*parts.values(), strict=True)]
            start_RT, end_RT = (torch.cat(side) for side in zip(*some, strict=True))
        return start_RT, end_RT

    def loss(self, model: nn.Module, batch: AnswerBatch) -> Loss:
        """The mean of two cross entropies: where the answer begins, and where it ends."""
        sides = zip(self.scores(model, batch.inputs), batch.ends_R2.unbind(1), strict=True)
        cost = torch.stack([F.cross_entropy(*pair, reduction="sum") for pair in sides]).mean()
        return Loss({"windows": Part(cost)}, shown={"windows": cost.detach()})

    def measure(self, model: nn.Module, batch: AnswerBatch, *, thorough: bool) -> AnswerTally:
        return self.tally(batch.examples, [answer.text for answer in in_order(self.predict(model, batch))])

    def tally(self, examples: Sequence[Example], answers: Sequence[Any]) -> AnswerTally:
        """The tally of texts; an empty one says that the context has no answer."""
        right = []
        for example in examples:
            context = example.row.cells["context"]
            right.append(tuple(context[start:end] for start, end in answer_places(example.row)))
        return AnswerTally([*answers], right)

    def predict(self, model: nn.Module, batch: AnswerBatch) -> Iterator[tuple[int, Answered]]:
        with torch.inference_mode():
            start_RT, end_RT = self.scores(model, batch.inputs)
            best = best_spans(start_RT, end_RT, batch.keep_RT, self.config.max_answer)
            scores_R2 = torch.stack([best.score_B, start_RT[:, 0] + end_RT[:, 0]], 1)
            over_R = start_RT.logsumexp(1) + end_RT.logsumexp(1)
            likely_R2 = (scores_R2 - over_R[:, None]).exp()
            spans_R2 = torch.stack([best.first_B, best.last_B], 1)
        columns = (spans_R2.tolist(), scores_R2.tolist(), likely_R2.tolist())
        windows = (WindowAnswer((at[0], at[1]), *one) for at, *one in zip(*columns, strict=True))
        for place, example in enumerate(batch.examples):
            yield place, self._best(example, [next(windows) for _ in example.arrays["lengths"]])

    def _best(self, example: Example, windows: Sequence[WindowAnswer]) -> Answered:
        """The best span of all windows, unless every window scores above it that there is none."""
        at = max(range(len(windows)), key=lambda n: windows[n].scores[0])
        none = min(range(len(windows)), key=lambda n: windows[n].scores[1])
        text, start, end, ends, probability = "", None, None, (0, 0), 0.0
        if not self.is_answerable(example):
            at = 0
        elif self.answer.may_be_none and windows[none].scores[1] > windows[at].scores[0]:
            at, probability = none, windows[none].probabilities[1]
        else:
            ends, probability = windows[at].ends, windows[at].probabilities[0]
            start, end = self.input.characters(_coded(example), at, *ends)
            text = example.row.cells["context"][start:end]
        return Answered(
            text=text,
            start=start,
            end=end,
            probability=probability,
            windows=len(windows),
            window=at,
            ends=ends,
            input_cut=bool(example.notes["cut"]),
        )

    def force(self, example: Example, prediction: Answered) -> AnswerBatch:
        """Force the answer in the window it was found in, of a long context."""
        return self.collate([self._window(example, prediction)])

    def _window(self, example: Example, prediction: Answered) -> Example:
        window = self.input.window(_coded(example), prediction.window)
        return Example(example.row, {**window.arrays, "ends": np.array([prediction.ends])}, window.notes)

    def replay(self, model: nn.Module, batch: AnswerBatch) -> Tensor:
        """Log-probabilities of where the answer begins and of where it ends."""
        sides = zip(self.scores(model, batch.inputs), batch.ends_R2.unbind(1), strict=True)
        return torch.cat([scores_RT.log_softmax(1).gather(1, at_R[:, None]) for scores_RT, at_R in sides], 1)

    def leave_out(self, batch: AnswerBatch, axis: Axis, units: Sequence[int]) -> AnswerBatch:
        """Make each of these units unknown instead: an answer that is gone could not be found."""
        near, n, device = self._near(batch.examples[0]), len(units), batch.ends_R2.device
        arrays = {name: tensor.cpu().numpy() for name, tensor in batch.inputs.items()}
        blanked = tensors(self.input.without(arrays, axis, [near[unit] for unit in units], "blank"))
        return AnswerBatch(moved(blanked, device), batch.ends_R2.expand(n, -1), batch.examples * n)

    def _near(self, window: Example) -> list[int]:
        """Places of the question and of the context around the answer, so many as can be measured."""
        second, length = (int(window.arrays[name][0]) for name in ("second", "lengths"))
        asked = list(range(len(self.tokenizer.special.begin), second - BETWEEN))
        places = range(second, length - 1)
        room = MOST_NEAR - len(asked)
        middle = int(window.arrays["ends"].sum()) // 2 - second
        begin = max(0, min(middle - room // 2, len(places) - room))
        return asked + list(places[begin : begin + room])

    def axes(self, example: Example, prediction: Answered) -> Axes:
        window = self._window(example, prediction)
        text = self.input.axis(self.values(window.row), _coded(window))
        ends = [text.labels[place] if prediction.text else "no answer" for place in prediction.ends]
        near = (*(text.labels[place] for place in self._near(window)), text.labels[-1])
        by_name = {
            "text": text,
            "near": ended("question and what is near the answer", near),
            "answer": Axis("answer", (f"begins: {ends[0]}", f"ends: {ends[1]}"), unit="end"),
        }
        return Axes(by_name, left_out="near", answer="answer", site=word_to_word)

    def pictures(self, model: nn.Module, batch: AnswerBatch) -> list[Picture]:
        likely_2T = torch.cat([scores_1T.softmax(1) for scores_1T in self.scores(model, batch.inputs)])
        title = "probability: beginning and end → each place"
        return [Picture("probabilities", title, likely_2T, "answer", "text")]


def _coded(example: Example) -> Coded:
    return Coded(example.arrays, example.notes)
