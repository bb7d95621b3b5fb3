"""Token vectors from co-occurrence counts: PPMI followed by a truncated SVD.

Positive pointwise mutual information says how much oftener than by chance two tokens stand within a few
positions of each other; the first singular vectors of its table are what skip-grams learn by gradients
(Levy & Goldberg 2014), in seconds. An encoder that starts so knows similar words before its first step.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Ints = NDArray[np.integer]

WINDOW = 15
"""Positions to either side: wide enough for topics, beside the words' roles in a sentence."""
ROOM = 2**27
"""Counts in memory, half a gigabyte: of a larger vocabulary only the commonest tokens are contexts."""
SMOOTHING = 0.75
"""Exponent of the contexts' frequencies: rare ones would weigh too much (Levy, Goldberg & Dagan 2015)."""
CHUNK, MOST_CHUNKS = 2**16, 256
"""Tokens counted together, and how many such chunks are counted, spread evenly over a longer text. Pairs
across two chunks do not count.
"""
OVERSAMPLES, ITERATIONS = 32, 4
"""Oversampling and power iterations of the randomised SVD."""


def ppmi_vectors(tokens: Ints, ends: Ints, n_tokens: int, d_model: int, *, window: int = WINDOW) -> Tensor:
    """vectors_VD of texts that lie end to end and stop at `ends`, scaled as an `Embed` starts; zeros for a
    token that never stands beside another.
    """
    ppmi_VC = _ppmi(cooccurrences(tokens, ends, n_tokens, window))
    n_vectors = min(d_model + OVERSAMPLES, *ppmi_VC.shape)
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        left_VN, values_N, _ = torch.svd_lowrank(ppmi_VC, n_vectors, ITERATIONS)
    n = min(d_model, n_vectors)
    vectors_VD = torch.zeros(n_tokens, d_model)
    vectors_VD[:, :n] = left_VN[:, :n] * values_N[:n].sqrt()
    occurs_V = ppmi_VC.any(1)
    vectors_VD[~occurs_V] = 0
    return vectors_VD * (occurs_V.sum() / vectors_VD.square().sum()).sqrt().nan_to_num(0)


def cooccurrences(tokens: Ints, ends: Ints, n_tokens: int, window: int) -> Tensor:
    """count_VC: how often each token has each common one, by frequency, within the window to either side, in
    the same text.
    """
    parts = _parts(len(tokens))
    often_V = sum(
        (np.bincount(tokens[part], minlength=n_tokens) for part in parts), np.zeros(n_tokens, np.int64)
    )
    common = np.argsort(-often_V, kind="stable")[: max(1, ROOM // n_tokens)]
    place_V = np.full(n_tokens, -1)
    place_V[common] = np.arange(len(common))
    count_N = torch.zeros(n_tokens * len(common))
    for part in parts:
        part_tokens = tokens[part].astype(np.int64)
        text = np.searchsorted(ends, np.arange(part.start, part.stop), side="right")
        for apart in range(1, min(window, len(part_tokens) - 1) + 1):
            together = text[apart:] == text[:-apart]
            left, right = part_tokens[:-apart][together], part_tokens[apart:][together]
            for token, context in ((left, place_V[right]), (right, place_V[left])):
                is_common = context >= 0
                at = torch.from_numpy(token[is_common] * len(common) + context[is_common])
                count_N.index_add_(0, at, torch.ones(len(at)))
    return count_N.view(n_tokens, -1)


def _parts(n: int) -> list[slice]:
    starts = np.arange(0, n, CHUNK)
    if len(starts) > MOST_CHUNKS:
        starts = starts[np.linspace(0, len(starts) - 1, MOST_CHUNKS).astype(int)]
    return [slice(int(start), min(int(start) + CHUNK, n)) for start in starts]


def _ppmi(count_VC: Tensor) -> Tensor:
    """max(0, pointwise mutual information), written over the counts."""
    of_token_V1 = count_VC.sum(1, keepdim=True)
    of_common_1C = count_VC.sum(0, keepdim=True) ** SMOOTHING
    count_VC *= of_common_1C.sum()
    count_VC /= of_token_V1.clamp_min_(1)
    count_VC /= of_common_1C.clamp_min_(1)
    return count_VC.log_().clamp_min_(0)
