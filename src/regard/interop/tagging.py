"""Both sides of a comparison of taggers: a sentence is cut into words here, all else each side does itself.

What may follow what is compared, too, where there is a CRF: each side tells how likely all tags of a sentence
are together. There it is done with numpy and what tags.json says, as whoever uses the folder would do it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from regard.files.row import rows_of
from regard.interop.parity import Answer, Floats, Ints, log_softmax
from regard.models import Tagger
from regard.tasks import Tag
from regard.tasks.sentences import Sentence, Sentences
from regard.text.tokenizer import Marks

UNTAGGED = np.zeros(0, np.int64)


class Chain(NamedTuple):
    """What beginning, steps and ending score; −∞ forbids."""

    begin_C: Floats
    step_CC: Floats
    end_C: Floats

    @classmethod
    def of(cls, told: dict[str, Any] | None) -> Self | None:
        """As tags.json has it, which says null for −∞."""
        if told is None:
            return None
        parts = (np.array(told[name], float) for name in ("begin", "step", "end"))
        return cls(*(np.where(np.isnan(part), -np.inf, part) for part in parts))

    def best(self, scores_NC: Floats) -> list[int]:
        """The likeliest tags (Viterbi)."""
        state_C, came = self.begin_C + scores_NC[0], []
        for scores_C in scores_NC[1:]:
            going_CC = state_C[:, None] + self.step_CC
            came.append(going_CC.argmax(0))
            state_C = going_CC.max(0) + scores_C
        path = [int((state_C + self.end_C).argmax())]
        for from_C in reversed(came):
            path.append(int(from_C[path[-1]]))
        return path[::-1]

    def log_prob(self, scores_NC: Floats, tags: Sequence[int]) -> float:
        """Of these tags together."""
        state_C, told = self.begin_C + scores_NC[0], self.begin_C[tags[0]] + scores_NC[0, tags[0]]
        for scores_C, (before, tag) in zip(scores_NC[1:], pairwise(tags), strict=True):
            state_C = np.logaddexp.reduce(state_C[:, None] + self.step_CC, axis=0) + scores_C
            told += self.step_CC[before, tag] + scores_C[tag]
        return float(told + self.end_C[tags[-1]] - np.logaddexp.reduce(state_C + self.end_C))


class Here:
    name = "regard"

    def __init__(self, task: Tag, model: Tagger) -> None:
        self.task, self.model = task, model

    def answer(self, texts: Sequence[str]) -> list[Answer]:
        batch, scores_BNC = self._scored(texts)
        best_BN = self.model.best(scores_BNC, batch.keep_BN)
        rows = zip(best_BN, batch.keep_BN, strict=True)
        return [_answer(self.task.names, best_N[keep_N].tolist()) for best_N, keep_N in rows]

    def score(self, texts: Sequence[str], answers: Sequence[Answer]) -> list[list[float]]:
        batch, scores_BNC = self._scored(texts)
        rows = zip(scores_BNC, batch.keep_BN, strict=True)
        told = [_told(scores_NC[keep_N].cpu().numpy()) for scores_NC, keep_N in rows]
        if self.model.crf is None:
            return told
        tags_BN = torch.zeros_like(batch.tags_BN)
        tags_BN[batch.keep_BN] = torch.tensor(
            [tag for answer in answers for tag in answer.ids], device=tags_BN.device
        )
        with torch.inference_mode():  # sums over long sentences are too large for single precision
            cost_B: Tensor = self.model.crf(scores_BNC.double(), batch.keep_BN, tags_BN)
        return [[*row, -cost] for row, cost in zip(told, cost_B.tolist(), strict=True)]

    def _scored(self, texts: Sequence[str]) -> tuple[Sentences, Tensor]:
        batch = self.task.collate(self.task.encode(rows_of(texts, *self.task.inputs)))
        batch = batch.to(next(self.model.parameters()).device)
        with torch.inference_mode():
            return batch, self.model.scores(batch.tokens_RT, batch.lengths_R, batch.at_BN).float()


@dataclass(frozen=True)
class There:
    name: str
    tags: Sequence[str]
    chain: Chain | None
    marks: Marks
    most: int
    """Pieces that are read at once; longer sentences are read in windows."""
    words: Callable[[str], list[str]]
    """How a text is cut: the only thing that is not in the folder."""
    pieces: Callable[[list[str]], list[list[int]]]
    """The ids of each word."""
    read: Callable[[Ints, Ints], Floats]
    """tokens_RT, lengths_R → scores_RTC."""

    def answer(self, texts: Sequence[str]) -> list[Answer]:
        return [_answer(self.tags, self._best(scores_NC)) for scores_NC in self._scored(texts)]

    def score(self, texts: Sequence[str], answers: Sequence[Answer]) -> list[list[float]]:
        told = []
        for scores_NC, answer in zip(self._scored(texts), answers, strict=True):
            together = [] if self.chain is None else [self.chain.log_prob(scores_NC, answer.ids)]
            told.append(_told(scores_NC) + together)
        return told

    def _best(self, scores_NC: Floats) -> list[int]:
        if self.chain is not None:
            return self.chain.best(scores_NC)
        found: list[int] = scores_NC.argmax(-1).tolist()
        return found

    def _scored(self, texts: Sequence[str]) -> list[Floats]:
        """Of each text, scores_NC of its words."""
        batch = Sentences.of([self._sentence(text) for text in texts], self.most, self.marks)
        scores_RTC = self.read(batch.tokens_RT.numpy(), batch.lengths_R.numpy())
        scores_BNC = scores_RTC.reshape(-1, scores_RTC.shape[-1])[batch.at_BN.numpy()]
        rows = zip(scores_BNC, batch.keep_BN.numpy(), strict=True)
        return [scores_NC[keep_N] for scores_NC, keep_N in rows]

    def _sentence(self, text: str) -> Sentence:
        (row,) = rows_of([text], "text")
        found = [ids[: self.most // 2] or [self.marks.unknown] for ids in self.pieces(self.words(text))]
        tokens = np.array([piece for word in found for piece in word])
        return Sentence(row, tokens, np.array([len(word) for word in found]), UNTAGGED)


def _answer(names: Sequence[str], tags: Sequence[int]) -> Answer:
    return Answer(" ".join(names[tag] for tag in tags), tuple(tags))


def _told(scores_NC: Floats) -> list[float]:
    """Scores count only beside one another, so they are told as log-probabilities of each word alone."""
    told: list[float] = log_softmax(scores_NC).flatten().tolist()
    return told
