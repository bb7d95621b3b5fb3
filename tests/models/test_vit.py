"""A ViT's grid, its class tokens, and the sizes that it refuses."""

from typing import Any

import pytest
import torch
from pydantic import ValidationError

from regard.errors import RecipeError
from regard.fields.axis import Axis
from regard.models.encoders.cnn import CNNConfig
from regard.models.encoders.vit import ViTConfig

SMALL: dict[str, Any] = {"d_model": 12, "n_heads": 3, "d_ff": 11, "n_layers": 2}


def width(rows: int = 12, columns: int = 20, channels: int = 3) -> dict[str, Any]:
    return {
        "rows": rows,
        "columns": columns,
        "channels": channels,
        "mean": [99.0] * channels,
        "deviation": [7.0] * channels,
    }


def pixel_axis(rows: int, columns: int) -> Axis:
    labels = tuple(f"{y + 1},{x + 1}" for y in range(rows) for x in range(columns))
    return Axis("image", labels, "pixel", grid=(rows, columns), picture=b"png")


@pytest.mark.parametrize("stem", ["patches", "conv"])
@pytest.mark.parametrize("class_tokens", [0, 1, 2])
def test_there_is_a_state_for_every_patch_and_every_class_token(stem: str, class_tokens: int) -> None:
    config = ViTConfig(**SMALL, stem=stem, class_tokens=class_tokens)
    pixels_BYXC = torch.randint(256, (2, 12, 20, 3), dtype=torch.uint8)
    encoded = config.build(width())({"pixels": pixels_BYXC})
    axis = config.positions(pixel_axis(12, 20))
    assert encoded.states_RTD.shape == (2, len(axis), config.d_out)
    assert encoded.lengths_R.tolist() == [len(axis)] * 2
    assert (axis.unit, axis.grid, axis.picture) == ("patch", (3, 5), b"png")
    assert axis.labels == ("[class]", "[distilled]")[:class_tokens] + tuple(
        f"{y},{x}" for y in range(1, 4) for x in range(1, 6)
    )
    assert axis.free == list(range(class_tokens, len(axis)))


def test_a_cnn_has_a_state_for_every_cell() -> None:
    config = CNNConfig(widths=(4, 6, 10), n_blocks=2)
    for rows, columns in ((12, 20), (13, 7)):
        encoded = config.build(width(rows, columns))(
            {"pixels": torch.randint(256, (2, rows, columns, 3), dtype=torch.uint8)}
        )
        axis = config.positions(pixel_axis(rows, columns))
        assert encoded.states_RTD.shape == (2, len(axis), 10)
        assert axis.grid is not None
        assert axis.grid[0] * axis.grid[1] == len(axis)


def test_pictures_that_cannot_be_cut_are_refused() -> None:
    with pytest.raises(
        RecipeError,
        match=r"13 × 20 pixels cannot be cut into patches of 4 × 4; set fields.image.size = \[12, 20\]",
    ):
        ViTConfig(**SMALL).build(width(13))
    with pytest.raises(RecipeError, match=r"have 240 patches, more than max_positions \(100\)"):
        ViTConfig(**SMALL, patch=1, max_positions=100).build(width())


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"stem": "conv", "patch": 6}, "must be 2, 4, 8"),
        ({"stem": "conv", "patch": 1}, "must be 2, 4, 8"),
        ({"position": "sinusoidal", "d_model": 6}, "multiple of 4"),
        ({"d_model": 13}, "must divide"),
        ({"class_tokens": 3}, "class_tokens"),
        ({"norm": "post"}, "norm"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValidationError, match=fault):
        ViTConfig(**SMALL | settings)


def test_a_preset_can_be_changed() -> None:
    config = ViTConfig(preset="small", n_layers=3)
    assert (config.d_model, config.n_heads, config.d_ff, config.n_layers, config.patch) == (
        384,
        6,
        1536,
        3,
        16,
    )


def test_hidden_patches_keep_their_positions() -> None:
    torch.manual_seed(0)
    vit = ViTConfig(**SMALL, word_dropout=0.5).build(width()).train()
    pixels_BYXC = torch.randint(256, (1, 12, 20, 3), dtype=torch.uint8)
    seen = []
    vit.stack.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0].detach()))
    vit({"pixels": pixels_BYXC})
    hidden_T = (seen[0][0] == vit.position.weight).all(-1)
    assert 2 < int(hidden_T.sum()) < 13
