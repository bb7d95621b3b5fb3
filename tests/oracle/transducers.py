"""Slow twins of the transducer: every path written out, and the plain double loop over frames and labels."""

from collections.abc import Iterator, Sequence
from itertools import combinations

import torch
from torch import Tensor

BLANK = 0


def all_paths(n_frames: int, n_labels: int) -> Iterator[tuple[int, ...]]:
    """The frame at which each label is written, for every path."""
    for places in combinations(range(n_frames - 1 + n_labels), n_labels):
        yield tuple(place - number for number, place in enumerate(places))


def arcs(path: Sequence[int], n_frames: int) -> Iterator[tuple[int, int, bool]]:
    """(t, u, whether a label is written) of every arc of a path."""
    written = 0
    for t in range(n_frames):
        while written < len(path) and path[written] == t:
            yield t, written, True
            written += 1
        yield t, written, False


def path_log_prob(log_probs_TUV: Tensor, labels: Sequence[int], path: Sequence[int], n_frames: int) -> Tensor:
    taken = arcs(path, n_frames)
    return torch.stack([log_probs_TUV[t, u, labels[u] if writes else BLANK] for t, u, writes in taken]).sum()


def loop_loss(
    log_probs_BTUV: Tensor, labels_BU: Tensor, n_frames_B: Tensor, n_labels_B: Tensor, fast_emit: float = 0.0
) -> Tensor:
    """The plain double loop; autograd finds its gradient."""
    losses = []
    for log_probs_TUV, labels, n_frames, n_labels in zip(
        log_probs_BTUV, labels_BU.tolist(), n_frames_B.tolist(), n_labels_B.tolist(), strict=True
    ):
        alpha: dict[tuple[int, int], Tensor] = {(0, 0): log_probs_TUV.new_zeros(())}
        for t in range(n_frames):
            for u in range(n_labels + 1):
                ways = []
                if t:
                    ways.append(alpha[t - 1, u] + log_probs_TUV[t - 1, u, BLANK])
                if u:
                    label = log_probs_TUV[t, u - 1, labels[u - 1]]
                    label = (1 + fast_emit) * label - (fast_emit * label).detach()
                    ways.append(alpha[t, u - 1] + label)
                if ways:
                    alpha[t, u] = torch.logsumexp(torch.stack(ways), 0)
        losses.append(-(alpha[n_frames - 1, n_labels] + log_probs_TUV[n_frames - 1, n_labels, BLANK]))
    return torch.stack(losses)
