"""Ratios of captions and clips, measured in turns: beam and greedy search, divided and joint attention, our
decoding and that of PyAV alone. Give the folder of moving_sprites for the last.

    python bench/seeing_speed.py [data/moving_sprites/clips]
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import av
import numpy as np
import torch

from regard.fields.captions import Captions
from regard.fields.image import Image, ImageSettings
from regard.files.film import decoded
from regard.files.picture import png
from regard.models import CaptionerConfig
from regard.models.encoders.video import VideoConfig
from regard.tasks import CaptionConfig, Captioning
from regard.text.tokenizer import Tokenizer, TokenizerConfig

WIDTH = {"frames": 16, "rows": 64, "columns": 64, "channels": 3, "mean": [127.0] * 3, "deviation": [64.0] * 3}
WORDS = ["a", "an", "the", "and", "in", "is", "with", "of", "there", "above", "left", "right", "dog", "cat"]


def ratio(
    first: Callable[[], object], second: Callable[[], object], n: int = 5
) -> tuple[float, float, float]:
    """The median processor seconds of both, in turns, and first / second."""
    seconds: tuple[list[float], list[float]] = [], []
    for _ in range(n):
        for run, into in zip((first, second), seconds, strict=True):
            began = time.process_time()
            run()
            into.append(time.process_time() - began)
    one, other = map(median, seconds)
    return one, other, median(a / b for a, b in zip(*seconds, strict=True))


def searches() -> tuple[Callable[[], object], Callable[[], object]]:
    settings = TokenizerConfig(kind="word")
    tokenizer = Tokenizer.train(settings, [" ".join(WORDS)])
    image = Image(ImageSettings(), (64, 64, 3), (127.0,) * 3, (64.0,) * 3)
    task = Captioning(CaptionConfig(tokenizer=settings), image, Captions(settings, tokenizer))
    decoder = {"kind": "rnn", "d_embed": 128, "d_hidden": 128}
    config = CaptionerConfig(encoder={"kind": "cnn", "widths": (16, 64, 128, 256)}, decoder=decoder)
    model = config.build(task.widths).eval()
    pixels = np.random.default_rng(0).integers(0, 256, (32, 64, 64, 3), np.uint8)
    examples = task.encode(task.asked([png(one) for one in pixels]))

    def search(beam: int) -> Callable[[], object]:
        one = task.with_settings(beam=beam, min_length=15, max_length=16)
        batch = one.collate(examples)

        def run() -> object:
            with torch.inference_mode():
                return list(one.predict(model, batch))

        return run

    return search(5), search(1)


def attentions(tube: int) -> tuple[Callable[[], object], Callable[[], object]]:
    frames = torch.randint(0, 255, (4, 16, 64, 64, 3), dtype=torch.uint8)

    def learn(kind: str) -> Callable[[], object]:
        config = VideoConfig(space_time=kind, tube=tube, d_model=96, d_ff=192, n_layers=3)  # type: ignore[arg-type]
        model = config.build(WIDTH)
        return lambda: model({"frames": frames}).states_RTD.mean().backward()

    return learn("joint"), learn("divided")


def decodings(folder: Path) -> tuple[Callable[[], object], Callable[[], object]]:
    paths = sorted(folder.rglob("*.mp4"))[:200]

    def plain() -> None:
        for path in paths:
            with av.open(str(path)) as container:
                np.stack([frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)])

    def ours() -> None:
        for path in paths:
            decoded(path, str(path), 16, (64, 64, 3))

    return plain, ours


def main() -> None:
    torch.set_num_threads(1)
    print("beam 5, greedy: {:.2f} s, {:.2f} s, {:.2f} ×".format(*ratio(*searches())))
    for tube in (2, 1):
        told = "joint, divided attention of 16 frames, tube {}: {:.2f} s, {:.2f} s, {:.2f} ×"
        print(told.format(tube, *ratio(*attentions(tube), n=3)))
    for folder in map(Path, sys.argv[1:]):
        print("PyAV alone, ours: {:.2f} s, {:.2f} s, {:.2f} ×".format(*ratio(*decodings(folder), n=3)))


if __name__ == "__main__":
    main()
