"""Several models that write one text: at each step their probabilities are averaged."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from regard.models.rnn_seq2seq import RNNSeq2Seq
from regard.models.transformer import Transformer

Member = Transformer | RNNSeq2Seq
States = tuple[Any, ...]


class Ensemble(nn.Module):
    """Its members have the same vocabularies; what they are otherwise is their own affair."""

    def __init__(self, members: Sequence[Member]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(
        self, source_BK: Tensor, lengths_B: Tensor, target_BT: Tensor, keep_BT: Tensor | None = None
    ) -> Tensor:
        """log_prob_NV at the kept target positions."""
        return _mean([member(source_BK, lengths_B, target_BT, keep_BT) for member in self.members])

    def start(self, source_BK: Tensor, lengths_B: Tensor) -> States:
        return tuple(member.start(source_BK, lengths_B) for member in self._each())

    def step(self, last_B: Tensor, state: States) -> tuple[Tensor, States]:
        told = [member.step(last_B, own) for member, own in zip(self._each(), state, strict=True)]
        return _mean([logits_BV for logits_BV, _ in told]), tuple(after for _, after in told)

    def select(self, state: States, rows_B: Tensor, sources_B: Tensor | None = None) -> States:
        kept = zip(self._each(), state, strict=True)
        return tuple(member.select(own, rows_B, sources_B) for member, own in kept)

    def _each(self) -> list[Any]:
        """A list of modules knows nothing of its modules' methods."""
        return list(self.members)


def _mean(logits: Sequence[Tensor]) -> Tensor:
    """The logarithm of the mean probability."""
    each = torch.stack([torch.log_softmax(one.float(), dim=-1) for one in logits])
    return torch.logsumexp(each, dim=0) - math.log(len(logits))
