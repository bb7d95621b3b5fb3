"""A hidden Markov model (Rabiner 1989): tags follow tags, and each tag emits a word.

It has no gradients. From tagged sentences it is learnt by counting, from words alone by Baum-Welch, which
counts expectations under the model in place of observations, again and again. All sums over paths are those
of the CRF (layers/chain.py), of which it is the generative twin; so it is a tagger whose scores are counted
log-probabilities.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from regard.layers.chain import best_path, bounded, expected
from regard.layers.crf import CRF
from regard.layers.inputs import Encoded, Inputs
from regard.models.settings import ModelSettings
from regard.models.tagger import Tagger, allowed
from regard.models.widths import Widths


class HMMConfig(ModelSettings):
    kind: Literal["hmm"] = "hmm"
    smoothing: float = Field(
        0.01,
        ge=1e-12,
        le=1e6,
        description="added to every count, so that unseen words and steps stay possible",
    )
    d_model: ClassVar[int] = 1

    def build(self, widths: Widths) -> Tagger:
        n_tags = len(widths.target["tags"])
        chain = CRF(n_tags, allowed(widths.target["tags"]))
        nn.init.zeros_(chain.end_C)  # any tag may be the last, as far as its scheme allows it
        return Tagger(
            Emissions(widths.input["vocab"], n_tags), nn.Identity(), chain, dropout=0
        ).requires_grad_(False)

    def initialise(self, model: nn.Module, examples: Sequence[Any], task: Any) -> None:
        """Counts; there is nothing else to learn."""
        assert isinstance(model, Tagger)
        self.count(model, (words_and_tags(example.arrays) for example in examples))

    def count(self, model: Tagger, sentences: Iterable[tuple[Sequence[int], Sequence[int]]]) -> None:
        """Learns from words and their tags, in one pass."""
        emissions, chain = model.encoder, model.crf
        assert isinstance(emissions, Emissions)
        assert chain is not None
        n_words, n_tags = emissions.says_VC.shape
        counted = HMM.counted(sentences, n_tags, n_words, smoothing=self.smoothing)
        emissions.says_VC.copy_(counted.says_CV.t())
        chain.begin_C.copy_(counted.begin_C)
        chain.step_CC.copy_(counted.step_CC)
        legal_CC = chain.weights()[1]
        chain.step_CC.sub_(legal_CC.logsumexp(-1, keepdim=True).nan_to_num(neginf=0.0))

    def __str__(self) -> str:
        return "hidden Markov model"


def words_and_tags(arrays: Mapping[str, Any]) -> tuple[Any, Any]:
    """The first token of each word, and its tag."""
    ids, n_tokens, tags = (np.asarray(arrays[name], np.int64) for name in ("ids", "word_lengths", "tags"))
    return ids[np.cumsum(n_tokens) - n_tokens], tags


class Emissions(nn.Module):
    """tokens_RT → the log-probability that each tag emits each of them."""

    def __init__(self, n_words: int, n_tags: int) -> None:
        super().__init__()
        self.says_VC = nn.Parameter(torch.zeros(n_words, n_tags))

    def forward(self, inputs: Inputs) -> Encoded:
        return Encoded(self.says_VC[inputs["ids"]], inputs["lengths"])


@dataclass(frozen=True)
class HMM:
    """Log-probabilities of the first tag, of each tag after each other, of each word by each tag."""

    begin_C: Tensor
    step_CC: Tensor
    says_CV: Tensor

    @classmethod
    def from_counts(cls, begin_C: Tensor, step_CC: Tensor, says_CV: Tensor, smoothing: float) -> Self:
        """`smoothing` is added to every count (Lidstone), so that unseen events stay possible."""
        return cls(*(_normalised(counts + smoothing) for counts in (begin_C, step_CC, says_CV)))

    @classmethod
    def counted(
        cls,
        sentences: Iterable[tuple[Sequence[int], Sequence[int]]],
        n_tags: int,
        n_words: int,
        *,
        smoothing: float = 0.1,
    ) -> Self:
        """A model counted from pairs of words and their tags, in one pass."""
        begin_C, step_CC, says_CV = (
            torch.zeros(shape, dtype=torch.double)
            for shape in ((n_tags,), (n_tags, n_tags), (n_tags, n_words))
        )
        for words, tags in sentences:
            assert len(words) == len(tags), f"{len(words)} words have {len(tags)} tags"
            words_T, tags_T = torch.tensor(words), torch.tensor(tags)
            begin_C[tags_T[:1]] += 1
            step_CC.index_put_((tags_T[:-1], tags_T[1:]), torch.ones(1, dtype=torch.double), accumulate=True)
            says_CV.index_put_((tags_T, words_T), torch.ones(1, dtype=torch.double), accumulate=True)
        return cls.from_counts(begin_C, step_CC, says_CV, smoothing)

    @classmethod
    def random(cls, n_tags: int, n_words: int, generator: torch.Generator) -> Self:
        """A random start for Baum-Welch: equal probabilities would stay equal."""
        shapes = ((n_tags,), (n_tags, n_tags), (n_tags, n_words))
        drawn = (1 + torch.rand(shape, generator=generator, dtype=torch.double) for shape in shapes)
        return cls(*map(_normalised, drawn))

    def baum_welch_step(self, words_BT: Tensor, lengths_B: Tensor, *, smoothing: float = 0.0) -> Self:
        """One round of Baum-Welch: without smoothing, no text becomes less likely as a whole."""
        emit_BTC = self._emit(words_BT, lengths_B)
        counts = expected(emit_BTC, lengths_B, self.step_CC)
        n_tags, n_words = self.says_CV.shape
        says_VC = torch.zeros(n_words, n_tags, dtype=counts.tags_BTC.dtype)
        says_VC.index_add_(0, words_BT.flatten(), counts.tags_BTC.flatten(0, 1))
        return self.from_counts(counts.tags_BTC[:, 0].sum(0), counts.steps_BCC.sum(0), says_VC.t(), smoothing)

    def log_likelihood(self, words_BT: Tensor, lengths_B: Tensor) -> Tensor:
        """log p(words) of each row, over all tags."""
        return expected(self._emit(words_BT, lengths_B), lengths_B, self.step_CC).log_z_B

    def marginals(self, words_BT: Tensor, lengths_B: Tensor) -> Tensor:
        """tags_BTC: the probability of each tag at each word; zeros after the end."""
        return expected(self._emit(words_BT, lengths_B), lengths_B, self.step_CC).tags_BTC

    def best(self, words_BT: Tensor, lengths_B: Tensor) -> tuple[Tensor, Tensor]:
        """The likeliest tags_BT, and log p(words, tags) of each row."""
        return best_path(self._emit(words_BT, lengths_B), lengths_B, self.step_CC)

    def _emit(self, words_BT: Tensor, lengths_B: Tensor) -> Tensor:
        ends = torch.zeros_like(self.begin_C)
        return bounded(self.says_CV.t()[words_BT], lengths_B, self.begin_C, ends)


def _normalised(counts: Tensor) -> Tensor:
    """Log-probabilities along the last axis; uniform where nothing was counted."""
    total = counts.sum(-1, keepdim=True)
    even = torch.full_like(counts, 1 / counts.shape[-1])
    return torch.where(total > 0, counts / total, even).log()
