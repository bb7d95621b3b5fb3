"""Parity engines for extractive question answering: each side makes its own windows and finds the best span.

All scores are compared: the log-probabilities of every start and end position in every window.
"""

from collections.abc import Sequence
from itertools import chain, islice
from typing import Any

import tokenizers
import torch
from torch import nn

from regard.decode import in_order
from regard.files.row import Asked
from regard.interop import parity
from regard.tasks import Answer, AnswerConfig
from regard.tasks.answer import AnswerBatch
from regard.text.tokenizer import Tokenizer

WINDOWS = ("max_length", "overlap", "max_question", "max_answer")
"""Task settings that determine the windows and the spans read from them."""


def window_settings(task: Answer) -> dict[str, Any]:
    """Everything needed to use the graph apart from the tokenizer."""
    special, may_be_none = task.tokenizer.special, task.answer.may_be_none
    windows = {name: getattr(task.config, name) for name in WINDOWS}
    return {"before": list(special.begin), "after": special.end, **windows, "may_be_none": may_be_none}


def rebuild_task(settings: dict[str, Any], inner: tokenizers.Tokenizer) -> Answer:
    """Rebuild the task from its window settings and a tokenizer that only has to split text into tokens."""
    tokenizer = Tokenizer(inner)
    tokenizer.special = tokenizer.special._replace(begin=tuple(settings["before"]), end=settings["after"])
    config = AnswerConfig(**{name: settings[name] for name in WINDOWS})
    return Answer.of_vocabulary(config, tokenizer, may_be_none=settings["may_be_none"])


class AnswerEngine:
    """Either side as a parity engine; `model` has the signature of an Answerer."""

    def __init__(self, name: str, task: Answer, model: nn.Module) -> None:
        self.name, self.task, self.model = name, task, model

    def answer(self, inputs: Sequence[Asked]) -> list[parity.Answer]:
        predictions = in_order(self.task.predict(self.model, self._batch(inputs)))
        return [parity.Answer(answer.text, (answer.window, *answer.ends)) for answer in predictions]

    def score(self, inputs: Sequence[Asked], answers: Sequence[parity.Answer]) -> list[list[float]]:
        batch = self._batch(inputs)
        with torch.inference_mode():
            log_probs_2RT = torch.stack(self.task.scores(self.model, batch.inputs)).float().log_softmax(-1)
        lengths = batch.inputs["lengths"].tolist()
        windows = (log_probs_2RT[:, row, :length].flatten().tolist() for row, length in enumerate(lengths))
        return [
            [*chain.from_iterable(islice(windows, len(example.arrays["lengths"])))]
            for example in batch.examples
        ]

    def _batch(self, inputs: Sequence[Asked]) -> AnswerBatch:
        device = next((parameter.device for parameter in self.model.parameters()), torch.device("cpu"))
        return self.task.collate(self.task.encode(self.task.asked(inputs))).to(device)
