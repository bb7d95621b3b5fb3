"""Attending to remembered keys equals attending to all at once, whatever the positions, heads and pieces."""

import pytest
import torch
from torch import Tensor

from regard.attention import (
    ALiBi,
    Attention,
    Growing,
    Mask,
    RelativeBias,
    Rotary,
    Static,
    causal,
    chunk,
    only_keys,
    padding,
    prefix,
    window,
)

B, T, H, E = 3, 11, 6, 4
D = 13
CAUSAL = causal()
KINDS = ["none", "rotary", "relative", "alibi"]


def attention(kind: str, n_kv_heads: int = H) -> Attention:
    distance: RelativeBias | ALiBi | None = None
    if kind == "relative":
        distance = RelativeBias(H, causal=True, n_buckets=7, max_distance=9)
        torch.nn.init.normal_(distance.weight)
    elif kind == "alibi":
        distance = ALiBi(H)
    return Attention(
        D,
        n_heads=H,
        n_kv_heads=n_kv_heads,
        d_key=E,
        d_value=5,
        rotary=Rotary(E) if kind == "rotary" else None,
        distance=distance,
    )


def in_pieces(
    module: Attention, x_BTD: Tensor, lengths: list[int], positions_BT: Tensor | None, mask: Mask = CAUSAL
) -> Tensor:
    past: Growing | None = None
    outs, start = [], 0
    for length in lengths:
        piece = slice(start, start + length)
        positions = None if positions_BT is None else positions_BT[:, piece]
        new = module.project_kv(x_BTD[:, piece], positions)
        past = new if past is None else past.append(new)
        outs.append(module(x_BTD[:, piece], past, mask=mask, positions_BQ=positions))
        start += length
    assert past is not None
    assert past.k_BGKE.shape == (B, module.n_kv_heads, T, E)
    assert past.v_BGKW.shape == (B, module.n_kv_heads, T, 5)
    return torch.cat(outs, dim=1)


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("lengths", [[1] * T, [5, 6], [4, 1, 3, 1, 2]], ids=["steps", "blocks", "mixed"])
@pytest.mark.parametrize("n_kv_heads", [6, 3, 1])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [1, B], ids=["positions for all", "positions by row"])
def test_cached_equals_full(kind: str, n_kv_heads: int, lengths: list[int], rows: int) -> None:
    module, x = attention(kind, n_kv_heads), torch.randn(B, T, D)
    positions_BT = torch.arange(T).expand(rows, -1)
    close(in_pieces(module, x, lengths, positions_BT), module(x, mask=causal()))


@pytest.mark.parametrize("kind", ["none", "relative", "alibi"])
def test_without_positions_the_queries_are_the_last_keys(kind: str) -> None:
    module, x = attention(kind), torch.randn(B, T, D)
    close(in_pieces(module, x, [3, 1, 7], None), module(x, mask=causal()))


@pytest.mark.parametrize(
    "mask", [window(3), prefix(torch.tensor([4, 0, 5])), chunk(5, 1)], ids=["window", "prefix", "chunk"]
)
def test_masks_follow_the_cache(mask: Mask) -> None:
    """What sees ahead (a prefix, a chunk) sees no further than its own piece, as in prompts and streams."""
    module, x = attention("rotary"), torch.randn(B, T, D)
    full = module(x, mask=mask)
    assert not torch.allclose(full, module(x, mask=CAUSAL))
    close(in_pieces(module, x, [5, 5, 1], torch.arange(T)[None], mask), full)


@pytest.mark.parametrize("kind", KINDS)
def test_left_padding_changes_nothing(kind: str) -> None:
    """Unequal prompts, padded on the left and continued step by step, equal each prompt alone."""
    module, left = attention(kind), torch.tensor([0, 3, 7])
    x = torch.randn(B, T, D)
    positions_BT = (torch.arange(T) - left[:, None]).clamp(min=0)
    past = module.project_kv(x[:, :8], positions_BT[:, :8])
    for t in range(8, T):
        past = past.append(module.project_kv(x[:, t : t + 1], positions_BT[:, t : t + 1]))
    keep = only_keys(torch.arange(T) >= left[:, None])
    last = module(x[:, -1:], past, mask=causal() & keep, positions_BQ=positions_BT[:, -1:])
    for row, start in enumerate(left.tolist()):
        alone = module(x[row : row + 1, start:], mask=causal())
        close(last[row], alone[0, -1:])


def test_beams_share_the_keys_of_their_source() -> None:
    sources, beams, K = 3, 5, 7
    module = Attention(D, 17, n_heads=H, n_kv_heads=2, d_key=E, d_value=5)
    memory, lengths_B = module.project_kv(torch.randn(sources, K, 17)), torch.tensor([7, 2, 0])
    x = torch.randn(sources * beams, 1, D)
    every = torch.arange(sources).repeat_interleave(beams)
    repeated = module(x, memory.select(every), mask=padding(lengths_B[every]))
    shared = module(x, memory, mask=padding(lengths_B))
    assert shared.shape == (sources * beams, 1, D)
    close(shared, repeated)


@pytest.mark.parametrize("kind", ["rotary", "relative", "alibi"])
def test_beams_have_no_positions(kind: str) -> None:
    module = attention(kind)
    with pytest.raises(AssertionError, match="one position"):
        module(torch.randn(2 * B, 1, D), module.project_kv(torch.randn(B, T, D)))


@pytest.mark.parametrize("rows", [1, B])
@pytest.mark.parametrize("kind", KINDS)
def test_selected_hypotheses_continue_as_their_own(kind: str, rows: int) -> None:
    module, x, chosen = attention(kind), torch.randn(B, T, D), torch.tensor([2, 0, 2, 1, 1])
    positions_BT = torch.arange(T).expand(rows, -1)
    past = module.project_kv(x[:, :-1], positions_BT[:, :-1]).select(chosen)
    assert isinstance(past, Growing)
    last = x[chosen, -1:]
    last_positions = positions_BT[:, -1:] if rows == 1 else positions_BT[chosen, -1:]
    past = past.append(module.project_kv(last, last_positions))
    continued = module(last, past, mask=causal(), positions_BQ=last_positions)
    close(continued, module(x, mask=causal())[chosen, -1:])


def test_select_keeps_the_kind_and_the_rows() -> None:
    memory = Static(torch.randn(B, 2, 5, E), torch.randn(B, 2, 5, 7), torch.arange(15).view(B, 5))
    kept = memory.select(torch.tensor([2, 0]))
    assert type(kept) is Static
    assert torch.equal(kept.k_BGKE, memory.k_BGKE[[2, 0]])
    assert torch.equal(kept.v_BGKW, memory.v_BGKW[[2, 0]])
    assert kept.positions_BK is not None
    assert kept.positions_BK.tolist() == [[10, 11, 12, 13, 14], [0, 1, 2, 3, 4]]


def test_positions_are_given_always_or_never() -> None:
    module, x = attention("alibi"), torch.randn(B, T, D)
    with pytest.raises(AssertionError, match="always or never"):
        module.project_kv(x, torch.arange(T)[None]).append(module.project_kv(x))


def test_appending_leaves_the_past_alone() -> None:
    module, x = attention("none"), torch.randn(B, T, D)
    past = module.project_kv(x)
    before = past.k_BGKE.clone()
    grown = past.append(module.project_kv(x[:, :1]))
    assert grown.k_BGKE.shape[2] == T + 1
    assert torch.equal(past.k_BGKE, before)
