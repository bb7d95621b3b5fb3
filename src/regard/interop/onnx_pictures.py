"""Export of a classifier of pictures as a graph for onnxruntime, which takes their pixels as they are."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.fields.image import Image
from regard.files.row import Asked
from regard.interop.graphs import exportable
from regard.interop.label_parity import LabelEngine, pixels_of
from regard.interop.onnx import MODEL, SETTINGS, runtime_name, session, write_graph
from regard.interop.onnx_classifier import LABELS
from regard.interop.parity import Floats
from regard.runs.store import write_json
from regard.tasks import Classify, Multilabel

INPUT = "pixels"


class PixelReader(nn.Module):
    """A classifier whose input is an argument, as ONNX wants it, and not a named tensor."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, pixels_BYXC: Tensor) -> Tensor:
        logits_BC: Tensor = self.model({INPUT: pixels_BYXC})
        return logits_BC


def write(task: Classify | Multilabel, model: nn.Module, folder: Path) -> None:
    from torch.export import Dim  # takes a second, and most users never export

    field = task.input
    assert isinstance(field, Image)
    pixels_BYXC = torch.zeros(3, *field.shape, dtype=torch.uint8)
    reader = PixelReader(exportable(model))
    write_graph(folder / MODEL, reader, (pixels_BYXC,), ({0: Dim("batch")},), [INPUT], ["logits"])
    write_json(folder / LABELS, list(task.labels))
    rows, columns, n_channels = field.shape
    settings: dict[str, Any] = {
        "rows": rows,
        "columns": columns,
        "channels": n_channels,
        "resize": field.config.resize,
    }
    if isinstance(task, Multilabel):
        settings |= {"threshold": task.config.threshold, "separator": task.config.separator}
    write_json(folder / SETTINGS, settings)
    (folder / "README.md").write_text(CARD, "utf-8")


def load_engine(folder: Path, field: Image) -> LabelEngine[Any]:
    graph = session(folder / MODEL)
    settings = json.loads((folder / SETTINGS).read_text("utf-8"))
    labels = json.loads((folder / LABELS).read_text("utf-8"))

    def logits(inputs: Sequence[Asked]) -> Floats:
        logits_BC: Floats = graph.run(None, {INPUT: pixels_of(field, inputs)})[0]
        return logits_BC

    return LabelEngine(runtime_name(), labels, settings.get("threshold"), logits)


CARD = """# A classifier of pictures for ONNX Runtime, trained and exported with regard

model.onnx takes `pixels` (batch × rows × columns × channels, bytes from 0 to 255) and returns `logits`, one
for each label in labels.json. Bring pictures to the size in regard.json first: with `"resize": "crop"` the
middle that has its shape, with `"stretch"` all of it (Pillow: `image.resize((columns, rows), Image.BILINEAR,
box)`).
Where regard.json has a `threshold`, a picture has every label whose 1 / (1 + exp(-logit)) is at least that.
"""
