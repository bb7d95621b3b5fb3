"""ViT and DeiT against transformers' with their weights copied in; patches, stems and positions by hand."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import DeiTConfig, DeiTForImageClassification, ViTForImageClassification
from transformers import ViTConfig as TheirConfig

from regard.layers.pixels import ConvStem, Normalise, Patches
from regard.models import Classifier, ClassifierConfig, Widths
from regard.models.encoders.cnn import CNNConfig, Residual
from regard.models.encoders.vit import Plane, ViT, ViTConfig

MEAN, DEVIATION = [101.0, 131.0, 83.0], [61.0, 47.0, 53.0]
SHAPES: dict[str, dict[str, Any]] = {
    "wide": {"d_model": 12, "n_heads": 3, "d_ff": 11, "n_layers": 2, "patch": 4},
    "one head, odd patch": {
        "d_model": 7,
        "n_heads": 1,
        "d_ff": 31,
        "n_layers": 1,
        "patch": 3,
        "norm_eps": 1e-3,
    },
    "no biases": {"d_model": 10, "n_heads": 5, "d_ff": 13, "n_layers": 3, "patch": 6, "activation": "relu"},
}
PARTS = {
    "self.q": "attention.q_proj",
    "self.k": "attention.k_proj",
    "self.v": "attention.v_proj",
    "self.o": "attention.o_proj",
    "self_norm": "layernorm_before",
    "ff_norm": "layernorm_after",
    "ff.inner": "mlp.fc1",
    "ff.outer": "mlp.fc2",
}
"""Written out by hand here, so that the bridge's table is not its own witness."""


def width(rows: int, columns: int) -> dict[str, Any]:
    return {"rows": rows, "columns": columns, "channels": 3, "mean": MEAN, "deviation": DEVIATION}


def copy(vit: ViT, their: Any) -> None:
    """Their weights into ours."""
    embeddings = their.embeddings
    tokens = [embeddings.cls_token[0]]
    if hasattr(embeddings, "distillation_token"):
        tokens.append(embeddings.distillation_token[0])
    projection = embeddings.patch_embeddings.projection
    pairs: list[tuple[Any, Tensor]] = [
        (vit.class_tokens, torch.cat(tokens)),
        (vit.position.weight, embeddings.position_embeddings[0]),
        (vit.stem.project.weight, projection.weight.permute(0, 2, 3, 1).flatten(1)),
        (vit.stem.project.bias, projection.bias),
    ]
    modules: list[tuple[nn.Module, nn.Module]] = [(vit.stack.norm, their.layernorm)]
    for mine, layer in zip(vit.stack.layers, their.layers, strict=True):
        modules += [(mine.get_submodule(a), layer.get_submodule(b)) for a, b in PARTS.items()]
    for mine, layer in modules:
        pairs += [(mine.weight, layer.weight), (mine.bias, layer.bias)]
    with torch.no_grad():
        for ours, theirs in pairs:
            ours.copy_(theirs)


@pytest.mark.parametrize("distilled", [False, True])
@pytest.mark.parametrize("name", SHAPES)
def test_logits_and_gradients_are_theirs(name: str, distilled: bool) -> None:
    torch.manual_seed(3)
    config = ViTConfig(**SHAPES[name], class_tokens=2 if distilled else 1)
    rows, columns = 4 * config.patch, 4 * config.patch if distilled else 2 * config.patch
    their_config = (DeiTConfig if distilled else TheirConfig)(
        hidden_size=config.d_model,
        num_hidden_layers=config.n_layers,
        num_attention_heads=config.n_heads,
        intermediate_size=config.d_ff,
        hidden_act=config.activation,
        layer_norm_eps=config.norm_eps,
        image_size=rows if distilled else (rows, columns),
        patch_size=config.patch,
        num_labels=5,
    )
    their: Any = (DeiTForImageClassification if distilled else ViTForImageClassification)(their_config).eval()
    nn.init.normal_(their.classifier.bias)
    ours = Classifier(
        ClassifierConfig(encoder=config, pooling="first", dropout=0.0),
        Widths(width(rows, columns), {"classes": 5}),
    ).eval()
    copy(ours.encoder, their.deit if distilled else their.vit)
    with torch.no_grad():
        ours.output.weight.copy_(their.classifier.weight)
        ours.output.bias.copy_(their.classifier.bias)
    pixels_BYXC = torch.randint(256, (7, rows, columns, 3), dtype=torch.uint8)
    values_BCYX = ((pixels_BYXC - torch.tensor(MEAN)) / torch.tensor(DEVIATION)).permute(0, 3, 1, 2)
    logits_BC, theirs_BC = ours({"pixels": pixels_BYXC}), their(values_BCYX).logits
    torch.testing.assert_close(logits_BC, theirs_BC, atol=1e-5, rtol=1e-5)
    for logits in (logits_BC, theirs_BC):
        F.cross_entropy(logits, torch.arange(7) % 5).backward()
    their_vit = their.deit if distilled else their.vit
    torch.testing.assert_close(
        ours.encoder.position.weight.grad,
        their_vit.embeddings.position_embeddings.grad[0],
        atol=1e-5,
        rtol=1e-4,
    )
    grad_DCPP = their_vit.embeddings.patch_embeddings.projection.weight.grad
    torch.testing.assert_close(
        ours.encoder.stem.project.weight.grad, grad_DCPP.permute(0, 2, 3, 1).flatten(1), atol=1e-5, rtol=1e-4
    )


