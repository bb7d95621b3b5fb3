"""attend() against a loop of plain numbers, on both its paths, whole and in tiles."""

from typing import NamedTuple

import pytest
import torch
from torch import Tensor
from torch.autograd import detect_anomaly, gradcheck

from oracle.loop_attention import LoopScore, MaySee, additive, dot, general, loop_attend, scaled_dot
from oracle.made import Made
from regard.attention import (
    FULL,
    Additive,
    ALiBi,
    Dot,
    General,
    Mask,
    RelativeBias,
    ScaledDot,
    Score,
    Trace,
    attend,
    causal,
    chunk,
    core,
    only_keys,
    padding,
    prefix,
    segments,
    window,
)

B, G, K, E, W = 3, 2, 11, 7, 13
Q = 5
D_QUERY = 17  # only General takes queries that are wider than the keys
LENGTHS = [11, 4, 0]
LEFT = [0, 3, 8]
SEGMENT = [[0] * 4 + [1] * 7, [0] * 11, [0] * 2 + [1] * 3 + [2] * 6]


class Scored(NamedTuple):
    score: Score
    twin: LoopScore
    d_query: int = E


def scored(name: str, n_heads: int) -> Scored:
    match name:
        case "scaled_dot":
            return Scored(ScaledDot(), scaled_dot)
        case "dot":
            return Scored(Dot(), dot)
        case "general":
            bilinear = General(D_QUERY, E, n_heads)
            return Scored(bilinear, general(bilinear.weight), D_QUERY)
        case _:
            score = Additive(E, n_heads)
            return Scored(score, additive(score.v_HE))


