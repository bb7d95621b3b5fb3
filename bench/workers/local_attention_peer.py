"""Windows of 256 by the package local-attention, a pass for each line of input: CPU-seconds on a line.

Runs in an environment of its own (pip install x-transformers, which brings local-attention).
"""

import sys
import time

import torch
from local_attention import LocalAttention


def main() -> None:
    length, heads, width = map(int, sys.argv[1:])
    torch.set_num_threads(1)
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, heads, length, width) for _ in range(3))
    attend = LocalAttention(
        dim=width,
        window_size=256,
        causal=True,
        look_backward=1,
        look_forward=0,
        autopad=True,
        use_rotary_pos_emb=False,
    )
    with torch.no_grad():
        for _ in sys.stdin:
            began = time.process_time()
            attend(q, k, v)
            print(time.process_time() - began, flush=True)


if __name__ == "__main__":
    main()
