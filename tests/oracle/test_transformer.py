"""Our Transformer against torch.nn.Transformer with our weights copied in: logits, loss, every gradient."""

import math
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention import Attention
from regard.layers.block import Block
from regard.layers.heads import smoothed_cross_entropy
from regard.layers.stack import Stack
from regard.models import Transformer, TransformerConfig
from regard.models.widths import Widths
from tiny import DIMS, Inputs, inputs, stirred, transformer

Shared = Iterator[tuple[list[Tensor], Tensor]]
"""Our weights, stacked on their first axis, and the one of torch's that they are."""


def attention_weights(ours: Attention, theirs: nn.MultiheadAttention) -> Shared:
    assert None not in (ours.q, ours.k, ours.v, ours.o)
    yield [ours.q.weight, ours.k.weight, ours.v.weight], theirs.in_proj_weight
    yield [ours.q.bias, ours.k.bias, ours.v.bias], theirs.in_proj_bias
    yield [ours.o.weight], theirs.out_proj.weight
    yield [ours.o.bias], theirs.out_proj.bias


def norm_weights(ours: nn.LayerNorm, theirs: nn.LayerNorm) -> Shared:
    yield [ours.weight], theirs.weight
    yield [ours.bias], theirs.bias


def block_weights(ours: Block, theirs: nn.Module) -> Shared:
    yield from attention_weights(ours.self, theirs.self_attn)
    norms = [ours.self_norm, ours.ff_norm]
    if ours.cross is not None:
        yield from attention_weights(ours.cross, theirs.multihead_attn)
        norms.insert(1, ours.cross_norm)
    for number, norm in enumerate(norms, 1):
        yield from norm_weights(norm, getattr(theirs, f"norm{number}"))
    for mine, other in ((ours.ff.inner, theirs.linear1), (ours.ff.outer, theirs.linear2)):
        yield [mine.weight], other.weight
        yield [mine.bias], other.bias


def stack_weights(ours: Stack, theirs: nn.Module) -> Shared:
    for mine, other in zip(ours.layers, theirs.layers, strict=True):
        yield from block_weights(mine, other)
    if ours.norm is not None:
        yield from norm_weights(ours.norm, theirs.norm)


def twin_of(config: TransformerConfig) -> nn.Transformer:
    """torch's own has a last norm always; the paper's (post-norm) has none."""
    size = (config.d_model, config.n_heads, config.d_ff, 0.0, config.activation, config.norm_eps)
    pre = config.norm == "pre"
    layers = [
        kind(*size, batch_first=True, norm_first=pre)
        for kind in (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)
    ]
    norms = [nn.LayerNorm(config.d_model, config.norm_eps) if pre else None for _ in range(2)]
    encoder = nn.TransformerEncoder(layers[0], config.n_encoder_layers, norms[0], enable_nested_tensor=False)
    decoder = nn.TransformerDecoder(layers[1], config.n_decoder_layers, norms[1])
    return nn.Transformer(
        config.d_model, config.n_heads, custom_encoder=encoder, custom_decoder=decoder, batch_first=True
    )


def positions(length: int, d_model: int) -> Tensor:
    table = torch.zeros(length, d_model)
    for place in range(length):
        for i in range(0, d_model, 2):
            angle = place / 10000 ** (i / d_model)
            table[place, i], table[place, i + 1] = math.sin(angle), math.cos(angle)
    return table


def twin_logits(model: Transformer, twin: nn.Transformer, given: Inputs) -> Tensor:
    d_model = twin.d_model
    (n_keys, length) = given.source_BK.shape[1], given.target_BT.shape[1]
    assert model.embed_source is not None
    source = model.embed_source.weight[given.source_BK] * math.sqrt(d_model) + positions(n_keys, d_model)
    target = model.embed_target.weight[given.target_BT] * math.sqrt(d_model) + positions(length, d_model)
    absent = torch.arange(n_keys) >= given.lengths_B[:, None]
    future = torch.ones(length, length, dtype=torch.bool).triu(1)
    hidden = twin(
        source, target, tgt_mask=future, src_key_padding_mask=absent, memory_key_padding_mask=absent
    )
    output = model.embed_target.weight if model.output is None else model.output.weight
    return hidden @ output.T


