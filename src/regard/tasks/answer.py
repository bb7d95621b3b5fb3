"""answer: the part of a context that answers a question, or that none does (SQuAD v1.1 and v2).

A context that is too long is read in overlapping windows. In training a window without the answer points at
its first place, as transformers has it; the best span over all windows is the answer. Where training data
have questions without an answer, that place says so, if every window scores it above the best span of all.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import BaseModel, Field, model_validator
from torch import Tensor, nn
from torch.nn import functional as F

from regard.data.cache import Arrays
from regard.data.sample import sampled
from regard.data.splits import Every, HoldOut
from regard.decode import untold
from regard.errors import CheckpointError, DataError
from regard.fields.axis import Axis, ended
from regard.fields.span import Span, answer_places
from regard.fields.text import Text
from regard.files.row import Row
from regard.metrics.metric import Metric
from regard.models.answerer import best_spans
from regard.models.widths import Widths
from regard.tasks.answer_data import ANSWER
from regard.tasks.answer_data import Answered as AnsweredAnswer
from regard.tasks.answered import Answered, AnswerTally
from regard.tasks.questions import (
    BETWEEN,
    NOWHERE,
    Place,
    Question,
    Questions,
    context_windows,
    piece_places,
)
from regard.tasks.task import Axes, Fields, Loss, Part, Picture, Task, TaskSettings, Tell, word_to_word
from regard.tasks.task_data import TaskData
from regard.text.tokenizer import Encoded, Tokenizer, TokenizerConfig

WINDOWS_TOGETHER = 64
"""Read at once when nothing is learnt: a book has thousands."""
MOST_NEAR = 127
"""Pieces that are made unknown in turn to explain an answer."""


class AnswerConfig(TaskSettings):
    kind: Literal["answer"] = "answer"
    roles: ClassVar[tuple[str, ...]] = ("question", "context", "answer")
    inputs: ClassVar[tuple[str, ...]] = ("question", "context")
    tokenizer: TokenizerConfig = TokenizerConfig()
    max_length: int = Field(
        384,
        ge=8,
        description="pieces read at once: a question, the mark after it, and as much of its context as fits",
    )
    overlap: int = Field(
        128, ge=0, description="pieces that a window of a longer context shares with the one before"
    )
    max_question: int = Field(64, ge=1, description="pieces of a question; longer ones are cut")
    max_answer: int = Field(30, ge=1, description="pieces of an answer at most")

    @model_validator(mode="after")
    def _windows_advance(self) -> Self:
        room = self.max_length - BETWEEN - self.max_question
        if room <= self.overlap:
            raise ValueError(
                f"max_length ({self.max_length}) leaves {room} pieces of a context beside a long question, "
                f"which must be more than overlap ({self.overlap})"
            )
        return self

    @property
    def unfitted(self) -> Fields:
        return {"context": Text(verbatim=True), "answer": Span()}

    @property
    def hold_out(self) -> HoldOut:
        return Every("contexts", together="context")


class Answer(Task):
    kind: ClassVar[str] = "answer"
    data: ClassVar[TaskData] = ANSWER
    says: ClassVar[str] = "Questions and their contexts in, the parts of the contexts that answer them out."
    prediction: ClassVar[type[BaseModel]] = AnsweredAnswer
    settings: ClassVar[type[Any]] = AnswerConfig
    models: ClassVar[tuple[str, ...]] = ("answerer",)
    called: ClassVar[str] = "an answerer"
    metric = Metric("f1")
    unusable: ClassVar[str] = "empty, or with an answer that the vocabulary cannot spell"

    def __init__(self, config: AnswerConfig, tokenizer: Tokenizer, *, may_be_none: bool) -> None:
        self.config, self.tokenizer, self.may_be_none = config, tokenizer, may_be_none
        self.widths = Widths({"vocab": len(tokenizer)})

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
                found = bool(answer_places(row))
                if row.cells["question"].strip() and row.cells["context"].strip():  # else it is left out
                    answerable.add(found)
                yield row.cells["question"]
                if row.cells["context"] != before:
                    before = row.cells["context"]
                    yield before

        learnt_from = sampled(texts())
        if True not in answerable:
            raise DataError("no question of the training data has an answer; give some that do")
        made = tokenizer or Tokenizer.train(config.tokenizer, learnt_from)
        return cls(config, made, may_be_none=False in answerable)

    @property
    def tokenizers(self) -> dict[str, Tokenizer]:
        return dict.fromkeys(self.inputs, self.tokenizer)

    def save(self, folder: Path) -> None:
        self.tokenizer.save(folder / "tokenizer.json")
        (folder / "answer.json").write_text(json.dumps({"may_be_none": self.may_be_none}) + "\n", "utf-8")

    @classmethod
    def load(cls, config: AnswerConfig, folder: Path) -> Self:
        path = folder / "answer.json"
        try:
            may_be_none = json.loads(path.read_text("utf-8"))["may_be_none"]
        except (OSError, ValueError, RecursionError, KeyError, TypeError) as error:
            raise CheckpointError(f"{path}: cannot be read ({error}); copy the whole folder") from error
        if not isinstance(may_be_none, bool):
            raise CheckpointError(f"{path}: may_be_none should be true or false")
        return cls(config, Tokenizer.load(folder / "tokenizer.json"), may_be_none=may_be_none)

    def encode(self, rows: Sequence[Row]) -> list[Question]:
        contexts = {text: self.tokenizer.encode(text) for text in {row.cells["context"] for row in rows}}
        asked = self.tokenizer.ids([row.cells["question"] for row in rows])
        return [
            self._question(row, ids, contexts[row.cells["context"]])
            for row, ids in zip(rows, asked, strict=True)
        ]

    def _question(self, row: Row, ids: list[int], context: Encoded) -> Question:
        most = self.config.max_question
        asked, places = ids[:most], answer_places(row)
        room = self.config.max_length - BETWEEN - len(asked)
        parts = context_windows(len(context.ids), room, self.config.overlap)
        windows = [self.tokenizer.framed(asked, context.ids[begin:end]) for begin, end in parts]
        first = len(self.tokenizer.marks.begin) + len(asked) + BETWEEN
        pieces = piece_places(context.offsets, places[0]) if places else None
        ends = [_within(part, pieces, first) for part in parts]
        return Question(
            row,
            np.concatenate(windows).astype(np.int64),
            np.array([len(window) for window in windows]),
            first,
            NOWHERE if places is None else np.array(ends).flatten(),
            np.array([begin for begin, _ in parts]),
            context.offsets,
            cut=len(ids) > most,
            unspelt=bool(places) and pieces is None,
        )

    def usable(self, example: Question) -> bool:
        return self.usable_input(example) and len(example.ends) > 0 and not example.unspelt

    def usable_input(self, example: Question) -> bool:
        return example.first > len(self.tokenizer.marks.begin) + BETWEEN and example.has_context

    def size(self, example: Question) -> tuple[int]:
        return (int(example.lengths.sum()),)

    def keep(self, example: Question) -> Arrays:
        first = np.array([example.first])
        return {"tokens": example.tokens, "lengths": example.lengths, "ends": example.ends, "first": first}

    def revive(self, row: Row, kept: Arrays) -> Question:
        tokens, lengths, ends = (kept[name].astype(np.int64) for name in ("tokens", "lengths", "ends"))
        return Question(row, tokens, lengths, int(kept["first"][0]), ends)

    def collate(self, examples: Sequence[Question]) -> Questions:
        return Questions.of(examples)

    def scores(self, model: nn.Module, batch: Questions) -> tuple[Tensor, Tensor]:
        given = batch.tokens_RT, batch.lengths_R, batch.segments_RT
        if torch.is_grad_enabled():
            start_RT, end_RT = model(*given)
        else:
            parts = zip(*(torch.split(part, WINDOWS_TOGETHER) for part in given), strict=True)
            found = [model(*part) for part in parts]
            start_RT, end_RT = (torch.cat(side) for side in zip(*found, strict=True))
        return start_RT, end_RT

    def loss(self, model: nn.Module, batch: Questions) -> Loss:
        """The mean of two cross entropies: where the answer begins, and where it ends."""
        scores = zip(self.scores(model, batch), batch.ends_R2.unbind(1), strict=True)
        cost = torch.stack([F.cross_entropy(*pair, reduction="sum") for pair in scores]).mean()
        return Loss({"windows": Part(cost)}, shown={"windows": cost.detach()})

    def measure(self, model: nn.Module, batch: Questions, *, thorough: bool) -> AnswerTally:
        return self.tally(batch.examples, [answer.text for answer in self.predict(model, batch)])

    def tally(self, examples: Sequence[Question], answers: Sequence[Any]) -> AnswerTally:
        """The tally of texts; an empty one says that the context has no answer."""
        right = []
        for example in examples:
            context = example.row.cells["context"]
            right.append(tuple(context[slice(*place)] for place in answer_places(example.row) or ()))
        return AnswerTally([*answers], right)

    def predict(self, model: nn.Module, batch: Questions, tell: Tell = untold) -> list[Answered]:
        with torch.inference_mode():
            start_RT, end_RT = self.scores(model, batch)
            best = best_spans(start_RT, end_RT, batch.keep_RT, self.config.max_answer)
            spans_R2 = torch.stack([best.first_B, best.last_B], 1)
            told_R2 = torch.stack([best.score_B, start_RT[:, 0] + end_RT[:, 0]], 1)
            over_R = start_RT.logsumexp(1) + end_RT.logsumexp(1)
            likely_R2 = (told_R2 - over_R[:, None]).exp()
        answers: list[Answered] = []
        rows = iter(zip(told_R2.tolist(), likely_R2.tolist(), spans_R2.tolist(), strict=True))
        for place, example in enumerate(batch.examples):
            answers.append(self._best(example, [next(rows) for _ in range(example.n_windows)]))
            tell(place, answers[-1])
        return answers

    def _best(self, example: Question, windows: Sequence[Any]) -> Answered:
        """Of what each window says: scores and probabilities of its best span and of none, and the span."""
        scores = [score for (score, _), _, _ in windows]
        none = [score for (_, score), _, _ in windows]
        at = scores.index(max(scores))
        if not self.usable_input(example):
            return Answered("", None, None, 0.0, len(windows), 0, (0, 0), example.cut)
        if self.may_be_none and min(none) > scores[at]:
            at = none.index(min(none))
            return Answered("", None, None, windows[at][1][1], len(windows), at, (0, 0), example.cut)
        _, (likely, _), (first, last) = windows[at]
        start, end = example.characters(at, first, last)
        text = example.row.cells["context"][start:end]
        return Answered(text, start, end, likely, len(windows), at, (first, last), example.cut)

    def force(self, example: Question, prediction: Answered) -> Questions:
        """Of a long context the window in which the answer was found."""
        return self.collate([example.window(prediction.window, prediction.ends)])

    def replay(self, model: nn.Module, batch: Questions) -> Tensor:
        """Log-probabilities of where the answer begins and of where it ends."""
        told = [
            scores_RT.log_softmax(1).gather(1, at_R[:, None])
            for scores_RT, at_R in zip(self.scores(model, batch), batch.ends_R2.unbind(1), strict=True)
        ]
        return torch.cat(told, 1)

    def leave_out(self, batch: Questions, axis: Axis, pieces: Sequence[int]) -> Questions:
        near = self._near(batch.examples[0])
        return batch.unknowing([near[piece] for piece in pieces], self.tokenizer.marks.unknown)

    def _near(self, window: Question) -> list[int]:
        """Places of the question and of the context around the answer, so many as can be measured."""
        asked = list(range(len(self.tokenizer.marks.begin), window.first - BETWEEN))
        places = range(window.first, int(window.lengths[0]) - 1)
        room = MOST_NEAR - len(asked)
        middle = int(window.ends.sum()) // 2 - window.first
        begin = max(0, min(middle - room // 2, len(places) - room))
        return asked + list(places[begin : begin + room])

    def axes(self, example: Question, prediction: Answered) -> Axes:
        shown = example.window(prediction.window, prediction.ends)
        labels = self._labels(shown)
        ends = [labels[place] if prediction.text else "no answer" for place in prediction.ends]
        near = (*(labels[place] for place in self._near(shown)), labels[-1])
        by_name = {
            "text": ended("question and context", labels),
            "near": ended("question and what is near the answer", near),
            "answer": Axis("answer", (f"begins: {ends[0]}", f"ends: {ends[1]}"), unit="end"),
        }
        return Axes(by_name, left_out="near", answer="answer", site=word_to_word)

    def _labels(self, window: Question) -> tuple[str, ...]:
        """Of every place of a window: a mark, or what stands there in the text."""
        fields, marks = window.row.cells, self.tokenizer.pieces(self.tokenizer.framed((), ()))
        begin = int(window.begins[0])
        own = window.offsets[begin : begin + int(window.lengths[0]) - window.first - 1]
        context = (fields["context"][start:end] for start, end in own)
        asked = self.tokenizer.words(fields["question"], self.config.max_question)
        return (*marks[:-2], *asked, marks[-2], *context, marks[-1])

    def pictures(self, model: nn.Module, batch: Questions) -> list[Picture]:
        likely_2T = torch.cat([scores_1T.softmax(1) for scores_1T in self.scores(model, batch)])
        title = "probability: beginning and end → each place"
        return [Picture("probabilities", title, likely_2T, "answer", "text")]


def _within(part: Place, pieces: Place | None, first: int) -> Place:
    """The places of an answer in the window of this part of its context; 0 0 unless all of it is there."""
    begin, end = part
    if pieces is None or pieces[0] < begin or pieces[1] >= end:
        return 0, 0
    return pieces[0] - begin + first, pieces[1] - begin + first
