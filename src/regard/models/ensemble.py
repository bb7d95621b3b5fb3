"""An ensemble of generators: at each step their probabilities are averaged."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from regard.layers.inputs import Inputs
from regard.models.captioner import Captioner
from regard.models.rnn_seq2seq import RNNSeq2Seq
from regard.models.transformer import Transformer

Member = Transformer | RNNSeq2Seq | Captioner
States = tuple[Any, ...]


class Ensemble(nn.Module):
    """Members of any kind with the same vocabularies."""

    def __init__(self, members: Sequence[Member]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, inputs: Inputs, target_BT: Tensor, keep_BT: Tensor | None = None) -> Tensor:
        """log_prob_NV at the kept target positions."""
        return _mean([member(inputs, target_BT, keep_BT) for member in self.members])

    def start(self, inputs: Inputs) -> States:
        return tuple(member.start(inputs) for member in self._each())

    def step(self, last_B: Tensor, state: States) -> tuple[Tensor, States]:
        steps = [member.step(last_B, part) for member, part in zip(self._each(), state, strict=True)]
        return _mean([logits_BV for logits_BV, _ in steps]), tuple(after for _, after in steps)

    def select(self, state: States, rows_B: Tensor, sources_B: Tensor | None = None) -> States:
        parts = zip(self._each(), state, strict=True)
        return tuple(member.select(part, rows_B, sources_B) for member, part in parts)

    def _each(self) -> list[Any]:
        """The members without the static type of a ModuleList, which hides their methods."""
        return list(self.members)


def _mean(logits: Sequence[Tensor]) -> Tensor:
    """The logarithm of the mean probability."""
    each = torch.stack([torch.log_softmax(part.float(), dim=-1) for part in logits])
    return torch.logsumexp(each, dim=0) - math.log(len(logits))
