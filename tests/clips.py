"""Made-up clips: a bright square that moves, written by PyAV or as folders of pictures."""

from fractions import Fraction
from io import BytesIO
from pathlib import Path
from typing import Any

import av
import numpy as np
import torch
from PIL import Image as Pillow

from regard.fields.label import Label
from regard.fields.video import Video, VideoSettings
from regard.models import ClassifierConfig
from regard.tasks import Classify, ClassifyConfig

FRAMES, ROWS, COLUMNS = 6, 16, 24
LABELS = ("left", "right")
ENCODERS: dict[str, dict[str, Any]] = {
    name: {"kind": "video", "space_time": name, "d_model": 12, "n_heads": 3, "d_ff": 11, "n_layers": 2}
    for name in ("divided", "joint")
}


def moving(n: int = FRAMES, step: int = 3, seed: int = 0) -> np.ndarray:
    """frames_TYXC: a square on noise, that moves so many columns a frame."""
    rng = np.random.default_rng(seed)
    frames = rng.integers(0, 60, (n, ROWS, COLUMNS, 3), np.uint8)
    for time in range(n):
        left = (5 + time * step) % (COLUMNS - 6)
        frames[time, 4:10, left : left + 6] = 220
    return frames


def film(frames: np.ndarray, suffix: str = "mp4", pts: list[int] | None = None) -> bytes:
    """A film of 10 frames a second, or with frames at these tenths of a second."""
    file = BytesIO()
    with av.open(file, "w", format={"mkv": "matroska"}.get(suffix, suffix)) as container:
        codec = {"mp4": "libx264", "avi": "mpeg4", "webm": "libvpx", "mkv": "libx264"}[suffix]
        stream: Any = container.add_stream(codec, rate=10)
        stream.width, stream.height, stream.pix_fmt = frames.shape[2], frames.shape[1], "yuv420p"
        stream.time_base = stream.codec_context.time_base = Fraction(1, 10)
        for number, pixels in enumerate(frames):
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            frame.pts, frame.time_base = (pts or range(len(frames)))[number], Fraction(1, 10)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return file.getvalue()


def folder(root: Path, frames: np.ndarray) -> Path:
    root.mkdir(parents=True)
    for number, pixels in enumerate(frames):
        Pillow.fromarray(pixels).save(root / f"{number:03}.png")
    return root


def field(**settings: Any) -> Video:
    """A fitted field, as if learnt from some clips."""
    shape, mean, deviation = (ROWS, COLUMNS, 3), (61.0, 47.0, 53.0), (61.0, 47.0, 53.0)
    return Video(VideoSettings(**{"frames": FRAMES, **settings}), shape, mean, deviation)


def classifier(name: str, **settings: Any) -> tuple[Classify, Any, ClassifierConfig]:
    """A classifier with random weights."""
    torch.manual_seed(5)
    config = ClassifierConfig(encoder=ENCODERS[name], pooling="attention", dropout=0.0)  # type: ignore[arg-type]
    task_config = ClassifyConfig(fields={"video": {"kind": "video", "frames": FRAMES, **settings}})  # type: ignore[dict-item]
    task = Classify(task_config, {"video": field(**settings)}, Label(LABELS))
    model = config.build(task.widths).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return task, model, config
