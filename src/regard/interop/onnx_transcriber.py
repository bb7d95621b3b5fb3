"""Export of a model that listens, as graphs for onnxruntime: a chunk of samples in, what it becomes out.

encoder.onnx takes the samples of one chunk and caches of fixed sizes, makes features of them itself and
returns what the search reads, and the caches for the next chunk. A transducer also has prediction.onnx, which
is given each label that is written, and joint.onnx. So a caller needs an array of samples and a loop.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.attention import Growing, only_keys
from regard.errors import RunError
from regard.fields.mel import FLOOR, PREEMPHASIS, Mel
from regard.files.row import Asked
from regard.interop.graphs import exportable
from regard.interop.onnx import SETTINGS, runtime_name, session, write_graph
from regard.interop.parity import Answer, Floats
from regard.layers.conformer import Conformer, ConformerCache
from regard.layers.sound import SUBSAMPLING, Context
from regard.layers.transducer import BLANK
from regard.runs.store import write_json
from regard.tasks import Transcribe
from regard.tasks.listening import refuse_unstreamable
from regard.tasks.transcript import spelling_of

ENCODER, PREDICTION, JOINT = "encoder.onnx", "prediction.onnx", "joint.onnx"
LABELS = "labels.json"


class Features(nn.Module):
    """frames_TM of samples as 16 bits hold them, with the Fourier transform as a product (fields/mel.py)."""

    cosine_WF: Tensor
    sine_WF: Tensor
    bands_FM: Tensor
    places_TW: Tensor

    def __init__(self, mel: Mel, n_frames: int) -> None:
        super().__init__()
        at_W, n_fft = np.arange(mel.window), mel.n_fft
        angle_WF = 2 * np.pi * np.outer(at_W, np.arange(n_fft // 2)) / n_fft
        window_W1 = mel.weights[:, None].astype(np.float64)
        self.register_buffer("cosine_WF", torch.from_numpy(window_W1 * np.cos(angle_WF)))
        self.register_buffer("sine_WF", torch.from_numpy(window_W1 * np.sin(angle_WF)))
        self.register_buffer("bands_FM", torch.from_numpy(mel.bands.astype(np.float64)))
        places_TW = np.arange(n_frames)[:, None] * mel.hop + at_W
        self.register_buffer("places_TW", torch.from_numpy(places_TW))

    def forward(self, samples_S: Tensor) -> Tensor:
        windows_TW = samples_S.double()[self.places_TW]
        windows_TW = windows_TW - windows_TW.mean(1, keepdim=True)
        before_TW = torch.cat([windows_TW[:, :1], windows_TW[:, :-1]], 1)
        windows_TW = windows_TW - PREEMPHASIS * before_TW
        power_TF = (windows_TW @ self.cosine_WF) ** 2 + (windows_TW @ self.sine_WF) ** 2
        return (power_TF @ self.bands_FM).clamp(min=float(FLOOR)).log().float()


class ChunkGraph(nn.Module):
    """One chunk of an encoder with caches of fixed sizes, of which the last are real."""

    def __init__(self, model: Any, mel: Mel) -> None:
        super().__init__()
        config = model.encoder.config
        self.model, self.chunk, self.kept = model, config.chunk, config.left_chunks * config.chunk
        self.features = Features(mel, SUBSAMPLING * config.chunk)

    def forward(
        self,
        samples_S: Tensor,
        n_states: Tensor,
        position: Tensor,
        first: Tensor,
        second: Tensor,
        k: Tensor,
        v: Tensor,
        convolved: Tensor,
    ) -> tuple[Tensor, ...]:
        """Of how many states there are and how many there were before; caches have a row for each layer."""
        encoder = self.model.encoder
        frames_BTM = encoder.normalise(self.features(samples_S))[None]
        x_BTD, context = encoder.subsample(frames_BTM, Context(first, second))
        past_K = torch.arange(self.kept) - self.kept + position
        here_T = torch.arange(self.chunk)
        keep_1K = torch.cat([past_K >= 0, here_T < n_states])[None]
        keys, values, tails = [], [], []
        for number, layer in enumerate(encoder.layers):
            cache: Any = Growing(k[number], v[number], past_K[None])
            if isinstance(layer, Conformer):
                cache = ConformerCache(cache, convolved[number])
            x_BTD, cache = layer(
                x_BTD, mask=only_keys(keep_1K), positions_BT=(position + here_T)[None], past=cache
            )
            if isinstance(cache, ConformerCache):
                tails.append(cache.convolved_BTD)
                cache = cache.attention
            keys.append(cache.k_BGKE[:, :, self.chunk :])
            values.append(cache.v_BGKW[:, :, self.chunk :])
        entered_BTF = self.model.enter(encoder.norm(x_BTD))
        tail = torch.stack(tails) if tails else convolved
        return (entered_BTF[0], *context, torch.stack(keys), torch.stack(values), tail)


class PredictionGraph(nn.Module):
    """The state of a prediction network after one more label."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, label: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        after: tuple[Tensor, ...] = self.model.write(label, (state[0], *state))
        return after


