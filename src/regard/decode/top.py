"""A faster top-k on a CPU.

torch's `topk` and `argmax` read a row number by number, while its `amax` reads many at once on a CPU. So a
row is cut into blocks: the largest few stand in the blocks with the largest maxima; only those are sorted.
"""

import torch
from torch import Tensor

BLOCK = 64
FEW = 8
"""Blocks for each number wanted; with fewer there is nothing to win.

The number of rows must not decide: among equals each way finds another, and answers would depend on the rest
of the batch."""


def top(x_NV: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Values and places of the `count` largest of each row, the largest first."""
    n_blocks = x_NV.shape[1] // BLOCK
    if n_blocks < FEW * count or x_NV.device.type != "cpu":
        values_NC, places_NC = x_NV.topk(count, dim=-1)
        return values_NC, places_NC
    whole = n_blocks * BLOCK
    blocks_NKb = x_NV[:, :whole].view(-1, n_blocks, BLOCK)
    chosen_NC = blocks_NKb.amax(dim=-1).topk(count, dim=-1).indices
    inside = blocks_NKb.gather(1, chosen_NC[..., None].expand(-1, -1, BLOCK)).flatten(1)
    values_NC, at_NC = torch.cat([inside, x_NV[:, whole:]], dim=1).topk(count, dim=-1)
    block_NC = chosen_NC.gather(1, (at_NC // BLOCK).clamp(max=count - 1))
    places_NC = torch.where(
        at_NC < count * BLOCK, block_NC * BLOCK + at_NC % BLOCK, at_NC - count * BLOCK + whole
    )
    return values_NC, places_NC
