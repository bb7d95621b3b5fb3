"""Which frame says which label of CTC, over all ways to say them: the forward-backward algorithm.

The loss is torch's; this is for looking at, and goes frame by frame.
"""

import torch
from torch import Tensor
from torch.nn import functional as F


def ctc_occupation(log_probs_TV: Tensor, labels_U: Tensor, blank: int = 0) -> Tensor:
    """occupied_UT: the probability that a frame says the u-th label, given that all labels are said."""
    states_S = torch.full((2 * len(labels_U) + 1,), blank, device=labels_U.device)
    states_S[1::2] = labels_U
    emit_TS = log_probs_TV.double()[:, states_S]
    skips_S = torch.zeros_like(states_S, dtype=torch.bool)
    skips_S[2:] = (states_S[2:] != blank) & (states_S[2:] != states_S[:-2])
    alpha_TS = _sums(emit_TS, skips_S)
    back_S = torch.zeros_like(skips_S)
    back_S[2:] = skips_S.flip(0)[:-2] if len(skips_S) > 2 else skips_S[2:]
    beta_TS = _sums(emit_TS.flip(0, 1), back_S).flip(0, 1)
    together_TS = alpha_TS + beta_TS - emit_TS
    total = torch.logsumexp(together_TS[0], 0)
    if total == -torch.inf:
        return torch.zeros(len(labels_U), len(log_probs_TV), device=labels_U.device)
    return torch.exp(together_TS - total)[:, 1::2].T.float()


def _sums(emit_TS: Tensor, skips_S: Tensor) -> Tensor:
    """The log-sum over all ways to each state at each frame; a way begins at the first two states."""
    nothing = emit_TS.new_tensor(-torch.inf)
    here_S = torch.full_like(emit_TS[0], -torch.inf)
    here_S[:2] = emit_TS[0, :2]
    sums = [here_S]
    for emit_S in emit_TS[1:]:
        one_S = F.pad(here_S[:-1], (1, 0), value=-torch.inf)
        two_S = torch.where(skips_S, F.pad(here_S, (2, 0), value=-torch.inf)[: len(here_S)], nothing)
        here_S = torch.logsumexp(torch.stack([here_S, one_S, two_S]), 0) + emit_S
        sums.append(here_S)
    return torch.stack(sums)
