"""Positions. Attention by itself is blind to order; each of these gives it sight.

Positions always come as positions_BT (or T), never as one offset: left padding, unequal prompts and
caches then need no special case. `Sinusoidal` and `Learned` are added to embeddings, `Rotary` turns
queries and keys, `RelativeBias`, `TimeGaps` and `ALiBi` are added to scores.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.attention.mask import Rows


def sinusoid(positions: Tensor, d_model: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(the same): sines and cosines interleaved."""
    rates = torch.exp(
        torch.arange(0, d_model, 2, device=positions.device, dtype=torch.float32)
        * (-math.log(10000.0) / d_model)
    )
    angles = positions[..., None].to(torch.float32) * rates
    table = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)
    return table[..., :d_model]


class Sinusoidal(nn.Module):
    """The paper's fixed positions; any length."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model

    def forward(self, positions: Tensor) -> Tensor:
        return sinusoid(positions, self.d_model)


class Learned(nn.Module):
    """One trained vector per position, up to a maximum."""

    def __init__(self, max_positions: int, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(max_positions, d_model))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=self.weight.shape[1] ** -0.5)

    def forward(self, positions: Tensor) -> Tensor:
        return self.weight[positions]


class Rotary(nn.Module):
    """Turns pairs of channels by an angle that grows with position (Su et al. 2021): q·k sees distance only.

    Channels are paired by halves (i with i + E/2), as today's checkpoints lay them out.
    """

    def __init__(self, d_head: int, base: float = 10000.0) -> None:
        super().__init__()
        assert d_head % 2 == 0, "rotary positions need an even head width"
        self.d_head, self.base = d_head, base

    def forward(self, x_BHTE: Tensor, positions_BT: Tensor) -> Tensor:
        half = torch.arange(0, self.d_head, 2, device=x_BHTE.device, dtype=torch.float32)
        angles_BT = positions_BT[..., None].to(torch.float32) * self.base ** (-half / self.d_head)
        cos, sin = angles_BT.cos().to(x_BHTE.dtype)[:, None], angles_BT.sin().to(x_BHTE.dtype)[:, None]
        first, second = x_BHTE.chunk(2, dim=-1)
        return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


class RelativeBias(nn.Module):
    """A trained number per head and distance bucket, exact when near, logarithmic when far (T5)."""

    def __init__(self, n_heads: int, *, causal: bool, n_buckets: int = 32, max_distance: int = 128) -> None:
        super().__init__()
        self.causal, self.n_buckets, self.max_distance = causal, n_buckets, max_distance
        self.weight = nn.Parameter(torch.empty(n_buckets, n_heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=0.02)

    def bucket(self, ahead: Tensor) -> Tensor:
        """`ahead` = key position − query position."""
        n = self.n_buckets
        base = torch.zeros_like(ahead)
        if self.causal:
            distance = (-ahead).clamp(min=0)
        else:
            n //= 2
            base = (ahead > 0).long() * n
            distance = ahead.abs()
        exact = n // 2
        far = distance.clamp(min=exact).to(torch.float32) / exact
        log_bucket = exact + (far.log() / math.log(self.max_distance / exact) * (n - exact)).long()
        return base + torch.where(distance < exact, distance, log_bucket.clamp(max=n - 1))

    def forward(self, query_BQ: Tensor, key_BK: Tensor) -> Tensor:
        ahead_BQK = key_BK[:, None, :] - query_BQ[:, :, None]
        return self.weight[self.bucket(ahead_BQK)].permute(0, 3, 1, 2)


class TimeGaps(nn.Module):
    """A trained number per head and time between query and key, in octaves of seconds: 0, 1, 2–3, 4–7 …

    Where `RelativeBias` counts positions, this reads clocks: positions are the times, in seconds.
    """

    def __init__(self, n_heads: int, n_buckets: int = 32) -> None:
        super().__init__()
        self.n_buckets = n_buckets
        self.weight = nn.Parameter(torch.empty(n_buckets, n_heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=0.02)

    def bucket(self, gap: Tensor) -> Tensor:
        return (1 + gap.abs().double()).log2().ceil().long().clamp(max=self.n_buckets - 1)

    def forward(self, query_BQ: Tensor, key_BK: Tensor) -> Tensor:
        gap_BQK = key_BK[:, None, :] - query_BQ[:, :, None]
        return self.weight[self.bucket(gap_BQK)].permute(0, 3, 1, 2)


class ALiBi(nn.Module):
    """A fixed penalty proportional to distance, with one slope per head (Press et al. 2022)."""

    def __init__(self, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads

    @property
    def slopes(self) -> list[float]:
        """2^(−8/n), 2^(−16/n) …; between powers of two, every second one of the next power's."""
        power = 2 ** math.floor(math.log2(self.n_heads))
        slopes = [2 ** (-8 * (i + 1) / power) for i in range(power)]
        between = [2 ** (-8 * (i + 1) / (2 * power)) for i in range(2 * power)][::2]
        return slopes + between[: self.n_heads - power]

    def forward(self, query_BQ: Tensor, key_BK: Tensor) -> Tensor:
        distance_BQK = (key_BK[:, None, :] - query_BQ[:, :, None]).abs()
        slopes_H = torch.tensor(self.slopes, device=distance_BQK.device)
        return -slopes_H[:, None, None] * distance_BQK[:, None]


@dataclass(frozen=True, eq=False)
class Distances:
    """The additive scores of queries and keys that stand at these positions."""

    distance: Callable[[Tensor, Tensor], Tensor]
    query_BQ: Tensor
    key_BK: Tensor

    def __call__(self, rows: Rows) -> Tensor:
        """The scores (B or 1, H, Q, K) of some query rows."""
        return self.distance(self.query_BQ[:, rows.start : rows.stop], self.key_BK)
