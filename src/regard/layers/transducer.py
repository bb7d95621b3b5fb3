"""The transducer (Graves 2012): the sum over all ways to write the labels while reading the frames.

A lattice has a node for every frame t and every number u of labels written so far. From a node a path either
goes on to the next frame (a blank) or writes the next label. It ends with a blank at the last frame.

Forward and backward sums are made in one pass over the anti-diagonals t + u, on which no node depends on
another, with logarithms in double precision. The joint network over all nodes is never held: it is computed a
few frames at a time, and once more for its gradient. How many frames at a time changes memory and time, and
no bit of the result.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

BLANK = 0
"""The id of the blank: that of padding, which no label has."""
JOINT_ELEMENTS = 1 << 20
"""Elements of a joint tensor made at once, about: 4 MB of float32."""


class Lattice(NamedTuple):
    """Log-probabilities of the arcs that leave every node; U counts nodes, one more than labels."""

    blank_BTU: Tensor
    label_BTU: Tensor
    """Of the next label; what stands where a row has no label left does not matter."""
    n_frames_B: Tensor
    n_labels_B: Tensor


class Occupation(NamedTuple):
    """The probability that a path takes an arc, given that it writes the labels."""

    log_prob_B: Tensor
    """Log-probability of the labels."""
    blank_BTU: Tensor
    label_BTU: Tensor


def occupation(lattice: Lattice) -> Occupation:
    """Sums over all paths by the forward-backward algorithm."""
    blank_BTU, label_BTU = _open(lattice)
    n_batch, n_t, _ = blank_BTU.shape
    both = zip(_entering(blank_BTU, label_BTU), (blank_BTU.flip(1, 2), label_BTU.flip(1, 2)), strict=True)
    sums_BTU = _unskewed(_scan(*(_skewed(torch.cat(ways)) for ways in both)), n_t)
    alpha_BTU, beta_BTU = sums_BTU[:n_batch], sums_BTU[n_batch:].flip(1, 2)
    log_prob_B = alpha_BTU[:, -1, -1]
    alpha_BTU = alpha_BTU - torch.where(log_prob_B > -torch.inf, log_prob_B, torch.inf)[:, None, None]
    frame_T = torch.arange(n_t - 1, device=log_prob_B.device)
    real_BT1 = (frame_T < lattice.n_frames_B[:, None])[..., None]
    by_blank_BTU = torch.exp((alpha_BTU + blank_BTU)[:, :-1] + beta_BTU[:, 1:]) * real_BT1
    by_label_BTU = torch.exp((alpha_BTU + label_BTU)[:, :-1, :-1] + beta_BTU[:, :-1, 1:]) * real_BT1
    return Occupation(log_prob_B, by_blank_BTU, F.pad(by_label_BTU, (0, 1)))


def best_path(lattice: Lattice) -> Tensor:
    """frames_BU, the frame at which the likeliest path writes each label; 0 where a row has no label."""
    blank_BTU, label_BTU = _open(lattice)
    into_blank_ABU, into_label_ABU = map(_skewed, _entering(blank_BTU, label_BTU))
    score_BU, wrote = torch.full_like(into_blank_ABU[0], -torch.inf), []
    score_BU[:, 0] = 0.0
    for blank_BU, label_BU in zip(into_blank_ABU[1:], into_label_ABU[1:], strict=True):
        stayed_BU = score_BU + blank_BU
        written_BU = F.pad(score_BU[:, :-1], (1, 0), value=-torch.inf) + label_BU
        wrote.append(written_BU > stayed_BU)
        score_BU = torch.maximum(stayed_BU, written_BU)
    frames_BU = torch.zeros_like(score_BU, dtype=torch.long)
    row_B = torch.arange(len(score_BU), device=score_BU.device)
    u_B = torch.full_like(row_B, score_BU.shape[1] - 1)
    for d in range(len(wrote) - 1, -1, -1):
        by_label_B = wrote[d][row_B, u_B]
        u_B = u_B - by_label_B.long()
        frames_BU[row_B[by_label_B], u_B[by_label_B]] = d - u_B[by_label_B]
    label_U = torch.arange(frames_BU.shape[1], device=score_BU.device)
    return torch.where(label_U < lattice.n_labels_B[:, None], frames_BU, 0)


def _open(lattice: Lattice) -> tuple[Tensor, Tensor]:
    """Arcs in double precision with one more row of frames, and one end for all rows: the last node.

    Past the end of a shorter row one way leads there for nothing: first all frames, then all labels.
    """
    blank_BTU, label_BTU = (F.pad(arc_BTU.double(), (0, 0, 0, 1)) for arc_BTU in lattice[:2])
    n_frames_B11, n_labels_B11 = (n_B[:, None, None] for n_B in lattice[2:])
    t_T1 = torch.arange(blank_BTU.shape[1], device=blank_BTU.device)[:, None]
    u_U = torch.arange(blank_BTU.shape[2], device=blank_BTU.device)
    inside, all_written = (t_T1 < n_frames_B11) & (u_U <= n_labels_B11), u_U == n_labels_B11
    may_blank = inside & ((t_T1 < n_frames_B11 - 1) | all_written)
    closed, free = blank_BTU.new_tensor(-torch.inf), blank_BTU.new_zeros(())
    blank_BTU = torch.where(may_blank, blank_BTU, closed)
    label_BTU = torch.where(inside & ~all_written, label_BTU, closed)
    blank_BTU = torch.where((t_T1 >= n_frames_B11) & all_written, free, blank_BTU)
    label_BTU = torch.where((t_T1 == len(t_T1) - 1) & (u_U >= n_labels_B11), free, label_BTU)
    return blank_BTU, label_BTU


def _entering(blank_BTU: Tensor, label_BTU: Tensor) -> tuple[Tensor, Tensor]:
    """The arcs that lead into each node, of those that leave each."""
    into_blank_BTU = F.pad(blank_BTU[:, :-1], (0, 0, 1, 0), value=-torch.inf)
    return into_blank_BTU, F.pad(label_BTU[:, :, :-1], (1, 0), value=-torch.inf)


def _skewed(arc_BTU: Tensor) -> Tensor:
    """arc_ABU by anti-diagonal, A = T + U − 1; −∞ outside of the lattice."""
    n_batch, n_t, n_u = arc_BTU.shape
    padded_BUT = F.pad(arc_BTU.transpose(1, 2), (0, n_u), value=-torch.inf)
    skewed_BUA = padded_BUT.flatten(1)[:, : n_u * (n_t + n_u - 1)].view(n_batch, n_u, n_t + n_u - 1)
    return skewed_BUA.permute(2, 0, 1).contiguous()


def _unskewed(x_ABU: Tensor, n_t: int) -> Tensor:
    _, n_batch, n_u = x_ABU.shape
    flat = F.pad(x_ABU.permute(1, 2, 0).flatten(1), (0, n_u))
    return flat.view(n_batch, n_u, n_t + n_u)[:, :, :n_t].transpose(1, 2)


def _scan(blank_ABU: Tensor, label_ABU: Tensor) -> Tensor:
    """sums_ABU, the log-sum over all ways to each node, from the arcs that lead into it."""
    sums = blank_ABU.new_full((*blank_ABU.shape[:2], 1 + blank_ABU.shape[2]), -torch.inf)
    sums[0, :, 1] = 0.0
    before, here = sums[:, :, :-1].unbind(), sums[:, :, 1:].unbind()
    stayed_BU, written_BU = torch.empty_like(blank_ABU[0]), torch.empty_like(blank_ABU[0])
    arcs = zip(blank_ABU.unbind(), label_ABU.unbind(), strict=True)
    next(arcs)
    for d, (blank_BU, label_BU) in enumerate(arcs):
        torch.add(here[d], blank_BU, out=stayed_BU)
        torch.add(before[d], label_BU, out=written_BU)
        torch.logaddexp(stayed_BU, written_BU, out=here[d + 1])
    return sums[:, :, 1:]


class Joint(NamedTuple):
    """The joint network at every node: tanh(encoded + predicted) Wᵀ + b."""

    encoded_BTF: Tensor
    predicted_BUF: Tensor
    weight_VF: Tensor
    bias_V: Tensor

    def slices(self, at_once: int | None) -> list[slice]:
        """The frames computed together."""
        n_batch, n_frames, width = self.encoded_BTF.shape
        per_frame = n_batch * self.predicted_BUF.shape[1] * max(width, len(self.weight_VF))
        step = at_once or max(1, JOINT_ELEMENTS // per_frame)
        return [slice(start, start + step) for start in range(0, n_frames, step)]

    def hidden(self, frames: slice) -> Tensor:
        """hidden_TNF, N = B · U."""
        encoded_TBF = self.encoded_BTF[:, frames].transpose(0, 1)
        shape_BU = self.predicted_BUF.shape[:2]
        hidden_TNF = _aligned(self.encoded_BTF, len(encoded_TBF), shape_BU.numel(), encoded_TBF.shape[2])
        torch.add(encoded_TBF[:, :, None], self.predicted_BUF, out=torch.unflatten(hidden_TNF, 1, shape_BU))
        return hidden_TNF.tanh_()

    def logits(self, hidden_TNF: Tensor) -> Tensor:
        """logits_TNV, a product for each frame: one for several would have other bits."""
        n_frames, n_rows, _ = hidden_TNF.shape
        logits_TNV = _aligned(hidden_TNF, n_frames, n_rows, len(self.weight_VF))
        for hidden_NF, logits_NV in zip(hidden_TNF, logits_TNV, strict=True):
            torch.addmm(self.bias_V, hidden_NF, self.weight_VF.t(), out=logits_NV)
        return logits_TNV


def _aligned(like: Tensor, n_frames: int, n_rows: int, width: int) -> Tensor:
    """An empty tensor whose frames all begin at the same alignment, which may decide the last bits."""
    return like.new_empty(n_frames, -(-n_rows // 16) * 16, width)[:, :n_rows]


def lattice(
    joint: Joint, labels_BU: Tensor, n_frames_B: Tensor, n_labels_B: Tensor, at_once: int | None = None
) -> Lattice:
    """The lattice of a joint network, without a gradient; `at_once` frames are computed together."""
    with torch.no_grad():
        return _lattice(joint, labels_BU, n_frames_B, n_labels_B, at_once)[0]


def _lattice(
    joint: Joint, labels_BU: Tensor, n_frames_B: Tensor, n_labels_B: Tensor, at_once: int | None
) -> tuple[Lattice, Tensor]:
    """The lattice, and the log-sum of the logits at every node."""
    n_frames, shape_BU = joint.encoded_BTF.shape[1], joint.predicted_BUF.shape[:2]
    blank_TN, label_TN, log_z_TN = joint.weight_VF.new_empty(3, n_frames, shape_BU.numel())
    next_1N1 = F.pad(labels_BU, (0, 1)).view(1, -1, 1)
    for frames in joint.slices(at_once):
        logits_TNV = joint.logits(joint.hidden(frames))
        torch.logsumexp(logits_TNV, -1, out=log_z_TN[frames])
        blank_TN[frames] = logits_TNV[..., BLANK]
        label_TN[frames] = logits_TNV.gather(-1, next_1N1.expand(len(logits_TNV), -1, -1)).squeeze(-1)
    blank_BTU, label_BTU = (
        torch.unflatten(arc_TN - log_z_TN, 1, shape_BU).transpose(0, 1) for arc_TN in (blank_TN, label_TN)
    )
    return Lattice(blank_BTU, label_BTU, n_frames_B, n_labels_B), log_z_TN


def transducer_loss(
    joint: Joint,
    labels_BU: Tensor,
    n_frames_B: Tensor,
    n_labels_B: Tensor,
    *,
    fast_emit: float = 0.0,
    at_once: int | None = None,
) -> Tensor:
    """−log p(labels | frames) of each row.

    `fast_emit` adds that share of the gradients of labels to them, so that labels are not put off (Yu et al.
    2021); the value is the plain one. Everything is in the precision of the weights, autocast or not.
    """
    with torch.autocast(joint.weight_VF.device.type, enabled=False):
        inputs = (tensor.to(joint.weight_VF.dtype) for tensor in joint)
        loss_B: Tensor = _TransducerLoss.apply(  # type: ignore[no-untyped-call]
            *inputs, labels_BU, n_frames_B, n_labels_B, fast_emit, at_once
        )
    return loss_B


class _TransducerLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        encoded_BTF: Tensor,
        predicted_BUF: Tensor,
        weight_VF: Tensor,
        bias_V: Tensor,
        labels_BU: Tensor,
        n_frames_B: Tensor,
        n_labels_B: Tensor,
        fast_emit: float,
        at_once: int | None,
    ) -> Tensor:
        joint, dtype = Joint(encoded_BTF, predicted_BUF, weight_VF, bias_V), weight_VF.dtype
        arcs, log_z_TN = _lattice(joint, labels_BU, n_frames_B, n_labels_B, at_once)
        log_prob_B, *taken = occupation(arcs)
        by_blank_TN, by_label_TN = (taken_BTU.to(dtype).transpose(0, 1).flatten(1) for taken_BTU in taken)
        ctx.save_for_backward(*joint, labels_BU, log_z_TN, by_blank_TN, by_label_TN)
        ctx.fast_emit, ctx.at_once = fast_emit, at_once
        return -log_prob_B.to(dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_B: Tensor) -> tuple[Tensor | None, ...]:
        *parts, labels_BU, log_z_TN, blank_TN, label_TN = ctx.saved_tensors
        joint = Joint(*parts)
        shape_BU = joint.predicted_BUF.shape[:2]
        grad_N = grad_B.repeat_interleave(shape_BU[1])
        blank_TN, label_TN = grad_N * blank_TN, (1 + ctx.fast_emit) * grad_N * label_TN
        next_1N1 = F.pad(labels_BU, (0, 1)).view(1, -1, 1)
        d_encoded = torch.empty_like(joint.encoded_BTF)
        d_predicted, d_weight, d_bias = (torch.zeros_like(tensor) for tensor in joint[1:])
        for frames in joint.slices(ctx.at_once):
            hidden_TNF = joint.hidden(frames)
            d_logits_TNV = joint.logits(hidden_TNF).sub_(log_z_TN[frames, :, None]).exp_()
            d_logits_TNV *= (blank_TN + label_TN)[frames, :, None]
            d_logits_TNV[..., BLANK] -= blank_TN[frames]
            next_TN1 = next_1N1.expand(len(hidden_TNF), -1, -1)
            d_logits_TNV.scatter_add_(-1, next_TN1, -label_TN[frames, :, None])
            d_hidden_TNF = _aligned(hidden_TNF, *hidden_TNF.shape)
            for d_logits_NV, hidden_NF, d_hidden_NF in zip(
                d_logits_TNV, hidden_TNF, d_hidden_TNF, strict=True
            ):
                torch.mm(d_logits_NV, joint.weight_VF, out=d_hidden_NF)
                d_weight.addmm_(d_logits_NV.t(), hidden_NF)
                d_bias += d_logits_NV.sum(0)
            d_hidden_TNF.addcmul_(d_hidden_TNF, hidden_TNF.square_(), value=-1)
            d_sum_TBUF = torch.unflatten(d_hidden_TNF, 1, shape_BU)
            d_encoded[:, frames] = d_sum_TBUF.sum(2).transpose(0, 1)
            for d_sum_BUF in d_sum_TBUF:
                d_predicted += d_sum_BUF
        return d_encoded, d_predicted, d_weight, d_bias, None, None, None, None, None
