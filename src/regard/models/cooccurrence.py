"""Vectors of pieces from what stands near them: counted, not learnt.

A piece is told by how much oftener than by chance each other piece stands within a few places of it (positive
pointwise mutual information), and that table by its first singular vectors: what skip-grams learn by
gradients (Levy & Goldberg 2014), in seconds. An encoder that begins with them knows which words are alike
before its first step.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Ints = NDArray[np.integer]

WINDOW = 15
"""Places to either side: wide enough for what a text is about, beside what its words do in a sentence."""
ROOM = 2**27
"""Counts that are held, half a gigabyte: of a larger vocabulary only the commonest pieces are looked for."""
SMOOTHING = 0.75
"""Exponent of their frequencies: rare ones would look too telling (Levy, Goldberg & Dagan 2015)."""
CHUNK, MOST_CHUNKS = 2**16, 256
"""Pieces counted together, and how many such parts are looked at, evenly over a text that is longer. What
stands in two of them is not counted as near.
"""
BESIDES, ROUNDS = 32, 4
"""Singular vectors that are looked for beyond those needed, and how often they are refined."""


def ppmi_vectors(pieces: Ints, ends: Ints, n_pieces: int, d_model: int, *, window: int = WINDOW) -> Tensor:
    """vectors_VD of texts that lie one after another and end at `ends`, as long on average as those that an
    `Embed` begins with; zeros for a piece that never stands beside another.
    """
    ppmi_VC = _ppmi(cooccurrences(pieces, ends, n_pieces, window))
    n_found = min(d_model + BESIDES, *ppmi_VC.shape)
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        left_VN, values_N, _ = torch.svd_lowrank(ppmi_VC, n_found, ROUNDS)
    n = min(d_model, n_found)
    vectors_VD = torch.zeros(n_pieces, d_model)
    vectors_VD[:, :n] = left_VN[:, :n] * values_N[:n].sqrt()
    told_V = ppmi_VC.any(1)
    vectors_VD[~told_V] = 0
    return vectors_VD * (told_V.sum() / vectors_VD.square().sum()).sqrt().nan_to_num(0)


def cooccurrences(pieces: Ints, ends: Ints, n_pieces: int, window: int) -> Tensor:
    """count_VC: how often each piece has each common one, by frequency, within the window to either side, in
    the same text.
    """
    parts = _parts(len(pieces))
    often_V = sum(
        (np.bincount(pieces[part], minlength=n_pieces) for part in parts), np.zeros(n_pieces, np.int64)
    )
    common = np.argsort(-often_V, kind="stable")[: max(1, ROOM // n_pieces)]
    place_V = np.full(n_pieces, -1)
    place_V[common] = np.arange(len(common))
    count_N = torch.zeros(n_pieces * len(common))
    for part in parts:
        own = pieces[part].astype(np.int64)
        text = np.searchsorted(ends, np.arange(part.start, part.stop), side="right")
        for apart in range(1, min(window, len(own) - 1) + 1):
            together = text[apart:] == text[:-apart]
            left, right = own[:-apart][together], own[apart:][together]
            for piece, beside in ((left, place_V[right]), (right, place_V[left])):
                told = beside >= 0
                at = torch.from_numpy(piece[told] * len(common) + beside[told])
                count_N.index_add_(0, at, torch.ones(len(at)))
    return count_N.view(n_pieces, -1)


def _parts(n: int) -> list[slice]:
    starts = np.arange(0, n, CHUNK)
    if len(starts) > MOST_CHUNKS:
        starts = starts[np.linspace(0, len(starts) - 1, MOST_CHUNKS).astype(int)]
    return [slice(int(start), min(int(start) + CHUNK, n)) for start in starts]


def _ppmi(count_VC: Tensor) -> Tensor:
    """log of how much oftener than by chance, 0 where it is not; in place of the counts."""
    of_piece_V1 = count_VC.sum(1, keepdim=True)
    of_common_1C = count_VC.sum(0, keepdim=True) ** SMOOTHING
    count_VC *= of_common_1C.sum()
    count_VC /= of_piece_V1.clamp_min_(1)
    count_VC /= of_common_1C.clamp_min_(1)
    return count_VC.log_().clamp_min_(0)