def test_patches_are_cut_in_reading_order() -> None:
    patches = Patches(3, 2, 5)
    x_BYXC = torch.randn(2, 6, 9, 2)
    slow = [
        patches.project(x_BYXC[b, 3 * y : 3 * y + 3, 3 * x : 3 * x + 3].reshape(-1))
        for b in range(2)
        for y in range(2)
        for x in range(3)
    ]
    torch.testing.assert_close(patches(x_BYXC), torch.stack(slow).view(2, 6, 5))


@pytest.mark.parametrize(
    ("depth", "widths"),
    [(1, [(4, 3), (8, 4), (24, 8)]), (2, [(4, 3), (4, 4), (8, 4), (8, 8), (24, 8), (24, 24)])],
)
def test_a_stem_is_convolution_relu_and_maximum(depth: int, widths: list[tuple[int, int]]) -> None:
    stem = ConvStem(8, 3, 4, 24, depth)
    assert [layer.weight.shape[:2] for layer in stem.layers] == widths
    x_BYXC = torch.randn(2, 16, 24, 3)
    x_BCYX = x_BYXC.permute(0, 3, 1, 2).contiguous()
    for number, layer in enumerate(stem.layers):
        x_BCYX = F.conv2d(x_BCYX, layer.weight, padding=1).relu()
        if number % depth == depth - 1:
            padded = F.pad(x_BCYX, (1, 1, 1, 1))  # ReLU makes 0 the least
            x_BCYX = padded.unfold(2, 3, 2).unfold(3, 3, 2).amax((-1, -2))
    assert x_BCYX.shape == (2, 24, 2, 3)
    torch.testing.assert_close(
        stem(x_BYXC), torch.stack([x_BCYX[:, :, y, x] for y in range(2) for x in range(3)], 1)
    )


def test_positions_in_a_plane() -> None:
    table_TD = Plane(3, 5, 1, 8)(torch.arange(16))
    assert (table_TD[0] == 0).all()
    for y in range(3):
        for x in range(5):
            waves = [
                wave(place / 10000 ** (2 * n / 4))
                for place in (y, x)
                for n in (0, 1)
                for wave in (math.sin, math.cos)
            ]
            torch.testing.assert_close(table_TD[1 + 5 * y + x], torch.tensor(waves), atol=1e-6, rtol=1e-5)


def test_channels_are_normalised_one_by_one() -> None:
    pixels_BYXC = torch.randint(256, (2, 3, 5, 3), dtype=torch.uint8)
    normal = Normalise(MEAN, DEVIATION)(pixels_BYXC)
    for channel in range(3):
        expected = (pixels_BYXC[..., channel].double() - MEAN[channel]) / DEVIATION[channel]
        torch.testing.assert_close(normal[..., channel].double(), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("d_in", "d_out", "stride"), [(4, 4, 1), (4, 6, 2), (4, 6, 1), (4, 4, 2)])
def test_a_residual_block_by_its_definition(d_in: int, d_out: int, stride: int) -> None:
    """One picture at a time, every pixel and channel by itself."""
    torch.manual_seed(1)
    block = Residual(d_in, d_out, stride, 0.0)
    x_CYX = torch.randn(d_in, 5, 6)

    def normal(x: Tensor, norm: nn.GroupNorm) -> Tensor:
        groups = x.reshape(norm.num_groups, -1)
        centred = groups - groups.mean(1, keepdim=True)
        return (centred / (centred.square().mean(1, keepdim=True) + norm.eps).sqrt()).reshape(x.shape)

    def convolved(x: Tensor, weight: Tensor, step: int) -> Tensor:
        size = weight.shape[-1]
        padded = F.pad(x, (size // 2,) * 4)
        rows, columns = -(-x.shape[1] // step), -(-x.shape[2] // step)
        out = torch.zeros(len(weight), rows, columns)
        for y in range(rows):
            for column in range(columns):
                window = padded[:, y * step : y * step + size, column * step : column * step + size]
                out[:, y, column] = (weight * window).sum((1, 2, 3))
        return out

    inner = normal(x_CYX, block.norm).relu()
    straight = x_CYX if block.straight is None else convolved(inner, block.straight.weight, stride)
    inner = normal(convolved(inner, block.first.weight, stride), block.second_norm).relu()
    expected = straight + convolved(inner, block.second.weight, 1)
    torch.testing.assert_close(block(x_CYX[None])[0], expected, atol=1e-5, rtol=1e-5)


def test_a_network_is_its_blocks_one_after_another() -> None:
    config = CNNConfig(widths=(4, 6), n_blocks=2)
    network = config.build(width(6, 10))
    strides = [block.first.stride[0] for block in network.blocks]
    assert strides == [1, 1, 2, 1]
    assert [block.straight is None for block in network.blocks] == [True, True, False, True]
