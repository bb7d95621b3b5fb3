"""Attention that sees a part of the text and does the work of that part alone.

A reach is a value that `Attention` holds. Each gives what full attention would give under a mask (its
*twin*, to rounding), but for `Linear`, which weighs by a feature map in the place of a softmax. While a tap
looks, the twin runs: its weights are the ones that are drawn, zeros outside the reach.
"""

from regard.attention.reach.blocks import Blocks
from regard.attention.reach.landmarks import Landmarks
from regard.attention.reach.linear import FeatureMap, Linear
from regard.attention.reach.reach import Call, Reach

__all__ = ["Blocks", "Call", "FeatureMap", "Landmarks", "Linear", "Reach"]
