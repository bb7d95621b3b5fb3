"""Parity engines for taggers: we split a sentence into words, everything else each side does itself.

With a CRF, the log-probability of a sentence's whole tag sequence is compared too. The other side computes it
with numpy from the scores in tags.json, as a user of the folder would.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
import tokenizers
import torch
from torch import Tensor

from regard.fields.field import Arrays
from regard.fields.padding import NOWHERE
from regard.fields.tags import Words, coded_words
from regard.fields.windows import WordWindows
from regard.interop.parity import Answer, Floats, Ints, log_softmax
from regard.models import Tagger
from regard.tasks import Tag
from regard.tasks.tag import TagBatch
from regard.text.tokenizer import SpecialTokens, Tokenizer


class CRFScores(NamedTuple):
    """Scores of the first tag, of transitions and of the last tag; −∞ forbids."""

    begin_C: Floats
    step_CC: Floats
    end_C: Floats

    @classmethod
    def of(cls, content: dict[str, Any] | None) -> Self | None:
        """Read the scores from tags.json, where null is −∞."""
        if content is None:
            return None
        parts = (np.array(content[name], float) for name in ("begin", "step", "end"))
        return cls(*(np.where(np.isnan(part), -np.inf, part) for part in parts))

    def best(self, scores_NC: Floats) -> list[int]:
        """Most probable tag sequence (Viterbi)."""
        state_C, pointers = self.begin_C + scores_NC[0], []
        for scores_C in scores_NC[1:]:
            extended_CC = state_C[:, None] + self.step_CC
            pointers.append(extended_CC.argmax(0))
            state_C = extended_CC.max(0) + scores_C
        path = [int((state_C + self.end_C).argmax())]
        for pointers_C in reversed(pointers):
            path.append(int(pointers_C[path[-1]]))
        return path[::-1]

    def log_prob(self, scores_NC: Floats, tags: Sequence[int]) -> float:
        """Log-probability of a tag sequence."""
        state_C, score = self.begin_C + scores_NC[0], self.begin_C[tags[0]] + scores_NC[0, tags[0]]
        for scores_C, (previous, tag) in zip(scores_NC[1:], pairwise(tags), strict=True):
            state_C = np.logaddexp.reduce(state_C[:, None] + self.step_CC, axis=0) + scores_C
            score += self.step_CC[previous, tag] + scores_C[tag]
        return float(score + self.end_C[tags[-1]] - np.logaddexp.reduce(state_C + self.end_C))


class TagEngine:
    """Our tagger as a parity engine."""

    name = "regard"

    def __init__(self, task: Tag, model: Tagger) -> None:
        self.task, self.model = task, model

    def answer(self, texts: Sequence[str]) -> list[Answer]:
        batch, scores_BNC = self._scores(texts)
        best_BN = self.model.best(scores_BNC, batch.keep_BN)
        rows = zip(best_BN, batch.keep_BN, strict=True)
        return [_answer(self.task.labels, best_N[keep_N].tolist()) for best_N, keep_N in rows]

    def score(self, texts: Sequence[str], answers: Sequence[Answer]) -> list[list[float]]:
        batch, scores_BNC = self._scores(texts)
        rows = zip(scores_BNC, batch.keep_BN, strict=True)
        log_probs = [_log_probs(scores_NC[keep_N].cpu().numpy()) for scores_NC, keep_N in rows]
        if self.model.crf is None:
            return log_probs
        tags_BN = torch.zeros_like(batch.tags_BN)
        tags_BN[batch.keep_BN] = torch.tensor(
            [tag for answer in answers for tag in answer.ids], device=tags_BN.device
        )
        with torch.inference_mode():  # sums over long sentences are too large for single precision
            cost_B: Tensor = self.model.crf(scores_BNC.double(), batch.keep_BN, tags_BN)
        return [[*row, -cost] for row, cost in zip(log_probs, cost_B.tolist(), strict=True)]

    def _scores(self, texts: Sequence[str]) -> tuple[TagBatch, Tensor]:
        batch = self.task.collate(self.task.encode(self.task.asked(texts)))
        batch = batch.to(next(self.model.parameters()).device)
        with torch.inference_mode():
            return batch, self.model.scores(batch.inputs).float()


@dataclass(frozen=True)
class ExportedTagEngine:
    """An exported tagger as a parity engine."""

    name: str
    tags: Sequence[str]
    crf: CRFScores | None
    windows: WordWindows
    """Windows of long sentences, framed with the special tokens of the folder."""
    words: Words
    """Splits a text into words; the only part that does not come from the folder."""
    word_ids: Callable[[list[str]], list[list[int]]]
    """Token ids of each word."""
    read: Callable[[Ints, Ints], Floats]
    """tokens_RT, lengths_R → scores_RTC."""

    def answer(self, texts: Sequence[str]) -> list[Answer]:
        return [_answer(self.tags, self._best(scores_NC)) for scores_NC in self._scores(texts)]

    def score(self, texts: Sequence[str], answers: Sequence[Answer]) -> list[list[float]]:
        log_probs = []
        for scores_NC, answer in zip(self._scores(texts), answers, strict=True):
            of_sequence = [] if self.crf is None else [self.crf.log_prob(scores_NC, answer.ids)]
            log_probs.append(_log_probs(scores_NC) + of_sequence)
        return log_probs

    def _best(self, scores_NC: Floats) -> list[int]:
        if self.crf is not None:
            return self.crf.best(scores_NC)
        best: list[int] = scores_NC.argmax(-1).tolist()
        return best

    def _scores(self, texts: Sequence[str]) -> list[Floats]:
        """scores_NC of the words of each text."""
        arrays = self.windows.collate([self._sentence(text) for text in texts])
        scores_RTC = self.read(arrays["ids"], arrays["lengths"])
        places = (row[row != NOWHERE] for row in arrays["places"])
        return [scores_RTC.reshape(-1, scores_RTC.shape[-1])[places_N] for places_N in places]

    def _sentence(self, text: str) -> Arrays:
        tokenizer = self.windows.fields[0].tokenizer
        words = self.words.parse(text, "input").words
        tokens = coded_words([ids or [tokenizer.special.unknown] for ids in self.word_ids(words)])
        return self.windows.assemble([tokens]).arrays


def exported_windows(inner: tokenizers.Tokenizer, special: SpecialTokens, max_tokens: int) -> WordWindows:
    """Rebuild the windows of an exported folder; its tokenizer needs no special tokens of its own."""
    tokenizer = Tokenizer(inner)
    tokenizer.special = special
    return Words(learnt=tokenizer).alone(max_tokens)


def _answer(names: Sequence[str], tags: Sequence[int]) -> Answer:
    return Answer(" ".join(names[tag] for tag in tags), tuple(tags))


def _log_probs(scores_NC: Floats) -> list[float]:
    """Log-probabilities of each word's tags; the scores themselves are only defined up to a constant."""
    log_probs: list[float] = log_softmax(scores_NC).flatten().tolist()
    return log_probs
