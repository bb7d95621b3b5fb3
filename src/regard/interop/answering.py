"""Both sides of a comparison of answerers: each makes windows of its own tokens and finds the best span.

Every score counts: the log-probabilities of all places to begin and to end at, in every window.
"""

from collections.abc import Sequence
from itertools import chain, islice
from typing import Any

import tokenizers
import torch
from torch import nn

from regard.files.row import Asked, rows_of
from regard.interop import parity
from regard.tasks import Answer, AnswerConfig
from regard.tasks.questions import Questions
from regard.text.tokenizer import Tokenizer

WINDOWS = ("max_length", "overlap", "max_question", "max_answer")
"""Settings of the task by which windows are made, and what is said of them is read."""


def settings(task: Answer) -> dict[str, Any]:
    """All that must be known beside a tokenizer and a graph."""
    marks, told = task.tokenizer.marks, {name: getattr(task.config, name) for name in WINDOWS}
    return {"before": list(marks.begin), "after": marks.end, **told, "may_be_none": task.may_be_none}


def reading(told: dict[str, Any], inner: tokenizers.Tokenizer) -> Answer:
    """The task again, of its settings and a tokenizer of which nothing but pieces is wanted."""
    tokenizer = Tokenizer(inner)
    tokenizer.marks = tokenizer.marks._replace(begin=tuple(told["before"]), end=told["after"])
    config = AnswerConfig(**{name: told[name] for name in WINDOWS})
    return Answer(config, tokenizer, may_be_none=told["may_be_none"])


class Side:
    """`model` takes and gives what an answerer does."""

    def __init__(self, name: str, task: Answer, model: nn.Module) -> None:
        self.name, self.task, self.model = name, task, model

    def answer(self, asked: Sequence[Asked]) -> list[parity.Answer]:
        found = self.task.predict(self.model, self._batch(asked))
        return [parity.Answer(one.text, (one.window, *one.ends)) for one in found]

    def score(self, asked: Sequence[Asked], answers: Sequence[parity.Answer]) -> list[list[float]]:
        batch = self._batch(asked)
        with torch.inference_mode():
            told_2RT = torch.stack(self.task.scores(self.model, batch)).float().log_softmax(-1)
        lengths = batch.lengths_R.tolist()
        windows = (told_2RT[:, at, :length].flatten().tolist() for at, length in enumerate(lengths))
        return [[*chain.from_iterable(islice(windows, own.n_windows))] for own in batch.examples]

    def _batch(self, asked: Sequence[Asked]) -> Questions:
        device = next((parameter.device for parameter in self.model.parameters()), torch.device("cpu"))
        return self.task.collate(self.task.encode(rows_of(asked, *self.task.inputs))).to(device)
