"""Attention as on a blackboard: plain numbers, one query and one key at a time. Slow, and plainly right."""

import math
from collections.abc import Callable, Sequence
from itertools import product

import torch
from torch import Tensor

Vector = Sequence[float]
LoopScore = Callable[[int, Vector, Vector], float]
"""(head, query, key) → how well they fit."""
MaySee = Callable[[int, int, int], bool]
"""(row of the batch, position of the query among the keys, position of the key)."""


def dot(head: int, q: Vector, k: Vector) -> float:
    return sum(a * b for a, b in zip(q, k, strict=True))


def scaled_dot(head: int, q: Vector, k: Vector) -> float:
    return dot(head, q, k) / math.sqrt(len(q))


def general(weight: Tensor) -> LoopScore:
    matrices = weight.tolist()

    def score(head: int, q: Vector, k: Vector) -> float:
        return sum(q[i] * matrices[head][i][j] * k[j] for i in range(len(q)) for j in range(len(k)))

    return score


def additive(v: Tensor) -> LoopScore:
    vectors = v.tolist()

    def score(head: int, q: Vector, k: Vector) -> float:
        return sum(w * math.tanh(a + b) for w, a, b in zip(vectors[head], q, k, strict=True))

    return score


def loop_attend(
    q: Tensor, k: Tensor, v: Tensor, score: LoopScore, may_see: MaySee, bias: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """(out_BHQW, weights_BHQK), with the queries the last positions of the keys."""
    (rows, heads, n_queries), (kv_heads, n_keys), d_value = q.shape[:3], k.shape[1:3], v.shape[3]
    queries, keys, values = q.tolist(), k.tolist(), v.tolist()
    extra = torch.zeros(rows, heads, n_queries, n_keys).tolist() if bias is None else bias.tolist()
    out = torch.zeros(rows, heads, n_queries, d_value, dtype=torch.float64)
    weights = torch.zeros(rows, heads, n_queries, n_keys, dtype=torch.float64)
    for b, h, i in product(range(rows), range(heads), range(n_queries)):
        g = h // (heads // kv_heads)
        strength = [
            math.exp(score(h, queries[b][h][i], keys[b][g][j]) + extra[b][h][i][j])
            if may_see(b, i + n_keys - n_queries, j)
            else 0.0
            for j in range(n_keys)
        ]
        if any(strength):
            share = [s / sum(strength) for s in strength]
            weights[b, h, i] = torch.tensor(share)
            out[b, h, i] = torch.tensor(
                [sum(share[j] * values[b][g][j][w] for j in range(n_keys)) for w in range(d_value)]
            )
    return out, weights
