"""Attention with a reach against full attention under a mask of plain loops."""

from collections.abc import Callable
from functools import cache

import pytest
import torch
from torch import Tensor, nn

from oracle.made import Made
from regard.attention import (
    FULL,
    Attention,
    Blocks,
    Growing,
    Linear,
    Mask,
    Reach,
    RelativeBias,
    Rotary,
    ScaledDot,
    Sums,
    Trace,
    causal,
    padding,
    segments,
    tapped,
)
from regard.attention.mask import Chunk, Dense, Window
from regard.attention.reach import Call, Landmarks
from regard.attention.reach.linear import features

B, T, D, H = 2, 131, 12, 3
LENGTHS = torch.tensor([T, 97])
May = Callable[[int, int], bool]


def near(left: int, right: int, dilation: int = 1, n_global: int = 0) -> May:
    def may(i: int, j: int) -> bool:
        steps = (i - j) / dilation
        return (-right <= steps <= left and steps == int(steps)) or min(i, j) < n_global

    return may


BANDS: dict[str, tuple[Reach, May]] = {
    "window": (Blocks(Window(17, 17)), near(17, 17)),
    "one side": (Blocks(Window(5, 0)), near(5, 0)),
    "uneven": (Blocks(Window(3, 19)), near(3, 19)),
    "dilated": (Blocks(Window(5, 2, 3)), near(5, 2, 3)),
    "global": (Blocks(Window(7, 2, 1, 4)), near(7, 2, 1, 4)),
    "dilated and global": (Blocks(Window(4, 4, 2, 5)), near(4, 4, 2, 5)),
    "all global": (Blocks(Window(1, 1, 1, 1000)), near(1, 1, 1, 1000)),
    "chunks": (Blocks(Chunk(13, 2)), lambda i, j: 0 <= i // 13 - j // 13 <= 2),
    "overlapping": (Blocks(Chunk(7, 1, 1)), lambda i, j: abs(i // 7 - j // 7) <= 1),
    "own chunk": (Blocks(Chunk(11, 0)), lambda i, j: i // 11 == j // 11),
}
each = pytest.mark.parametrize("name", BANDS)
both = pytest.mark.parametrize("past_alone", [True, False], ids=["causal", "both ways"])


def attention(reach: Reach | None, **changes: object) -> Attention:
    torch.manual_seed(3)
    made = Attention(D, n_heads=H, reach=reach, **changes).double()  # type: ignore[arg-type]
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.4)
    return made


def attended(made: Attention, x_BTD: Tensor, mask: Mask) -> tuple[Tensor, ...]:
    """The output at real positions, and the gradients of input and weights."""
    x_BTD = x_BTD.detach().requires_grad_()
    out_BTD = made.self_attend(x_BTD, mask=mask)[0]
    out_BTD = out_BTD * (torch.arange(out_BTD.shape[1]) < LENGTHS[: len(x_BTD), None])[..., None]
    gradients = torch.autograd.grad(out_BTD.square().sum(), [x_BTD, *made.parameters()])
    return out_BTD.detach(), *gradients


def same(ours: tuple[Tensor, ...], theirs: tuple[Tensor, ...]) -> None:
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-7, atol=1e-9)


@cache
def loop_mask(name: str) -> Mask:
    may = BANDS[name][1]
    keep_QK = torch.tensor([[may(i, j) for j in range(T)] for i in range(T)])
    return Mask((Dense(keep_QK[None, None]),))


def masked(past_alone: bool) -> Mask:
    return (causal() if past_alone else FULL) & padding(LENGTHS)


@both
@each
def test_a_band_is_its_masked_twin(name: str, past_alone: bool) -> None:
    reach = BANDS[name][0]
    x_BTD = torch.randn(B, T, D, dtype=torch.double)
    ours = attended(attention(reach), x_BTD, masked(past_alone))
    same(ours, attended(attention(None), x_BTD, masked(past_alone) & loop_mask(name)))


@each
def test_distances_and_turns_are_those_of_the_text(name: str) -> None:
    reach = BANDS[name][0]
    x_BTD = torch.randn(B, T, D, dtype=torch.double)
    torch.manual_seed(5)
    distance = RelativeBias(H, causal=False).double()
    settings = {"distance": distance, "rotary": Rotary(D // H), "n_kv_heads": 1}
    same(
        attended(attention(reach, **settings), x_BTD, masked(False)),
        attended(attention(None, **settings), x_BTD, masked(False) & loop_mask(name)),
    )


@each
def test_times_that_differ_between_rows_are_their_rows_own(name: str) -> None:
    reach = BANDS[name][0]
    x_BTD, times_BT = torch.randn(B, T, D, dtype=torch.double), torch.randint(0, 40, (B, T))
    distance = RelativeBias(H, causal=False).double()
    ours, twin = attention(reach, distance=distance), attention(None, distance=distance)
    twin_mask = padding(LENGTHS) & loop_mask(name)
    torch.testing.assert_close(
        ours.self_attend(x_BTD, mask=padding(LENGTHS), positions_BT=times_BT)[0][1, :97],
        twin.self_attend(x_BTD, mask=twin_mask, positions_BT=times_BT)[0][1, :97],
    )


REACHES = {name: reach for name, (reach, _) in BANDS.items()} | {
    "linear": Linear("elu", 16),
    "linear, sharp": Linear("softmax", 32),
    "landmarks": Landmarks(8, 3),
    "segments": Blocks(Chunk(16, 1), cuts_gradients=True),
}
each_reach = pytest.mark.parametrize("reach", REACHES.values(), ids=REACHES)


@both
@each_reach
def test_tapped_is_untapped(reach: Reach, past_alone: bool) -> None:
    x_BTD = torch.randn(B, T, D, dtype=torch.double)
    made, trace = attention(reach), Trace()
    with torch.no_grad():
        untapped = made.self_attend(x_BTD, mask=masked(past_alone))[0]
        with tapped(made, lambda name: trace):
            observed = made.self_attend(x_BTD, mask=masked(past_alone))[0]
    torch.testing.assert_close(untapped[0], observed[0])
    torch.testing.assert_close(untapped[1, :97], observed[1, :97])
    assert trace.weights_BHQK.shape == (B, H, T, T)
    torch.testing.assert_close(trace.weights_BHQK[0].sum(-1), torch.ones(H, T, dtype=torch.double))


@both
@each_reach
def test_alone_is_in_a_batch(reach: Reach, past_alone: bool) -> None:
    x_BTD = torch.randn(B, T, D, dtype=torch.double)
    made = attention(reach)
    together = made.self_attend(x_BTD, mask=masked(past_alone))[0]
    single = made.self_attend(
        x_BTD[1:, :97], mask=(causal() if past_alone else FULL) & padding(torch.tensor([97]))
    )[0]
    torch.testing.assert_close(together[1, :97], single[0])


@each_reach
def test_step_by_step_is_the_whole(reach: Reach) -> None:
    """With no more of the past than `lasts` says is needed."""
    made, n = attention(reach, rotary=Rotary(D // H)), 61
    x_BTD = torch.randn(B, n, D, dtype=torch.double)
    whole_BTD = made.self_attend(x_BTD, mask=causal())[0]
    past, sizes = None, set()
    for place in range(n):
        step_B1D, past = made.self_attend(
            x_BTD[:, place : place + 1], past, mask=causal(), positions_BT=torch.tensor([[place]])
        )
        torch.testing.assert_close(step_B1D, whole_BTD[:, place : place + 1])
        if isinstance(past, Growing):
            assert past.positions_BK is not None
            past = past.slots(reach.lasts(torch.tensor(place + 1), past.positions_BK[0]).nonzero().squeeze(1))
            sizes.add(past.k_BGKE.shape[2])
    if isinstance(past, Sums) or reach is REACHES["all global"] or reach is REACHES["landmarks"]:
        return
    assert max(sizes) < 40, "nothing is kept that will not be seen again"


@pytest.mark.parametrize("past_alone", [True, False])
@pytest.mark.parametrize("kind", ["elu", "softmax"])
def test_linear_attention_is_the_quotient_of_its_sums(kind: str, past_alone: bool) -> None:
    q, k, v = (torch.randn(7, 5, dtype=torch.double) for _ in range(3))
    made = Attention(5, project="").double()
    made.reach = Linear(kind, 3)  # type: ignore[arg-type]
    ours = made.reach.attend(
        q[None, None],
        Growing(k[None, None], v[None, None]),
        None,
        call_of(causal() if past_alone else FULL),
    )[0]
    for i in range(7):
        weights = [
            float(features(q[i], kind) @ features(k[j], kind)) if j <= i or not past_alone else 0.0  # type: ignore[arg-type]
            for j in range(7)
        ]
        expected = sum(w * v[j] for j, w in enumerate(weights)) / sum(weights)
        torch.testing.assert_close(ours[0, 0, i], expected)


def call_of(mask: Mask) -> Call:
    return Call(ScaledDot(), mask, None, torch.arange(7)[None], None, 0.0)


def test_landmarks_pick_by_the_mean_key() -> None:
    """Against loops: own chunk to itself, and of the chunks before the two whose mean fits best."""
    size, n = 4, 30
    q, k, v = (torch.randn(n, 5, dtype=torch.double) for _ in range(3))
    ours = Landmarks(size, 2)._grouped(
        q[None, None] / 5**0.5, k[None, None], v[None, None], None, is_causal=True
    )[0, 0]
    for i in range(n):
        fits = [(float(q[i] @ k[c * size : c * size + size].mean(0)), c) for c in range(i // size)]
        chunks = {c for _, c in sorted(fits)[-2:]} | {i // size}
        seen = [j for j in range(i + 1) if j // size in chunks]
        weights = torch.softmax(q[i] @ k[seen].T / 5**0.5, -1)
        torch.testing.assert_close(ours[i], weights @ v[seen])


@both
def test_gradients_of_landmarks_are_those_of_the_mask_they_chose(past_alone: bool) -> None:
    x_BTD, made, trace = torch.randn(B, T, D, dtype=torch.double), attention(Landmarks(8, 3)), Trace()
    with tapped(made, lambda name: trace):
        made.self_attend(x_BTD, mask=masked(past_alone))
    twin_mask = masked(past_alone) & Mask((Dense(trace.weights_BHQK > 0),))
    twin = attention(None)
    same(attended(made, x_BTD, masked(past_alone)), attended(twin, x_BTD, twin_mask))


def test_nothing_is_learnt_through_the_memory_of_segments() -> None:
    size, n = 16, 64
    made = attention(Blocks(Chunk(size, 1), cuts_gradients=True))
    x_BTD = torch.randn(1, n, D, dtype=torch.double, requires_grad=True)
    out_BTD = made.self_attend(x_BTD, mask=causal())[0]
    (through_BTD,) = torch.autograd.grad(out_BTD[:, 2 * size :].sum(), x_BTD, retain_graph=True)
    assert not through_BTD[:, : 2 * size].any()
    assert through_BTD[:, 2 * size :].any()
    twin = attention(Blocks(Chunk(size, 1)))
    twin_BTD = twin.self_attend(x_BTD, mask=causal())[0]
    torch.testing.assert_close(out_BTD, twin_BTD)
    (through_twin_BTD,) = torch.autograd.grad(twin_BTD[:, 2 * size :].sum(), x_BTD)
    assert through_twin_BTD[:, size : 2 * size].any(), "a chunk that is no memory is learnt through"


@pytest.mark.parametrize(
    ("reach", "other"), [(Linear(), Blocks(Window(3, 0))), (Blocks(Window(3, 0)), Linear())]
)
def test_a_cache_of_another_reach_is_refused(reach: Reach, other: Reach) -> None:
    x_B1D, place = torch.randn(1, 1, D, dtype=torch.double), torch.tensor([[0]])
    _, past = attention(reach).self_attend(x_B1D, positions_BT=place)
    with pytest.raises(ValueError, match="cannot be continued"):
        attention(other).self_attend(x_B1D, past, positions_BT=place + 1)


@each_reach
def test_other_masks_hold_as_well(reach: Reach) -> None:
    """What blocks cannot take, such as packed documents, runs under the mask."""
    x_BTD, segment_BT = torch.randn(B, T, D, dtype=torch.double), torch.arange(T)[None].expand(B, -1) // 50
    made = attention(reach)
    changed_BTD = x_BTD.clone()
    changed_BTD[:, :50] += 1
    outs = [made.self_attend(x, mask=causal() & segments(segment_BT))[0] for x in (x_BTD, changed_BTD)]
    if not isinstance(reach, Landmarks):  # whose choice is made before the mask
        assert torch.equal(outs[0][:, 50:100], outs[1][:, 50:100])
    assert not torch.equal(outs[0][:, :50], outs[1][:, :50])


def test_work_grows_with_the_band_and_not_with_the_square() -> None:
    n = 4096
    made = nn.ModuleList([attention(Blocks(Window(16, 0))), attention(Linear())])
    with Made() as tensors, torch.no_grad():
        for one in made:
            one.self_attend(torch.randn(1, n, D, dtype=torch.double), mask=causal())  # type: ignore[operator]
    assert max(tensors.sizes) < n * n / 8
