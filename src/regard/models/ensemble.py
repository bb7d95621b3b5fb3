"""Several translators that write one text: at each step their probabilities are averaged."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from regard.models.rnn_seq2seq import RNNSeq2Seq
from regard.models.transformer import Transformer

States = tuple[Any, ...]


class Ensemble(nn.Module):
    """Its members have the same vocabularies; what they are otherwise is their own affair."""

    def __init__(self, members: Sequence[Transformer | RNNSeq2Seq]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(
        self, source_BK: Tensor, lengths_B: Tensor, target_BT: Tensor, keep_BT: Tensor | None = None
    ) -> Tensor:
        """log_prob_NV at the kept target positions."""
        return self._mean(lambda member, _: member(source_BK, lengths_B, target_BT, keep_BT))

    def start(self, source_BK: Tensor, lengths_B: Tensor) -> States:
        return tuple(member.start(source_BK, lengths_B) for member in self.members)

    def step(self, last_B: Tensor, state: States) -> tuple[Tensor, States]:
        told = [member.step(last_B, own) for member, own in zip(self.members, state, strict=True)]
        return self._mean(lambda _, i: told[i][0]), tuple(after for _, after in told)

    def select(self, state: States, rows_B: Tensor, sources_B: Tensor | None = None) -> States:
        kept = zip(self.members, state, strict=True)
        return tuple(member.select(own, rows_B, sources_B) for member, own in kept)

    def _mean(self, logits: Callable[[nn.Module, int], Tensor]) -> Tensor:
        """The logarithm of the members' mean probability."""
        each = [torch.log_softmax(logits(member, i).float(), dim=-1) for i, member in enumerate(self.members)]
        return torch.logsumexp(torch.stack(each), dim=0) - math.log(len(each))