SCORES = ["scaled_dot", "dot", "general", "additive"]
KEEP_LEFT_PADDED = torch.arange(K) >= torch.tensor(LEFT)[:, None]
MASKS: dict[str, tuple[Mask, MaySee]] = {
    "none": (FULL, lambda b, i, j: True),
    "causal": (causal(), lambda b, i, j: j <= i),
    "padding": (padding(torch.tensor(LENGTHS)), lambda b, i, j: j < LENGTHS[b]),
    "causal & padding": (
        causal() & padding(torch.tensor(LENGTHS)),
        lambda b, i, j: j <= i and j < LENGTHS[b],
    ),
    "window": (window(2, 1), lambda b, i, j: i - 2 <= j <= i + 1),
    "chunk": (chunk(3, left_chunks=1), lambda b, i, j: i // 3 - 1 <= j // 3 <= i // 3),
    "prefix": (prefix(torch.tensor(LENGTHS)), lambda b, i, j: j < LENGTHS[b] or j <= i),
    "segments": (segments(torch.tensor(SEGMENT)), lambda b, i, j: SEGMENT[b][i] == SEGMENT[b][j]),
    "left padding": (
        causal() & only_keys(KEEP_LEFT_PADDED),
        lambda b, i, j: LEFT[b] <= j <= i,
    ),
    "window & padding": (
        window(3) & padding(torch.tensor(LENGTHS)),
        lambda b, i, j: i - 3 <= j <= i and j < LENGTHS[b],
    ),
}
DEAD = causal() & only_keys(KEEP_LEFT_PADDED) & padding(torch.tensor(LENGTHS))


def inputs(
    n_heads: int, n_queries: int, *, d_query: int = E, d_value: int = W, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor, Tensor]:
    q = torch.randn(B, n_heads, n_queries, d_query, dtype=dtype, requires_grad=True)
    k = torch.randn(B, G, K, E, dtype=dtype, requires_grad=True)
    v = torch.randn(B, G, K, d_value, dtype=dtype, requires_grad=True)
    return q, k, v


def rows_of(bias_BHQK: Tensor) -> core.Bias:
    return lambda rows: bias_BHQK[:, :, rows.start : rows.stop]


def close(a: Tensor, b: Tensor, tolerance: float = 1e-6) -> None:
    torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance, check_dtype=False)


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("biased", [False, True], ids=["", "bias"])
@pytest.mark.parametrize("n_queries", [Q, K], ids=["fewer queries", "square"])
@pytest.mark.parametrize("group", [1, 2, 3])
@pytest.mark.parametrize("mask_name", MASKS)
@pytest.mark.parametrize("score_name", SCORES)
def test_both_paths_equal_the_loop(
    score_name: str, mask_name: str, group: int, n_queries: int, biased: bool
) -> None:
    n_heads = G * group
    score, twin, d_query = scored(score_name, n_heads)
    mask, may_see = MASKS[mask_name]
    q, k, v = inputs(n_heads, n_queries, d_query=d_query)
    bias_BHQK = torch.randn(B, n_heads, n_queries, K) if biased else None
    bias = None if bias_BHQK is None else rows_of(bias_BHQK)

    trace = Trace()
    untapped = attend(q, k, v, score=score, mask=mask, bias=bias)
    tapped = attend(q, k, v, score=score, mask=mask, bias=bias, tap=trace)
    out, weights = loop_attend(q, k, v, twin, may_see, bias_BHQK)

    close(untapped, tapped)
    close(untapped, out, 1e-5)
    close(trace.weights_BHQK, weights, 1e-5)


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("d_value", [3, 7, 13], ids=["narrow", "equal", "wide"])
def test_the_value_width_is_free(d_value: int) -> None:
    q, k, v = inputs(G, K, d_value=d_value)
    out, _ = loop_attend(q, k, v, scaled_dot, lambda b, i, j: j <= i)
    assert attend(q, k, v, mask=causal()).shape == (B, G, K, d_value)
    close(attend(q, k, v, mask=causal()), out, 1e-5)


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("score_name", SCORES)
@pytest.mark.parametrize("biased", [False, True], ids=["", "bias"])
def test_dead_rows_are_zeros_with_equal_finite_gradients(score_name: str, biased: bool) -> None:
    score, _, d_query = scored(score_name, 2 * G)
    score.double()
    bias = rows_of(torch.randn(B, 2 * G, K, K)) if biased else None
    first_seen, last_seen = (
        torch.tensor(LEFT)[:, None],
        (torch.tensor(LENGTHS)[:, None] - 1).clamp(max=torch.arange(K)),
    )
    alive_B1T1 = (first_seen <= last_seen)[:, None, :, None]
    q, k, v = inputs(2 * G, K, d_query=d_query, dtype=torch.float64)

    def gradients(tap: Trace | None) -> tuple[Tensor, ...]:
        out = attend(q, k, v, score=score, mask=DEAD, bias=bias, tap=tap)
        assert torch.equal(out.any(-1, keepdim=True), alive_B1T1.expand(B, 2 * G, K, 1))
        return torch.autograd.grad(out.square().sum(), [q, k, v, *score.parameters()])

    with pytest.warns(UserWarning, match="Anomaly Detection"):
        watch = detect_anomaly()
    with watch:
        on_both_paths = gradients(None), gradients(Trace())
    for untapped, tapped in zip(*on_both_paths, strict=True):
        assert untapped.isfinite().all()
        assert untapped.any()
        close(untapped, tapped, 1e-9)


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("tap", [None, Trace()], ids=["untapped", "tapped"])
@pytest.mark.parametrize("mask", [FULL, causal() & padding(torch.tensor([3, 0]))], ids=["none", "dead rows"])
@pytest.mark.parametrize("score_name", SCORES)
def test_gradients_are_those_of_the_function(score_name: str, mask: Mask, tap: Trace | None) -> None:
    score, _, d_query = scored(score_name, 2)
    score.double()
    q = torch.randn(2, 2, 2, d_query, dtype=torch.float64, requires_grad=True)
    k = torch.randn(2, 1, 3, E, dtype=torch.float64, requires_grad=True)
    v = torch.randn(2, 1, 3, 5, dtype=torch.float64, requires_grad=True)
    learned = tuple(score.parameters())
    assert gradcheck(
        lambda q, k, v, *_: attend(q, k, v, score=score, mask=mask, tap=tap), (q, k, v, *learned)
    )


def test_gradients_reach_a_learned_bias() -> None:
    q, k, v = (torch.randn(2, 3, 5, 2, dtype=torch.float64, requires_grad=True) for _ in range(3))
    bias = torch.randn(1, 3, 5, 5, dtype=torch.float64, requires_grad=True)
    assert gradcheck(
        lambda q, k, v, bias: attend(q, k, v, bias=rows_of(bias), mask=causal()), (q, k, v, bias)
    )


