"""Attention over few keys on a CPU: torch's fused kernel beside `attend_few_keys`, forward and backward.

    python bench/attention_speed.py

Each shape is a batch of about 2,048 tokens as training sees it, heads beside each other in memory as
projections leave them. Prints milliseconds (median of interleaved repeats) and their ratio: the constants
MAX_KEYS and MIN_ROWS of regard/attention/cpu/small_kernel.py come from here.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.attention.cpu.small_kernel import attend_few_keys

Kernel = Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor]
SHAPES = [
    (256, 4, 8, 8, 32), (140, 4, 15, 15, 32), (64, 4, 32, 32, 32), (43, 4, 48, 48, 32), (32, 4, 64, 64, 32),
    (21, 4, 96, 96, 32), (16, 4, 128, 128, 32), (280, 4, 15, 15, 64), (64, 8, 32, 32, 64),
    (32, 8, 64, 64, 64), (1, 4, 15, 15, 32), (4, 4, 15, 15, 32), (16, 4, 15, 15, 32), (64, 4, 15, 15, 32),
    (256, 4, 1, 15, 32), (64, 4, 5, 15, 32), (256, 8, 1, 40, 64),
]  # fmt: skip
"""Rows, heads, queries, keys, width; the last ones are steps of a search, forward only."""


def fused(q: Tensor, k: Tensor, v: Tensor, keep: Tensor | None) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, attn_mask=keep)


def few(q: Tensor, k: Tensor, v: Tensor, keep: Tensor | None) -> Tensor:
    return attend_few_keys(q, k, v, q.shape[-1] ** -0.5, keep)


def seconds(kernel: Kernel, parts: list[Tensor], heads: int, keep: Tensor | None, learns: bool) -> float:
    began = time.perf_counter()
    with torch.set_grad_enabled(learns):
        q, k, v = (part.unflatten(2, (heads, -1)).transpose(1, 2) for part in parts)
        out = kernel(q, k, v, keep).transpose(1, 2).reshape(parts[0].shape)
    if learns:
        out.backward(parts[0].detach())
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=40)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print("| rows × heads × queries × keys × width | mask | torch's kernel, ms | head by head, ms | faster |")
    print("|---|---|---|---|---|")
    for n_rows, heads, n_queries, n_keys, width in SHAPES:
        learns = n_queries == n_keys
        parts = [
            torch.randn(n_rows, length, heads * width).requires_grad_()
            for length in (n_queries, n_keys, n_keys)
        ]
        lengths = torch.randint(n_keys * 3 // 4, n_keys + 1, (n_rows, 1, 1, 1))
        masks = {"padding": torch.arange(n_keys) < lengths}
        if learns:
            masks["causal"] = torch.ones(n_keys, n_keys, dtype=torch.bool).tril()[None, None]
        for name, keep in masks.items():
            rounds = [
                [seconds(kernel, parts, heads, keep, learns) for kernel in (fused, few)]
                for _ in range(options.repeats)
            ]
            theirs, ours = (1e3 * median(times) for times in zip(*rounds, strict=True))
            shape = f"{n_rows} × {heads} × {n_queries} × {n_keys} × {width}"
            print(f"| {shape} | {name} | {theirs:.2f} | {ours:.2f} | {theirs / ours:.2f}× |", flush=True)


if __name__ == "__main__":
    main()
