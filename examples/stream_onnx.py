"""Hear a recording as a stream, from an exported folder: onnxruntime and numpy alone.

    python examples/stream_onnx.py FOLDER recording.wav      (16 bits, one channel, at the rate of the model)

Without arguments it only says so.
"""

import json
import sys
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from onnxruntime import InferenceSession


class Search:
    """What a greedy search has written: the last label, and the state of a prediction network."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self.graphs = {path.stem: InferenceSession(path) for path in folder.glob("*.onnx")}
        self.never, self.most, self.last = settings["never"], settings["most"], 0
        self.state: list[Any] = [np.zeros(shape, kind) for shape, kind in settings["state"]]
        self.is_transducer = "joint" in self.graphs
        self.written = self.write(0) if self.is_transducer else None

    def write(self, label: int) -> Any:
        inputs = {f"state{number}": tensor for number, tensor in enumerate(self.state)}
        written, *self.state = self.graphs["prediction"].run(None, {"label": np.array([label]), **inputs})
        return written

    def labels(self, row: Any) -> Iterator[int]:
        """Those at one state: of a transducer several, of CTC one, unless it is the last one again."""
        for _ in range(self.most if self.is_transducer else 1):
            log_probs = row
            if self.is_transducer:
                inputs = {"entered": row[None], "written": self.written}
                log_probs = self.graphs["joint"].run(None, inputs)[0][0]
            log_probs[self.never] = -np.inf
            before, self.last = self.last, int(log_probs.argmax())
            if self.last and (self.is_transducer or self.last != before):
                yield self.last
            if not self.last:
                return
            if self.is_transducer:
                self.written = self.write(self.last)


def hear(folder: Path, recording: str) -> Iterator[str]:
    settings = json.loads((folder / "regard.json").read_text("utf-8"))
    labels = json.loads((folder / "labels.json").read_text("utf-8"))
    caches = {name: np.zeros(shape, np.float32) for name, shape in settings["caches"].items()}
    search, samples, position = Search(folder, settings), np.zeros(0, np.float32), 0
    with wave.open(recording) as file:
        n_left = max(0, 1 + (file.getnframes() - settings["window"]) // settings["hop"]) // 4
        while n_left > 0:
            block = file.readframes(settings["samples"] - len(samples))
            samples = np.append(samples, np.frombuffer(block, "<i2").astype(np.float32))
            padded = np.pad(samples, (0, settings["samples"] - len(samples)))
            n = min(n_left, settings["chunk"])
            inputs = {"samples": padded, "n_states": np.array([n]), "position": np.array([position])}
            entered, *after = search.graphs["encoder"].run(None, inputs | caches)
            caches = dict(zip(caches, after, strict=True))
            for row in entered[:n]:
                yield "".join(labels[label] for label in search.labels(row))
            samples, position, n_left = samples[settings["step"] :], position + n, n_left - n


if len(sys.argv) > 2:
    for text in hear(Path(sys.argv[1]), sys.argv[2]):
        print(text, end="", flush=True)
    print()
else:
    print(__doc__)