@pytest.mark.parametrize("tie_embeddings", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_equals_torch(norm: str, activation: str, tie_embeddings: bool) -> None:
    config = transformer(norm=norm, activation=activation, tie_embeddings=tie_embeddings, norm_eps=1e-3)
    model = stirred(config.build(DIMS)).double().train()
    twin = twin_of(config).double().train()
    shared = [
        *stack_weights(model.encoder, twin.encoder),
        *stack_weights(model.decoder, twin.decoder),
    ]
    assert {id(theirs) for _, theirs in shared} == {id(theirs) for theirs in twin.parameters()}
    with torch.no_grad():
        for ours, theirs in shared:
            theirs.copy_(torch.cat(ours))

    given = inputs()
    labels_BT = torch.randint(1, DIMS.target["vocab"], given.target_BT.shape)
    keep_BT = torch.arange(given.target_BT.shape[1]) < torch.tensor([5, 2, 1, 3])[:, None]

    expected_BTV = twin_logits(model, twin, given)
    torch.testing.assert_close(model(*given.pairs).view_as(expected_BTV), expected_BTV, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(model(*given.pairs, keep_BT), expected_BTV[keep_BT], rtol=1e-6, atol=1e-6)

    smoothing = 0.1
    loss = model(*given.pairs, keep_BT, smoothed_cross_entropy(labels_BT[keep_BT], smoothing))
    logits_NV, labels_N = expected_BTV[keep_BT], labels_BT[keep_BT]
    expected = F.cross_entropy(logits_NV, labels_N, reduction="sum", label_smoothing=smoothing)
    torch.testing.assert_close(loss[0], expected, rtol=1e-6, atol=0)
    torch.testing.assert_close(
        loss[1], F.cross_entropy(logits_NV, labels_N, reduction="sum"), rtol=1e-6, atol=0
    )

    embeddings = [
        p for name, p in model.named_parameters() if name.split(".")[0] not in ("encoder", "decoder")
    ]
    by_twin = torch.autograd.grad(expected, [*(theirs for _, theirs in shared), *embeddings])
    ours_flat = [p for ours, _ in shared for p in ours]
    by_us = list(torch.autograd.grad(loss[0], [*ours_flat, *embeddings]))
    for (ours, _), theirs in zip(shared, by_twin, strict=False):
        mine = torch.cat([by_us.pop(0) for _ in ours])
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(by_us, list(by_twin[len(shared) :]), rtol=1e-5, atol=1e-6)


def test_swiglu_is_what_shazeer_wrote() -> None:
    """FFN(x) = (Swish(x W) ⊙ x V) W₂ (2020), with biases where the config asks for them."""
    ff = transformer(activation="swiglu").build(DIMS).encoder.layers[0].ff
    x = torch.randn(3, 12)
    gate, inner = ff.gate(x), ff.inner(x)
    torch.testing.assert_close(ff(x), ff.outer(gate * torch.sigmoid(gate) * inner))


def test_presets_are_the_papers() -> None:
    """Table 3 of the paper: base has 65 M parameters and big 213 M, with a vocabulary of about 37,000."""
    for preset, millions in (("base", 65), ("big", 213)):
        with torch.device("meta"):
            model = TransformerConfig(preset=preset).build(
                Widths({"vocab": 37_000}, {"vocab": 37_000}, shared=True)
            )
        assert sum(p.numel() for p in model.parameters()) / 1e6 == pytest.approx(millions, rel=0.04)
    tiny = TransformerConfig(preset="tiny", d_ff=300)
    assert (tiny.d_model, tiny.n_heads, tiny.n_encoder_layers, tiny.n_decoder_layers) == (128, 4, 4, 4)
    assert tiny.d_ff == 300, "a field given beside the preset wins"
    assert TransformerConfig(preset="tiny").d_ff == 256