@pytest.mark.parametrize("tap", [None, Trace()], ids=["untapped", "tapped"])
def test_half_precision_takes_a_bias_in_single(tap: Trace | None) -> None:
    q, k, v = (x.bfloat16() for x in inputs(G, K))
    positions = torch.arange(K)[None]
    distance = ALiBi(G)
    out = attend(
        q, k, v, bias=lambda rows: distance(positions[:, rows.start : rows.stop], positions), tap=tap
    )
    assert out.dtype == torch.bfloat16


def test_dropout_thins_the_weights_and_keeps_their_mean() -> None:
    q, k = torch.randn(1, 2, 199, E), torch.randn(1, 2, K, E)
    identity = torch.eye(K).expand(1, 2, K, K)
    weights = attend(q, k, identity)
    thinned = attend(q, k, identity, dropout=0.25)
    kept = thinned != 0
    close(thinned[kept], weights[kept] / 0.75)
    assert kept.float().mean().item() == pytest.approx(0.75, abs=0.05)


def test_a_tap_sees_the_weights_before_dropout() -> None:
    trace = Trace()
    q, k, v = inputs(G, Q)
    attend(q, k, v, dropout=0.5, tap=trace)
    close(trace.weights_BHQK.sum(-1), torch.ones(B, G, Q))


class Tiled(NamedTuple):
    score: Score
    bias: core.Bias | None
    learned: list[Tensor]
    elements_per_row: int


def tiled(name: str) -> Tiled:
    positions = torch.arange(K)[None]

    def by_distance(distance: RelativeBias | ALiBi) -> core.Bias:
        return lambda rows: distance(positions[:, rows.start : rows.stop], positions)

    match name:
        case "relative bias":
            distance = RelativeBias(2 * G, causal=False)
            return Tiled(ScaledDot(), by_distance(distance), [distance.weight], B * 2 * G * K)
        case "ALiBi":
            return Tiled(ScaledDot(), by_distance(ALiBi(2 * G)), [], B * 2 * G * K)
        case "additive":
            score = Additive(E, 2 * G)
            return Tiled(score, None, [score.v_HE], B * 2 * G * K * E)
        case _:
            return Tiled(ScaledDot(), None, [], B * K)


@pytest.mark.parametrize("name", ["dense mask", "ALiBi", "relative bias", "additive"])
@pytest.mark.parametrize("rows_at_once", [1, 4])
def test_tiles_change_nothing(name: str, rows_at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    score, bias, learned, per_row = tiled(name)
    q, k, v = inputs(2 * G, K)

    def run() -> tuple[Tensor, ...]:
        out = attend(q, k, v, score=score, mask=DEAD, bias=bias)
        return out.detach(), *torch.autograd.grad(out.square().sum(), [q, k, v, *learned])

    whole = run()
    monkeypatch.setattr(core, "TILE_ELEMENTS", rows_at_once * per_row)
    with Made() as made:
        in_tiles = run()
    assert not made.sizes & {B * K * K, B * 2 * G * K * K, B * 2 * G * K * K * E}
    for a, b in zip(whole, in_tiles, strict=True):
        close(a, b, 1e-5)


def test_tiles_of_a_model_in_use_equal_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, v = inputs(G, K)
    with torch.no_grad():
        whole = attend(q, k, v, mask=DEAD)
        monkeypatch.setattr(core, "TILE_ELEMENTS", 1)
        close(attend(q, k, v, mask=DEAD), whole)


def test_dropout_draws_once_per_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tile is recomputed in the backward pass; it must drop the same weights again."""
    q, k = torch.randn(1, 1, K, E), torch.randn(1, 1, K, E)
    v = torch.eye(K)[None, None].requires_grad_()
    monkeypatch.setattr(core, "TILE_ELEMENTS", 2 * K)
    out = attend(q, k, v, dropout=0.5)
    (gradient,) = torch.autograd.grad(out.sum(), v)
    close(gradient, out.sum(2)[..., None].expand_as(v))


@pytest.mark.usefixtures("kernel")
def test_no_queries_give_nothing() -> None:
    q, k, v = inputs(G, 0)
    for tap in (None, Trace()):
        assert attend(q, k, v, mask=DEAD, tap=tap).shape == (B, G, 0, W)
