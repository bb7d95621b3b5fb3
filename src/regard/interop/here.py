"""Our side of a comparison of translators."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.decode import DecodeConfig
from regard.files.row import rows_of
from regard.interop.parity import Answer
from regard.models import RNNSeq2Seq, Transformer
from regard.tasks.pair import Pair, Pairs
from regard.tasks.seq2seq import Seq2Seq
from regard.tasks.writer import NEVER_WRITTEN
from regard.text.tokenizer import BOS, EOS

MOST_PIECES = 200
"""Of answers that are compared, the end counted."""


class Search(NamedTuple):
    """What every engine can be asked for: beams, ranked by probability alone, and a longest answer."""

    beam: int
    most: int
    """Pieces, the end counted."""

    @classmethod
    def of(cls, task: Seq2Seq[Any], sizes: Sequence[int], *, greedy: bool = False) -> "Search":
        """The run's beam; as long as the longest source lets an answer be."""
        decode = task.config.decode
        longest = DecodeConfig(max_ratio=decode.max_ratio).limit(max(sizes))
        return cls(1 if greedy else decode.beam, min(task.config.max_length, longest, MOST_PIECES))


class Translator:
    """`closes_first`: what may not come has no share in the
    probabilities of the rest, as where an engine closes it before the softmax."""

    name = "regard"

    def __init__(
        self,
        task: Seq2Seq[Any],
        model: Transformer | RNNSeq2Seq,
        search: Search,
        *,
        closes_first: bool = False,
    ) -> None:
        self.task, self.model, self.most = task, model, search.most
        self.decode = DecodeConfig(
            beam=search.beam, length_penalty=0, max_ratio=100, max_length=search.most - 1
        )
        self._stepper: Any = _ClosesFirst(model) if closes_first else model

    def answer(self, texts: Sequence[str]) -> list[Answer]:
        examples = self.task.encode(rows_of(texts, *self.task.inputs))
        batch = self._placed(examples)
        with torch.inference_mode():
            state = self.model.start(batch.source_BK, batch.source_lengths_B)
            sources = [example.source.tolist() for example in examples]
            found = self.task.writer(self._stepper, state, sources, self.decode, batch.source_BK.device)
        return [self._answer(best.ids) for best, *_ in found]

    def score(self, texts: Sequence[str], answers: Sequence[Answer]) -> list[list[float]]:
        asked = self.task.encode(rows_of(texts, *self.task.inputs))
        forced = [
            Pair(pair.row, pair.source, np.array((BOS, *answer.ids, EOS)))
            for pair, answer in zip(asked, answers, strict=True)
        ]
        with torch.inference_mode():
            log_probs = self.task.replay(self.model, self._placed(forced)).tolist()
        return [row[: len(answer.ids) + 1] for row, answer in zip(log_probs, answers, strict=True)]

    def _answer(self, ids: tuple[int, ...]) -> Answer:
        return Answer(self.task.target.decode(ids), ids, cut=len(ids) + 1 >= self.most)

    def _placed(self, examples: Sequence[Pair]) -> Pairs:
        return self.task.collate(examples).to(next(self.model.parameters()).device)


class _ClosesFirst:
    def __init__(self, model: Transformer | RNNSeq2Seq) -> None:
        self.model: Any = model

    def step(self, last_B: Tensor, state: Any) -> tuple[Tensor, Any]:
        logits_BV, state = self.model.step(last_B, state)
        logits_BV[:, list(NEVER_WRITTEN)] = -torch.inf
        return logits_BV, state

    def select(self, state: Any, rows_B: Tensor, sources_B: Tensor | None = None) -> Any:
        return self.model.select(state, rows_B, sources_B)
