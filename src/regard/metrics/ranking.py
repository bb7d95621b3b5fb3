"""Scores of recommendations: where the right item stands among the whole catalogue, and what is recommended.

There is one right item for each list, so that all of these follow from its rank r, counted from 1:
HR@k is r ≤ k (recall@k is the same), NDCG@k is 1 / log2(r + 1) where r ≤ k, MRR@k is 1 / r where r ≤ k.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from regard.metrics.resample import Floats, Scores

Ints = NDArray[np.integer]


def ranked(ranks_N: Ints, k: int, weights_RN: Floats) -> Scores:
    """HR, NDCG and MRR in percent, for each row of weights."""
    found_N = ranks_N <= k
    total_R = weights_RN.sum(1)
    gains = {
        "ndcg": np.where(found_N, 1 / np.log2(ranks_N + 1), 0.0),
        "hr": found_N.astype(np.float64),
        "mrr": np.where(found_N, 1 / ranks_N, 0.0),
    }
    return {f"{name}@{k}": 100 * (weights_RN @ gain_N) / total_R for name, gain_N in gains.items()}


def recommended(lists: Sequence[Ints], targets_N: Ints, counts_V: Ints, weights_RN: Floats) -> Scores:
    """Describe the items in the lists, for each row of weights; `counts_V` counts them in training.

    coverage: the share of the catalogue that stands in any list, in percent. A list that counts twice covers
    no more, so that resampled lists have none, and it has no interval.
    novelty: the mean of −log2 of an item's share of all interactions, in bits.
    popularity: how often a recommended item was chosen in training, against how often the right items were:
    above 1, the popular is recommended more than it is chosen.
    """
    owner_L = np.repeat(np.arange(len(lists)), [len(items) for items in lists])
    item_L = np.concatenate([*lists, np.zeros(0, np.int64)]).astype(np.int64)
    coverage_R = np.full(len(weights_RN), np.nan)
    for draw, weights_N in enumerate(weights_RN):
        if weights_N.max(initial=0) <= 1:
            coverage_R[draw] = (np.bincount(item_L, weights_N[owner_L], len(counts_V)) > 0).mean()
    bits_V = -np.log2(np.maximum(counts_V, 1) / max(1, counts_V.sum()))
    per_list_N = np.array([len(items) for items in lists], np.float64)
    n_items_R = np.maximum(weights_RN @ per_list_N, 1)
    bits_N, count_N = (np.bincount(owner_L, values_V[item_L], len(lists)) for values_V in (bits_V, counts_V))
    is_right_N = targets_N >= 0
    right_N = np.where(is_right_N, counts_V[targets_N], 0)
    chosen_R = (weights_RN @ right_N) / np.maximum(weights_RN @ is_right_N, 1)
    return {
        "coverage": 100 * coverage_R,
        "novelty": (weights_RN @ bits_N) / n_items_R,
        "popularity": (weights_RN @ count_N) / n_items_R / np.maximum(chosen_R, 1e-9),
    }
