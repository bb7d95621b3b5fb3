"""Linear chains of tags, as in a CRF or an HMM: partition function, best paths, marginals.

A path scores the sum of its emissions and of its steps from tag to tag; −∞ forbids. Scores for beginning and
ending a path are part of the first and of the last emission (`bounded`).

The sum over paths is one matrix product a position, on probabilities that are scaled at every position
(Rabiner 1989) and in double precision. Where scores lie so far apart that even those would vanish, it is done
with logarithms. Gradients are the expected counts, from the same numbers run backwards.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

FAR_APART = 300.0
"""The largest difference between scores at one position, in nats; a double vanishes at 745."""


def bounded(emit_BTC: Tensor, lengths_B: Tensor, begin_C: Tensor, end_C: Tensor) -> Tensor:
    """Emissions with the scores of beginning and ending added."""
    place_T = torch.arange(emit_BTC.shape[1], device=emit_BTC.device)
    first_T11, last_BT1 = (place_T == 0)[:, None], (place_T == lengths_B[:, None] - 1)[..., None]
    zero = emit_BTC.new_zeros(())
    return emit_BTC + torch.where(first_T11, begin_C, zero) + torch.where(last_BT1, end_C, zero)


def path_score(emit_BTC: Tensor, lengths_B: Tensor, step_CC: Tensor, tags_BT: Tensor) -> Tensor:
    """The score of one path per row; tags after its end do not matter."""
    live_BT = torch.arange(tags_BT.shape[1], device=tags_BT.device) < lengths_B[:, None]
    emitted_BT = emit_BTC.gather(2, tags_BT[..., None]).squeeze(2)
    stepped_BT = step_CC[tags_BT[:, :-1], tags_BT[:, 1:]]
    zero = emit_BTC.new_zeros(())
    return torch.where(live_BT, emitted_BT, zero).sum(1) + torch.where(live_BT[:, 1:], stepped_BT, zero).sum(
        1
    )


class Expected(NamedTuple):
    """Expectations under the distribution over all paths of a row."""

    log_z_B: Tensor
    """log Σ exp(score); −∞ where no path is allowed, and then nothing is expected."""
    tags_BTC: Tensor
    """The probability of each tag at each position; zeros after the end."""
    steps_BCC: Tensor
    """The expected number of times each step is taken."""


def expected(emit_BTC: Tensor, lengths_B: Tensor, step_CC: Tensor) -> Expected:
    """Computes them by the forward-backward algorithm."""
    with torch.no_grad():
        emit_TBC, step = emit_BTC.transpose(0, 1).double(), step_CC.double()
        live_TB1 = (torch.arange(len(emit_TBC), device=lengths_B.device)[:, None] < lengths_B)[..., None]
        emit_TBC = torch.where(live_TB1, emit_TBC, emit_TBC.new_zeros(()))
        result = None if _spread(emit_TBC, step) > FAR_APART else _scaled(emit_TBC, live_TB1, step)
        if result is None or not bool(result.log_z_B.isfinite().all()):
            result = _by_logarithms(emit_TBC, live_TB1, step)
        return Expected(*(part.to(emit_BTC.dtype) for part in result))


def log_partition(emit_BTC: Tensor, lengths_B: Tensor, step_CC: Tensor) -> Tensor:
    """log Σ exp(score) over all paths of each row. Its gradients are the expected tags and steps."""
    total_B: Tensor = _LogPartition.apply(emit_BTC, lengths_B, step_CC)  # type: ignore[no-untyped-call]
    return total_B


class _LogPartition(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, emit_BTC: Tensor, lengths_B: Tensor, step_CC: Tensor) -> Tensor:
        result = expected(emit_BTC, lengths_B, step_CC)
        ctx.save_for_backward(result.tags_BTC, result.steps_BCC)
        return result.log_z_B

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_B: Tensor) -> tuple[Tensor | None, ...]:
        tags_BTC, steps_BCC = ctx.saved_tensors
        return grad_B[:, None, None] * tags_BTC, None, torch.einsum("b,bij->ij", grad_B, steps_BCC)


def _spread(emit_TBC: Tensor, step_CC: Tensor) -> float:
    """The largest difference between allowed scores at one position."""
    lowest = emit_TBC.masked_fill(emit_TBC == -torch.inf, torch.inf).amin(-1)
    apart = emit_TBC.amax(-1) - lowest
    allowed = step_CC[step_CC > -torch.inf]
    between = allowed.amax() - allowed.amin() if len(allowed) else step_CC.new_zeros(())
    return float(apart.nan_to_num(neginf=0.0).amax() + between)


def _scaled(emit_TBC: Tensor, live_TB1: Tensor, step_CC: Tensor) -> Expected:
    top_TB1, top = emit_TBC.amax(-1, keepdim=True), step_CC.amax()
    weight_TBC, power_CC = torch.exp(emit_TBC - top_TB1), torch.exp(step_CC - top)
    everywhere_T = live_TB1.flatten(1).all(1).tolist()
    state_BC, states, scales = weight_TBC[0], [], []
    for t, (weight_BC, live_B1) in enumerate(zip(weight_TBC, live_TB1, strict=True)):
        going_BC = (state_BC @ power_CC) * weight_BC if t else weight_BC
        scale_B1 = going_BC.sum(-1, keepdim=True)
        going_BC = going_BC / scale_B1
        state_BC = going_BC if everywhere_T[t] else torch.where(live_B1, going_BC, state_BC)
        states.append(state_BC)
        scales.append(scale_B1)
    state_TBC = torch.stack(states)
    scale_TB1 = torch.where(live_TB1, torch.stack(scales), emit_TBC.new_ones(()))
    n_steps_B1 = (live_TB1.sum(0) - 1).clamp(min=0)
    log_z_B1 = (torch.where(live_TB1, top_TB1, emit_TBC.new_zeros(())) + scale_TB1.log()).sum(0)

    into_TBC = weight_TBC / scale_TB1
    rest_BC, rests = torch.ones_like(weight_TBC[0]), [torch.ones_like(weight_TBC[0])]
    for t in range(len(emit_TBC) - 1, 0, -1):
        into_TBC[t] *= rest_BC
        before_BC = into_TBC[t] @ power_CC.t()
        rest_BC = before_BC if everywhere_T[t] else torch.where(live_TB1[t], before_BC, rest_BC)
        rests.append(rest_BC)
    tags_TBC = state_TBC * torch.stack(rests[::-1]) * live_TB1
    into_TBC = into_TBC * live_TB1
    steps_BCC = power_CC * (state_TBC[:-1].permute(1, 2, 0) @ into_TBC[1:].transpose(0, 1))
    return Expected((log_z_B1 + n_steps_B1 * top).squeeze(1), tags_TBC.transpose(0, 1), steps_BCC)


def _by_logarithms(emit_TBC: Tensor, live_TB1: Tensor, step_CC: Tensor) -> Expected:
    states = [emit_TBC[0]]
    for emit_BC, live_B1 in zip(emit_TBC[1:], live_TB1[1:], strict=True):
        going_BC = torch.logsumexp(states[-1][..., None] + step_CC, dim=1) + emit_BC
        states.append(torch.where(live_B1, going_BC, states[-1]))
    log_z_B = torch.logsumexp(states[-1], dim=-1).where(live_TB1[0, :, 0], emit_TBC.new_zeros(()))
    scale_B11 = torch.where(log_z_B > -torch.inf, log_z_B, torch.inf)[:, None, None]

    rest_BC, tags = torch.zeros_like(emit_TBC[0]), []
    steps_BCC = step_CC.new_zeros(len(log_z_B), *step_CC.shape)
    for t in range(len(emit_TBC) - 1, -1, -1):
        tags.append(torch.exp(states[t] + rest_BC - scale_B11[:, 0]) * live_TB1[t])
        if t:
            into_B1C = (emit_TBC[t] + rest_BC)[:, None]
            taken_BCC = torch.exp(states[t - 1][..., None] + step_CC + into_B1C - scale_B11)
            steps_BCC += taken_BCC * live_TB1[t][..., None]
            rest_BC = torch.where(live_TB1[t], torch.logsumexp(step_CC + into_B1C, dim=2), rest_BC)
    return Expected(log_z_B, torch.stack(tags[::-1], dim=1), steps_BCC)


def best_path(emit_BTC: Tensor, lengths_B: Tensor, step_CC: Tensor) -> tuple[Tensor, Tensor]:
    """path_BT and score_B of the best of each row (Viterbi).

    Backpointers are not stored but recomputed on the way back, for one tag only. Positions after the end
    repeat the last tag.
    """
    emit_TCB, step_CC1 = emit_BTC.permute(1, 2, 0).contiguous(), step_CC[..., None]
    live_TB = torch.arange(len(emit_TCB), device=lengths_B.device)[:, None] < lengths_B
    everywhere_T = live_TB.all(1).tolist()
    states = [emit_TCB[0]]
    for t in range(1, len(live_TB)):  # rows lie side by side: the largest of C is taken for all at once
        going_CB = (states[-1][:, None] + step_CC1).amax(0) + emit_TCB[t]
        states.append(going_CB if everywhere_T[t] else torch.where(live_TB[t], going_CB, states[-1]))
    score_B, tag_B = states[-1].max(0)
    tags = [tag_B]
    for t in range(len(live_TB) - 1, 0, -1):
        came_B = (states[t - 1] + step_CC[:, tags[-1]]).argmax(0)
        tags.append(came_B if everywhere_T[t] else torch.where(live_TB[t], came_B, tags[-1]))
    return torch.stack(tags[::-1], dim=1), score_B


def best_paths(emit_BTC: Tensor, lengths_B: Tensor, step_CC: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """paths_BNT and scores_BN, best first; where there are fewer paths, scores are −∞."""
    n_batch, n_time, n_tags = emit_BTC.shape
    score_BCN = torch.full((n_batch, n_tags, n), -torch.inf, dtype=emit_BTC.dtype, device=emit_BTC.device)
    score_BCN[:, :, 0] = emit_BTC[:, 0]
    stay_P = torch.arange(n_tags * n, device=emit_BTC.device).view(n_tags, n)
    came = []
    for t in range(1, n_time):
        going_BCP = (score_BCN[:, None] + step_CC.t()[..., None]).flatten(2)
        best_BCN, from_BCN = _top(going_BCP, n)
        live_B11 = (t < lengths_B)[:, None, None]
        score_BCN = torch.where(live_B11, best_BCN + emit_BTC[:, t, :, None], score_BCN)
        came.append(torch.where(live_B11, from_BCN, stay_P))
    scores_BN, place_BN = _top(score_BCN.flatten(1), n)
    places = [place_BN]
    for from_BCN in reversed(came):
        places.append(from_BCN.flatten(1).gather(1, places[-1]))
    return torch.stack(places[::-1], dim=-1) // n, scores_BN


def _top(x: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """The n largest along the last axis; −∞ where there are not so many."""
    values, places = x.topk(min(n, x.shape[-1]), dim=-1)
    missing = n - values.shape[-1]
    if missing:
        values = torch.cat([values, values.new_full((*values.shape[:-1], missing), -torch.inf)], dim=-1)
        places = torch.cat([places, places.new_zeros((*places.shape[:-1], missing))], dim=-1)
    return values, places
