"""Attention rollout (Abnar & Zuidema 2020): what the states of the last layer are made of.

In every layer half of a state is what it attends to (the mean of the heads), half is what it was, as the
residual connection leaves it. The product over the layers says how much of each input came into each state.
"""

from collections.abc import Sequence

from torch import Tensor


def rollout(layers_BHKK: Sequence[Tensor]) -> Tensor:
    """rolled_BKK of the self-attention weights of all layers, the first layer first; rows sum to 1."""
    rolled_BKK = None
    for weights_BHKK in layers_BHKK:
        mixed_BKK = weights_BHKK.mean(1) / 2
        mixed_BKK.diagonal(dim1=1, dim2=2).add_(0.5)
        rolled_BKK = mixed_BKK if rolled_BKK is None else mixed_BKK @ rolled_BKK
    assert rolled_BKK is not None, "a rollout needs a layer"
    return rolled_BKK
