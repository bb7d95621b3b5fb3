"""Made-up pictures, and models that read them."""

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image as Pillow
from torch import nn

from regard.fields.image import Image, ImageSettings
from regard.fields.label import Label
from regard.models import ClassifierConfig
from regard.tasks import Classify, ClassifyConfig

ROWS, COLUMNS = 12, 20
LABELS = ("bird", "cat", "dog")
SMALL: dict[str, Any] = {"d_model": 12, "n_heads": 3, "d_ff": 11, "n_layers": 2}
ENCODERS: dict[str, dict[str, Any]] = {
    "vit": {"kind": "vit", **SMALL},
    "vit-conv": {"kind": "vit", **SMALL, "stem": "conv", "d_stem": 5, "position": "sinusoidal"},
    "vit-deep": {"kind": "vit", **SMALL, "stem": "conv", "d_stem": 5, "stem_depth": 2},
    "vit-class": {"kind": "vit", **SMALL, "class_tokens": 1},
    "vit-deit": {"kind": "vit", **SMALL, "class_tokens": 2, "position": "none"},
    "cnn": {"kind": "cnn", "widths": (6, 10), "n_blocks": 1},
}


def png(pixels: np.ndarray) -> bytes:
    file = BytesIO()
    Pillow.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def noise(n: int, rows: int = ROWS, columns: int = COLUMNS, seed: int = 0) -> list[bytes]:
    rng = np.random.default_rng(seed)
    return [png(rng.integers(0, 256, (rows, columns, 3), np.uint8)) for _ in range(n)]


def field(rows: int = ROWS, columns: int = COLUMNS, **settings: Any) -> Image:
    """A fitted field, as if learnt from some pictures."""
    shape, mean, deviation = (rows, columns, 3), (99.0, 131.0, 83.0), (61.0, 47.0, 53.0)
    return Image(ImageSettings(**settings), shape, mean, deviation)


def classifier(
    name: str, pooling: str | None = None, **task: Any
) -> tuple[Classify, nn.Module, ClassifierConfig]:
    """A classifier with random weights."""
    torch.manual_seed(5)
    encoder: Any = ENCODERS[name]
    usual = "first" if encoder.get("class_tokens") else "attention"
    config = ClassifierConfig(encoder=encoder, pooling=pooling or usual, dropout=0.0)  # type: ignore[arg-type]
    settings = ClassifyConfig(fields={"image": {"kind": "image"}}, **task)  # type: ignore[dict-item]
    labelled = Classify(settings, {"image": field()}, Label(LABELS))
    model = config.build(labelled.widths).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return labelled, model, config


def bright(n: int, seed: int, rows: int = ROWS, columns: int = COLUMNS) -> list[tuple[np.ndarray, str]]:
    """Noise, of which a third of the columns is bright: which third is the label."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        place = int(rng.integers(3))
        pixels = rng.integers(0, 120, (rows, columns, 3), np.uint8)
        pixels[:, place * columns // 3 : (place + 1) * columns // 3] += 100
        found.append((pixels, LABELS[place]))
    return found


def write_folder(root: Path, n: int, seed: int) -> None:
    """Pictures in a folder for each label."""
    for number, (pixels, label) in enumerate(bright(n, seed)):
        (root / label).mkdir(parents=True, exist_ok=True)
        (root / label / f"{number:04}.png").write_bytes(png(pixels))