class JointGraph(nn.Module):
    """Log-probabilities of the next label."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, entered_NF: Tensor, written_NF: Tensor) -> Tensor:
        log_probs_NV: Tensor = self.model.score(entered_NF, (written_NF,))
        return log_probs_NV


CACHES = ("first", "second", "k", "v", "convolved")


def write(task: Transcribe, model: Any, folder: Path) -> None:
    refuse_unstreamable(task, model)
    config, mel = model.encoder.config, task.audio.mel
    if config.look_ahead:
        raise RunError(
            "onnx: a model that waits for states to come (look_ahead) is not exported; train without"
        )
    model = exportable(model)
    caches = _caches(model)
    n_samples = (SUBSAMPLING * config.chunk - 1) * mel.hop + mel.window
    count = torch.tensor([config.chunk])
    arguments = (torch.zeros(n_samples), count, torch.tensor([0]), *caches.values())
    names = ["samples", "n_states", "position", *caches]
    outputs = ["entered", *(f"{name}_after" for name in caches)]
    write_graph(folder / ENCODER, ChunkGraph(model, mel), arguments, (None,) * len(names), names, outputs)
    state: list[list[Any]] = []
    if model.labels_per_frame:
        state = _write_search(model, folder)
    write_json(folder / LABELS, task.tokenizer.spellings)
    settings = {
        "rate": task.audio.rate,
        "samples": n_samples,
        "step": SUBSAMPLING * config.chunk * mel.hop,
        "state_samples": SUBSAMPLING * mel.hop,
        "window": mel.window,
        "hop": mel.hop,
        "chunk": config.chunk,
        "caches": {name: list(cache.shape) for name, cache in caches.items()},
        "state": state,
        "most": task.decode.max_symbols,
        "never": task.never,
    }
    write_json(folder / SETTINGS, settings)
    (folder / "README.md").write_text(CARD, "utf-8")


def _caches(model: Any) -> dict[str, Tensor]:
    """The caches of a beginning, by name."""
    encoder = model.encoder
    config, (first, second) = encoder.config, encoder.subsample.start(1, encoder.norm.weight)
    kept, n_layers = config.left_chunks * config.chunk, config.n_layers
    width = config.d_model // config.n_heads
    keys = torch.zeros(n_layers, 1, config.n_heads, kept, width)
    is_conformer = isinstance(encoder.layers[0], Conformer)
    tail = torch.zeros(n_layers, 1, config.kernel - 1 if is_conformer else 1, config.d_model)
    return dict(zip(CACHES, (first.detach(), second.detach(), keys, keys.clone(), tail), strict=True))


def _write_search(model: Any, folder: Path) -> list[list[Any]]:
    """Writes the graphs that a search of a transducer asks; shapes and kinds of the state that it keeps."""
    written_NF, *state = (tensor.detach() for tensor in model.begin(1))
    label = torch.tensor([BLANK])
    names = [f"state{number}" for number in range(len(state))]
    write_graph(
        folder / PREDICTION,
        PredictionGraph(model),
        (label, tuple(state)),
        (None, (None,) * len(state)),
        ["label", *names],
        ["written", *(f"{name}_after" for name in names)],
    )
    entered_NF = torch.zeros(1, model.config.d_joint)
    write_graph(
        folder / JOINT,
        JointGraph(model),
        (entered_NF, written_NF),
        (None, None),
        ["entered", "written"],
        ["log_probs"],
    )
    return [[list(tensor.shape), str(tensor.dtype).removeprefix("torch.")] for tensor in state]


class StreamReader:
    """The folder loaded by onnxruntime: a greedy search over a stream, chunk after chunk."""

    def __init__(self, folder: Path) -> None:
        self.settings = json.loads((folder / SETTINGS).read_text("utf-8"))
        self.labels: list[str] = json.loads((folder / LABELS).read_text("utf-8"))
        self.encoder = session(folder / ENCODER)
        has_joint = (folder / JOINT).is_file()
        self.prediction = session(folder / PREDICTION) if has_joint else None
        self.joint = session(folder / JOINT) if has_joint else None

    def entered(self, samples: NDArray[Any]) -> Floats:
        """What the search reads of every state of a recording; samples are as 16 bits hold them."""
        settings, parts = self.settings, []
        caches = {name: np.zeros(shape, np.float32) for name, shape in settings["caches"].items()}
        n_frames = max(0, 1 + (len(samples) - settings["window"]) // settings["hop"])
        n_left, position = n_frames // SUBSAMPLING, 0
        while n_left > 0:
            block = np.zeros(settings["samples"], np.float32)
            part = samples[position * settings["state_samples"] :][: len(block)]
            block[: len(part)] = part
            n = min(n_left, settings["chunk"])
            counts = {"n_states": np.array([n]), "position": np.array([position])}
            entered_TF, *after = self.encoder.run(None, {"samples": block, **counts, **caches})
            caches = dict(zip(caches, after, strict=True))
            parts.append(entered_TF[:n])
            n_left, position = n_left - n, position + n
        return np.concatenate(parts)

    @cached_property
    def start(self) -> list[NDArray[Any]]:
        """The state of the prediction network before the first label, what the joint reads of it first."""
        state = [np.zeros(shape, kind) for shape, kind in self.settings["state"]]
        return self.write(BLANK, [None, *state])

    def write(self, label: int, state: Sequence[Any]) -> list[NDArray[Any]]:
        assert self.prediction is not None
        inputs = {f"state{number}": tensor for number, tensor in enumerate(state[1:])}
        after: list[NDArray[Any]] = self.prediction.run(None, {"label": np.array([label]), **inputs})
        return after

    def score(self, entered_F: Floats, state: Sequence[Any]) -> Floats:
        assert self.joint is not None
        log_probs_NV = self.joint.run(None, {"entered": entered_F[None], "written": state[0]})[0]
        log_probs_V: Floats = log_probs_NV[0]
        return log_probs_V

    def greedy(self, entered_TF: Floats) -> Iterator[int]:
        never = self.settings["never"]
        if self.joint is None:
            entered_TF = entered_TF.copy()
            entered_TF[:, never] = -np.inf
            last = BLANK
            for label in entered_TF.argmax(1).tolist():
                if label not in (BLANK, last):
                    yield label
                last = label
            return
        state = self.start
        for entered_F in entered_TF:
            for _ in range(self.settings["most"]):
                log_probs_V = self.score(entered_F, state).copy()
                log_probs_V[never] = -np.inf
                label = int(log_probs_V.argmax())
                if label == BLANK:
                    break
                yield label
                state = self.write(label, state)


@dataclass(frozen=True)
class TheirEngine:
    name: str
    task: Transcribe
    reader: StreamReader

    def _entered(self, inputs: Sequence[Asked]) -> Iterator[Floats]:
        for example in self.task.encode(self.task.asked(inputs)):
            yield self.reader.entered(example.arrays["samples"])

    def answer(self, inputs: Sequence[Asked]) -> list[Answer]:
        found = [tuple(self.reader.greedy(entered_TF)) for entered_TF in self._entered(inputs)]
        return [Answer(spelling_of(self.task.tokenizer, ids), ids) for ids in found]

    def score(self, inputs: Sequence[Asked], answers: Sequence[Answer]) -> list[list[float]]:
        """Of all labels at every state: those of CTC, or those of a transducer that has written nothing."""
        reader, found = self.reader, []
        for entered_TF in self._entered(inputs):
            if reader.joint is not None:
                entered_TF = np.stack([reader.score(entered_F, reader.start) for entered_F in entered_TF])
            found.append(entered_TF.ravel().tolist())
        return found


@dataclass(frozen=True)
class OurEngine:
    """The same search in chunks."""

    task: Transcribe
    model: Any
    name: str = "regard"

    def answer(self, inputs: Sequence[Asked]) -> list[Answer]:
        task = self.task.with_settings(beam=1, n_best=1, streamed=True, hot_words=())
        examples = task.encode(task.asked(inputs))
        found = dict(task.predict(self.model, task.collate(examples)))
        return [Answer(found[place].text, found[place].ids) for place in range(len(examples))]

    def score(self, inputs: Sequence[Asked], answers: Sequence[Answer]) -> list[list[float]]:
        task, found = self.task.with_settings(streamed=True), []
        for example in task.encode(task.asked(inputs)):
            with torch.inference_mode():
                entered_TF = self.model.enter(self.model.encoder(task.collate([example]).inputs).states_RTD)[
                    0
                ]
                if self.model.labels_per_frame:
                    state = tuple(part.expand(len(entered_TF), -1) for part in self.model.begin(1)[:1])
                    entered_TF = self.model.score(entered_TF, state)
            found.append(entered_TF.flatten().tolist())
        return found


def engines(task: Transcribe, model: Any, folder: Path) -> tuple[OurEngine, TheirEngine]:
    return OurEngine(task, model), TheirEngine(runtime_name(), task, StreamReader(folder))


CARD = """# A model that listens, for ONNX Runtime, trained and exported with regard

encoder.onnx takes `samples` (one channel at `rate` of regard.json, as 16 bits hold them, as floats): those
of one chunk, and as many of the next one as its last window needs. The next chunk begins `step` samples
later. `n_states` is how many states there are in it (`chunk`; fewer at the end), `position` how many there
were before. Its caches begin as zeros of the shapes in regard.json; each output NAME_after is the input NAME
of the next chunk. `entered` is a row for each state of `state_samples` samples: log-probabilities of CTC, or
input of joint.onnx. prediction.onnx takes a `label` and the state before it; its `written` goes to
joint.onnx. The first label is 0, on a state of zeros. Label 0 writes nothing; labels.json has the text that
each adds; those in `never` are not written.
"""
