"""Scores of recommendations, from their definitions, one list at a time."""

import math

import numpy as np
import pytest
import pytrec_eval
import torch

from regard.layers.heads import HeadInput
from regard.layers.retrieval import target_ranks
from regard.metrics.ranking import ranked, recommended

RANKS = np.array([1, 3, 11, 2, 10, 700])
K = 10
COUNTS = np.array([40, 20, 10, 5, 5, 1, 0])
LISTS = [np.array(items) for items in ([0, 1, 2], [0, 3], [], [1, 0, 5], [0], [6, 0, 1])]
TARGETS = np.array([1, -1, 3, 0, 2, 5])


def once(n: int = len(RANKS)) -> np.ndarray:
    return np.ones((1, n))


def test_ranks_by_hand() -> None:
    """As a search engine is scored whose one right page stands at these places."""
    found = {name: float(score) for name, (score,) in ranked(RANKS, K, once()).items()}
    relevant = [[place == rank for place in range(1, K + 1)] for rank in RANKS]
    gains = [sum(hit / math.log2(place + 1) for place, hit in enumerate(row, 1)) for row in relevant]
    ideal = 1 / math.log2(2)
    assert found["ndcg@10"] == pytest.approx(100 * sum(gain / ideal for gain in gains) / len(RANKS))
    assert found["hr@10"] == pytest.approx(100 * sum(map(any, relevant)) / len(RANKS))
    first = [next((1 / place for place, hit in enumerate(row, 1) if hit), 0) for row in relevant]
    assert found["mrr@10"] == pytest.approx(100 * sum(first) / len(RANKS))


def test_as_trec_eval_scores_them() -> None:
    """A whole catalogue of random scores, ranked by us and by trec_eval."""
    rng = np.random.default_rng(5)
    n_users, n_items = 41, 97
    scores_BV = rng.permuted(np.tile(np.arange(n_items), (n_users, 1)), axis=1).astype(np.float32)
    target_B = rng.integers(n_items, size=n_users)
    target_B[:9] = scores_BV[:9].argmax(1)
    states = HeadInput(torch.from_numpy(scores_BV), torch.eye(n_items))
    rank_B, _ = target_ranks(states, torch.from_numpy(target_B))
    ours = {name: float(score) for name, (score,) in ranked(rank_B.numpy(), K, once(n_users)).items()}
    right = {f"u{user}": {f"i{item}": 1} for user, item in enumerate(target_B)}
    lists = {
        f"u{user}": {f"i{item}": float(scores_V[item]) for item in np.argsort(-scores_V)[:K]}
        for user, scores_V in enumerate(scores_BV)
    }
    measures = {"ndcg@10": "ndcg_cut_10", "hr@10": "success_10", "mrr@10": "recip_rank"}
    theirs = pytrec_eval.RelevanceEvaluator(right, set(measures.values())).evaluate(lists)
    for name, measure in measures.items():
        assert ours[name] == pytest.approx(100 * np.mean([one[measure] for one in theirs.values()]))


def test_lists_by_hand() -> None:
    found = {name: float(score) for name, (score,) in recommended(LISTS, TARGETS, COUNTS, once()).items()}
    listed = [item for items in LISTS for item in items.tolist()]
    assert found["coverage"] == pytest.approx(100 * len(set(listed)) / len(COUNTS))
    total = COUNTS.sum()
    bits = [-math.log2(max(1, COUNTS[item]) / total) for item in listed]
    assert found["novelty"] == pytest.approx(sum(bits) / len(listed))
    chosen = [COUNTS[item] for item in TARGETS if item >= 0]
    mean = sum(COUNTS[item] for item in listed) / len(listed)
    assert found["popularity"] == pytest.approx(mean / (sum(chosen) / len(chosen)))


def test_weights_are_repetitions() -> None:
    weights = np.array([2, 0, 1, 3, 0, 1])
    again = np.repeat(np.arange(len(RANKS)), weights)
    rows = np.stack([weights, np.ones(len(RANKS))]).astype(float)
    weighed = ranked(RANKS, K, rows) | recommended(LISTS, TARGETS, COUNTS, rows)
    repeated = ranked(RANKS[again], K, once(len(again)))
    repeated |= recommended([LISTS[i] for i in again], TARGETS[again], COUNTS, once(len(again)))
    assert np.isnan(weighed["coverage"][0]), "lists that count twice cover no more"
    assert {name: score[0] for name, score in weighed.items() if name != "coverage"} == pytest.approx(
        {name: score[0] for name, score in repeated.items() if name != "coverage"}
    )


def test_popular_lists_have_a_popularity_above_one() -> None:
    popular = [np.array([0, 1])] * len(TARGETS)
    rare = [np.array([4, 5])] * len(TARGETS)
    both = [recommended(lists, TARGETS, COUNTS, once()) for lists in (popular, rare)]
    assert both[0]["popularity"][0] > 1 > both[1]["popularity"][0]
    assert both[0]["novelty"][0] < both[1]["novelty"][0]
