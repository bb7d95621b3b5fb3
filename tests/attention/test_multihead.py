"""The module against torch's own multi-head attention, and against the additive layer of the textbooks."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention import (
    FULL,
    Additive,
    ALiBi,
    Attention,
    Dot,
    General,
    Mask,
    RelativeBias,
    Rotary,
    Trace,
    causal,
    only_keys,
    padding,
    tapped,
)

B, Q, K, H, E = 2, 5, 11, 3, 7
D, D_MEMORY = H * E, 17


def torchs(
    attention: Attention, x_BQD: Tensor, memory_BKD: Tensor, lengths: list[int] | None, is_causal: bool
) -> tuple[Tensor, Tensor]:
    """torch.nn.functional.multi_head_attention_forward with the same weights; its masks say True = hidden."""
    q, k, v, o = attention.q, attention.k, attention.v, attention.o
    assert q is not None
    assert k is not None
    assert v is not None
    assert o is not None
    n_queries, n_keys = x_BQD.shape[1], memory_BKD.shape[1]
    hidden_BK = None if lengths is None else torch.arange(n_keys) >= torch.tensor(lengths)[:, None]
    out_QBD, weights_BHQK = F.multi_head_attention_forward(
        x_BQD.transpose(0, 1),
        memory_BKD.transpose(0, 1),
        memory_BKD.transpose(0, 1),
        D,
        H,
        None,
        torch.cat([q.bias, k.bias, v.bias]) if q.bias is not None else None,
        None,
        None,
        False,
        0.0,
        o.weight,
        o.bias,
        key_padding_mask=hidden_BK,
        attn_mask=torch.ones(n_queries, n_keys, dtype=torch.bool).triu(1) if is_causal else None,
        need_weights=True,
        average_attn_weights=False,
        use_separate_proj_weight=True,
        q_proj_weight=q.weight,
        k_proj_weight=k.weight,
        v_proj_weight=v.weight,
    )
    assert weights_BHQK is not None
    return out_QBD.transpose(0, 1), weights_BHQK


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("lengths", [None, [11, 4]], ids=["", "padding"])
@pytest.mark.parametrize("kind", ["self", "causal", "cross"])
def test_equals_torch(kind: str, lengths: list[int] | None, bias: bool) -> None:
    attention = Attention(D, D_MEMORY if kind == "cross" else None, n_heads=H, d_key=E, bias=bias)
    for parameter in attention.parameters():
        nn.init.normal_(parameter)
    x = torch.randn(B, Q if kind == "cross" else K, D)
    source = torch.randn(B, K, D_MEMORY) if kind == "cross" else x
    mask = causal() if kind == "causal" else FULL
    mask = mask if lengths is None else mask & padding(torch.tensor(lengths))
    memory = attention.project_kv(source) if kind == "cross" else None

    trace = Trace()
    untapped = attention(x, memory, mask=mask)
    with tapped(attention, lambda name: trace):
        explicit = attention(x, memory, mask=mask)

    out, weights = torchs(attention, x, source, lengths, kind == "causal")
    torch.testing.assert_close(untapped, out, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(explicit, out, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(trace.weights_BHQK, weights, rtol=1e-4, atol=1e-5)


class AttentionLayer(nn.Module):
    """The additive attention layer of the source texts, mask by −10⁹ and all."""

    def __init__(self, d_hidden: int) -> None:
        super().__init__()
        self.W_a = nn.Linear(d_hidden, d_hidden)
        self.v_a = nn.Parameter(torch.randn(d_hidden))

    def forward(self, states_BTD: Tensor, keep_BT: Tensor | None = None) -> tuple[Tensor, Tensor]:
        scores_BT = torch.tanh(self.W_a(states_BTD)) @ self.v_a
        if keep_BT is not None:
            scores_BT = scores_BT.masked_fill(~keep_BT, -1e9)
        weights_BT = scores_BT.softmax(dim=1)
        return (weights_BT[..., None] * states_BTD).sum(1), weights_BT


@pytest.mark.parametrize("masked", [False, True])
def test_the_additive_layer_of_the_texts_is_pooling_with_its_bias_as_query(masked: bool) -> None:
    texts = AttentionLayer(D)
    score = Additive(D)
    attention = Attention(D, project="k", score=score, bias=False)
    assert attention.k is not None
    with torch.no_grad():
        attention.k.weight.copy_(texts.W_a.weight)
        score.v_HE.copy_(texts.v_a[None])
    states_BTD = torch.randn(B, K, D)
    keep_BT = torch.arange(K) < torch.tensor([11, 4])[:, None] if masked else None
    mask = FULL if keep_BT is None else only_keys(keep_BT)
    query_B1D = texts.W_a.bias.expand(B, 1, D)

    pooled_BD, weights_BT = texts(states_BTD, keep_BT)
    trace = Trace()
    untapped = attention(query_B1D, attention.project_kv(states_BTD), mask=mask)
    with tapped(attention, lambda name: trace):
        explicit = attention(query_B1D, attention.project_kv(states_BTD), mask=mask)

    assert attention.d_out == D
    torch.testing.assert_close(untapped.squeeze(1), pooled_BD, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(explicit.squeeze(1), pooled_BD, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(trace.weights_BHQK[:, 0, 0], weights_BT, rtol=1e-5, atol=1e-6)


def test_luong_is_attention_without_matrices() -> None:
    x, states = torch.randn(B, Q, D), torch.randn(B, K, D)
    out = Attention(D, project="", score=Dot())(x, Attention(D, project="").project_kv(states))
    torch.testing.assert_close(out, (x @ states.mT).softmax(-1) @ states, rtol=1e-5, atol=1e-5)

    general = General(D, D_MEMORY)
    attention = Attention(D, D_MEMORY, project="", score=general)
    states = torch.randn(B, K, D_MEMORY)
    expected = (x @ general.weight[0] @ states.mT).softmax(-1) @ states
    torch.testing.assert_close(attention(x, attention.project_kv(states)), expected, rtol=1e-5, atol=1e-5)
    assert attention.d_out == D_MEMORY


@pytest.mark.parametrize("project", ["", "v", "o", "qk", "vo", "qkv", "qko", "qkvo"])
@pytest.mark.parametrize("n_heads", [1, 3])
def test_the_width_of_the_output_is_foretold(project: str, n_heads: int) -> None:
    attention = Attention(D, n_heads=n_heads, d_value=13, project=project)
    assert {name for name, _ in attention.named_children()} - {"score"} == set(project)
    assert attention(torch.randn(B, Q, D)).shape == (B, Q, attention.d_out)
    if "o" in project:
        assert attention.d_out == D


def test_fewer_key_heads_equal_repeated_ones() -> None:
    """A grouped-query model is a multi-head model whose neighbouring heads share keys and values."""
    grouped = Attention(30, n_heads=6, n_kv_heads=2)
    whole = Attention(30, n_heads=6)
    weights = grouped.state_dict()
    for name in ("k.weight", "k.bias", "v.weight", "v.bias"):
        weights[name] = weights[name].unflatten(0, (2, 5)).repeat_interleave(3, dim=0).flatten(0, 1)
    whole.load_state_dict(weights)
    x = torch.randn(B, K, 30)
    torch.testing.assert_close(grouped(x, mask=causal()), whole(x, mask=causal()), rtol=1e-5, atol=1e-6)


def positioned(kind: str) -> Attention:
    distance = RelativeBias(H, causal=False) if kind == "relative" else ALiBi(H) if kind == "alibi" else None
    return Attention(24, n_heads=H, rotary=Rotary(8) if kind == "rotary" else None, distance=distance)


@pytest.mark.parametrize("kind", ["rotary", "relative", "alibi"])
@pytest.mark.parametrize(
    "mask", [FULL, causal(), causal() & padding(torch.tensor([11, 4]))], ids=["none", "causal", "both"]
)
def test_positions_matter_but_only_their_distance(kind: str, mask: Mask) -> None:
    attention, x = positioned(kind), torch.randn(B, K, 24)
    positions_BT = torch.arange(K)[None]
    here = attention(x, mask=mask)
    close = {"rtol": 1e-4, "atol": 1e-5}
    torch.testing.assert_close(attention(x, mask=mask, positions_BQ=positions_BT), here)
    torch.testing.assert_close(attention(x, mask=mask, positions_BQ=positions_BT + 97), here, **close)
    assert not torch.allclose(attention(x, mask=mask, positions_BQ=2 * positions_BT), here, **close)
    with tapped(attention, lambda name: Trace()):
        torch.testing.assert_close(attention(x, mask=mask), here, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", ["none", "rotary", "alibi", "relative"])
def test_without_positions_order_is_unseen(kind: str) -> None:
    attention, x, order = positioned(kind), torch.randn(B, K, 24), torch.randperm(K)
    blind = torch.allclose(attention(x[:, order]), attention(x)[:, order], atol=1e-5)
    assert blind == (kind == "none")


def test_weights_are_dropped_in_training_only() -> None:
    attention, x = Attention(D, n_heads=H, dropout=0.5), torch.randn(B, K, D)
    assert not torch.equal(attention(x), attention(x))
    attention.eval()
    assert torch.equal(attention(x), attention(x))


def test_a_model_may_be_built_without_memory() -> None:
    with torch.device("meta"):
        attention = Attention(D, n_heads=H, score=Additive(E, H), distance=RelativeBias(H, causal=True))
    attention.to_empty(device="cpu")
    for parameter in attention.parameters():
        nn.init.constant_(parameter, torch.nan)
    for module in attention.modules():
        if list(module.parameters(recurse=False)):
            module.reset_parameters()
    assert attention(torch.randn(B, K, D)).isfinite().all()
