"""Our side of the parity check for translators, and the search that both sides are asked for."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.data.example import Example
from regard.decode import DecodeConfig, hypotheses
from regard.interop.parity import Answer
from regard.models import RNNSeq2Seq, Transformer
from regard.tasks.seq2seq import Seq2Seq, Seq2SeqBatch
from regard.tasks.writer import NEVER_WRITTEN
from regard.text.tokenizer import BOS, EOS

MAX_TOKENS = 200
"""Longest answer that is compared, in tokens, EOS included."""


class Search(NamedTuple):
    """The search every engine supports: a beam ranked by probability alone, with a maximum length."""

    beam: int
    max_tokens: int
    """Longest answer, EOS included."""

    @classmethod
    def of(cls, task: Seq2Seq[Any], sizes: Sequence[int], *, greedy: bool = False) -> "Search":
        """Take the run's beam, and the longest answer that the longest source allows."""
        decode = task.config.decode
        longest = DecodeConfig(max_ratio=decode.max_ratio).limit(max(sizes))
        return cls(1 if greedy else decode.beam, min(task.config.max_length, longest, MAX_TOKENS))


class TranslationEngine:
    """Our model as a parity engine.

    `masks_first` removes forbidden tokens before the softmax instead of after it, as CTranslate2 does.
    """

    name = "regard"

    def __init__(
        self,
        task: Seq2Seq[Any],
        model: Transformer | RNNSeq2Seq,
        search: Search,
        *,
        masks_first: bool = False,
    ) -> None:
        self.task, self.model, self.max_tokens = task, model, search.max_tokens
        self.decode = DecodeConfig(
            beam=search.beam, length_penalty=0, max_ratio=100, max_length=search.max_tokens - 1
        )
        self._stepper: Any = _MaskedStepper(model) if masks_first else model

    def answer(self, texts: Sequence[str]) -> list[Answer]:
        examples = self.task.encode(self.task.asked(texts))
        batch = self._batch(examples)
        with torch.inference_mode():
            state = self.model.start(batch.inputs)
            sources = list(map(self.task.source_ids, examples))
            steps = self.task.writer(self._stepper, state, sources, self.decode, batch.target_BT.device)
            found = hypotheses(steps)
        return [self._answer(best.ids) for best, *_ in found]

    def score(self, texts: Sequence[str], answers: Sequence[Answer]) -> list[list[float]]:
        examples = self.task.encode(self.task.asked(texts))
        forced = [
            replace(example, arrays={**example.arrays, "target": np.array((BOS, *answer.ids, EOS))})
            for example, answer in zip(examples, answers, strict=True)
        ]
        with torch.inference_mode():
            log_probs = self.task.replay(self.model, self._batch(forced)).tolist()
        return [row[: len(answer.ids) + 1] for row, answer in zip(log_probs, answers, strict=True)]

    def _answer(self, ids: tuple[int, ...]) -> Answer:
        return Answer(self.task.target.tokenizer.decode(ids), ids, truncated=len(ids) + 1 >= self.max_tokens)

    def _batch(self, examples: Sequence[Example]) -> Seq2SeqBatch:
        return self.task.collate(examples).to(next(self.model.parameters()).device)


class _MaskedStepper:
    """A stepper whose logits of forbidden tokens are −∞."""

    def __init__(self, model: Transformer | RNNSeq2Seq) -> None:
        self.model: Any = model

    def step(self, last_B: Tensor, state: Any) -> tuple[Tensor, Any]:
        logits_BV, state = self.model.step(last_B, state)
        logits_BV[:, list(NEVER_WRITTEN)] = -torch.inf
        return logits_BV, state

    def select(self, state: Any, rows_B: Tensor, sources_B: Tensor | None = None) -> Any:
        return self.model.select(state, rows_B, sources_B)
