"""The heart: one function, `attend`, and the parts that vary around it. Imports torch and `linear` only."""

from regard.attention.cache import Growing, Past, Static, Sums
from regard.attention.core import attend
from regard.attention.cpu.unpadded import Unpadded
from regard.attention.mask import FULL, Mask, causal, chunk, only_keys, padding, prefix, segments, window
from regard.attention.multihead import Attention
from regard.attention.position import ALiBi, Learned, RelativeBias, Rotary, Sinusoidal, TimeGaps, sinusoid
from regard.attention.reach import Blocks, Linear, Reach
from regard.attention.score import Additive, Dot, General, ScaledDot, Score
from regard.attention.tap import Replace, Site, Tap, Trace, sites, tapped

__all__ = [
    "FULL",
    "ALiBi",
    "Additive",
    "Attention",
    "Blocks",
    "Dot",
    "General",
    "Growing",
    "Learned",
    "Linear",
    "Mask",
    "Past",
    "Reach",
    "RelativeBias",
    "Replace",
    "Rotary",
    "ScaledDot",
    "Score",
    "Sinusoidal",
    "Site",
    "Static",
    "Sums",
    "Tap",
    "TimeGaps",
    "Trace",
    "Unpadded",
    "attend",
    "causal",
    "chunk",
    "only_keys",
    "padding",
    "prefix",
    "segments",
    "sinusoid",
    "sites",
    "tapped",
    "window",
]
