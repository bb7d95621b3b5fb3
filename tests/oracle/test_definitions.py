"""Formulas of the papers, evaluated number by number, against what the project computes with."""

import cmath
import math
from fractions import Fraction

import pytest
import torch
from torch import nn

from regard.attention import ALiBi, RelativeBias, Rotary, sinusoid


@pytest.mark.parametrize("eps", [1e-5, 1e-3])
def test_layer_norm(eps: float) -> None:
    """(x − mean) / √(variance + ε) · gain + bias, with the biased variance (divided by n, not n − 1)."""
    rows, width = 3, 7
    norm = nn.LayerNorm(width, eps)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    x = torch.randn(rows, width) * 0.1  # small, so that ε matters
    gain, shift, out = norm.weight.tolist(), norm.bias.tolist(), norm(x).tolist()
    for row, numbers in enumerate(x.tolist()):
        mean = sum(numbers) / width
        variance = sum((number - mean) ** 2 for number in numbers) / width
        for i, number in enumerate(numbers):
            expected = (number - mean) / math.sqrt(variance + eps) * gain[i] + shift[i]
            assert out[row][i] == pytest.approx(expected, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize(("n_positions", "d_model"), [(50, 128), (11, 7)])
def test_sinusoidal_positions(n_positions: int, d_model: int) -> None:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(the same); an odd width ends on a sine."""
    table = sinusoid(torch.arange(n_positions), d_model).tolist()
    for position in range(n_positions):
        for channel in range(d_model):
            angle = position / 10000 ** ((channel - channel % 2) / d_model)
            expected = math.cos(angle) if channel % 2 else math.sin(angle)
            assert table[position][channel] == pytest.approx(expected, abs=1e-5)


def test_sinusoids_hold_far_out() -> None:
    position, d_model = 9973, 16
    row = sinusoid(torch.tensor(position), d_model).tolist()
    for channel in range(d_model):
        angle = position / 10000 ** ((channel - channel % 2) / d_model)
        expected = math.cos(angle) if channel % 2 else math.sin(angle)
        assert row[channel] == pytest.approx(expected, abs=2e-3)


def test_rotary_is_a_complex_multiplication() -> None:
    """Channels i and i + E/2 are one complex number, turned by position · base^(−2i/E)."""
    width, n_positions, base = 6, 11, 500.0
    x = torch.randn(1, 1, n_positions, width)
    turned = Rotary(width, base)(x, torch.arange(n_positions)[None])[0, 0].tolist()
    for position, numbers in enumerate(x[0, 0].tolist()):
        for i in range(width // 2):
            pair = complex(numbers[i], numbers[i + width // 2])
            expected = pair * cmath.exp(1j * position * base ** (-2 * i / width))
            got = complex(turned[position][i], turned[position][i + width // 2])
            assert got == pytest.approx(expected, abs=1e-5)


def test_rotary_products_see_distance_only() -> None:
    rotary, q, k = Rotary(8), torch.randn(1, 1, 1, 8), torch.randn(1, 1, 1, 8)

    def product(query: int, key: int) -> float:
        return (rotary(q, torch.tensor([[query]])) * rotary(k, torch.tensor([[key]]))).sum().item()

    for distance in (-5, 0, 1, 13):
        here = product(20, 20 + distance)
        assert [product(at, at + distance) for at in (7, 100, 331)] == pytest.approx([here] * 3, abs=1e-4)
    assert product(20, 21) != pytest.approx(product(20, 22), abs=1e-3)


def test_alibi_slopes_of_eight_heads() -> None:
    assert ALiBi(8).slopes == [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]


@pytest.mark.parametrize("n_heads", [1, 2, 3, 4, 5, 6, 7, 12, 16, 17])
def test_alibi_slopes_follow_the_papers_rule(n_heads: int) -> None:
    """A geometric sequence from 2^(−8/n) for a power of two n; else that of the power below, and then
    every second slope of the power above."""

    def geometric(n: int) -> list[float]:
        return [2 ** (-8 * head / n) for head in range(1, n + 1)]

    below = max(power for power in (1, 2, 4, 8, 16) if power <= n_heads)
    expected = geometric(below) + geometric(2 * below)[0::2][: n_heads - below]
    assert ALiBi(n_heads).slopes == pytest.approx(expected)


def t5_bucket(ahead: int, n_buckets: int, max_distance: int, *, causal: bool) -> int:
    """Without logarithms: the log bucket is the number of steps of the geometric ladder that are climbed.

    Half of the buckets are exact; the other half climb from there to `max_distance` in equal ratios.
    """
    first = 0
    if not causal:
        n_buckets //= 2
        first = n_buckets if ahead > 0 else 0
    distance = max(0, -ahead) if causal else abs(ahead)
    exact = n_buckets // 2
    if distance < exact:
        return first + distance
    steps = n_buckets - exact
    climbed = sum(
        Fraction(distance, exact) ** steps >= Fraction(max_distance, exact) ** step
        for step in range(1, steps)
    )
    return first + exact + climbed


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("n_buckets", "max_distance"), [(32, 128), (32, 1000), (12, 20)])
def test_t5_buckets(n_buckets: int, max_distance: int, causal: bool) -> None:
    distance = RelativeBias(1, causal=causal, n_buckets=n_buckets, max_distance=max_distance)
    ahead = range(-1200, 1201)
    expected = [t5_bucket(a, n_buckets, max_distance, causal=causal) for a in ahead]
    assert distance.bucket(torch.tensor(ahead)).tolist() == expected
    assert max(expected) == n_buckets - 1
