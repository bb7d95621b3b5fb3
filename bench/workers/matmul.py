"""The machine's rate of single-precision matrix products in GFLOP/s: 1024³, and the model's own shapes."""

import json
import time

import torch
from model import BATCH_TOKENS, D_FF, D_MODEL, VOCABULARY

SHAPES = {
    "cube": (1024, 1024, 1024),
    "projection": (BATCH_TOKENS, D_MODEL, D_MODEL),
    "feed_forward": (BATCH_TOKENS, D_MODEL, D_FF),
    "vocabulary": (BATCH_TOKENS, D_MODEL, VOCABULARY),
}


def rate(rows: int, inner: int, columns: int, seconds: float = 0.6) -> float:
    """Operations per second over at least `seconds`, the output buffer reused."""
    left, right = torch.randn(rows, inner), torch.randn(inner, columns)
    product = torch.mm(left, right)
    count, started = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - started) < seconds:
        torch.mm(left, right, out=product)
        count += 1
    return 2.0 * rows * inner * columns * count / elapsed


if __name__ == "__main__":
    print(
        json.dumps({"tool": "matmul", "gflops": {name: rate(*shape) / 1e9 for name, shape in SHAPES.items()}})
    )
