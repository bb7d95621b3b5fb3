"""Graphs that onnxruntime runs with nothing beside it but a tokenizer (`regard[onnx]`).

A translator is two of them, read.onnx and step.onnx (graphs.py), a classifier is one. Batch, lengths and what
was written so far are free. Attention is exported as it is computed when somebody looks at it, in plain
operators: those are the same for every score, mask, position and number of heads.
"""

import json
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.attention.tap import tapped
from regard.data.tokenizer import BOS, EOS, PAD
from regard.errors import RunError
from regard.export.graphs import CHANGING, Read, Step, exportable, named
from regard.export.here import Search
from regard.export.parity import Answer
from regard.export.tokens import open_tokenizers, write_tokenizer, write_tokenizers
from regard.models import RNNSeq2Seq, Transformer
from regard.store import write_json
from regard.tasks import Classify, Translate
from regard.tasks.writer import NEVER_WRITTEN

OPSET = 18
LARGE = 1_500_000_000
"""Bytes of weights above which they lie beside the graph: a file of this format ends at 2 GB."""
SETTINGS = "regard.json"


def write(task: Translate, model: Transformer | RNNSeq2Seq, folder: Path) -> None:
    from torch.export import Dim  # takes a second, and most users never export

    graph = exportable(model)
    batch, source, past = Dim("batch"), Dim("source"), Dim("past")
    tokens_BK, lengths_B = torch.full((3, 5), EOS), torch.tensor([5, 4, 2])
    with torch.no_grad():
        held = _with_past(named(graph, graph.start(tokens_BK, lengths_B)))
    names = list(held)
    _write_graph(
        folder / "read.onnx",
        Read(graph),
        (tokens_BK, lengths_B),
        ({0: batch, 1: source}, {0: batch}),
        ["tokens", "lengths"],
        names,
    )
    free = tuple(
        {0: batch, 2: past if name.startswith("past") else source} if tensor.ndim == 4 else {0: batch}
        for name, tensor in held.items()
    )
    _write_graph(
        folder / "step.onnx",
        Step(graph, names),
        (torch.full((3,), BOS), lengths_B, tuple(held.values())),
        ({0: batch}, {0: batch}, free),
        ["last", "lengths", *names],
        ["logits", *(f"next_{name}" for name in names if name.startswith(CHANGING))],
    )
    write_tokenizers(task, folder)
    settings = {"begin": BOS, "end": EOS, "never": list(NEVER_WRITTEN), "most": task.config.max_length - 1}
    write_json(folder / SETTINGS, settings)
    (folder / "README.md").write_text(TRANSLATOR_CARD, "utf-8")


def write_classifier(task: Classify, model: nn.Module, folder: Path) -> None:
    from torch.export import Dim

    batch, length = Dim("batch"), Dim("length")
    _write_graph(
        folder / "model.onnx",
        exportable(model),
        (torch.full((3, 5), EOS), torch.tensor([5, 4, 2])),
        ({0: batch, 1: length}, {0: batch}),
        ["tokens", "lengths"],
        ["logits"],
    )
    write_tokenizer(task.tokenizer, folder, task.config.max_length)
    write_json(folder / "labels.json", list(task.labels))
    (folder / "README.md").write_text(CLASSIFIER_CARD, "utf-8")


def _with_past(held: dict[str, Tensor]) -> dict[str, Tensor]:
    """As after some steps: what a graph is traced with must not be empty."""
    return {
        name: held[name.replace("past", "memory")][:, :, :4].clone() if name.startswith("past") else tensor
        for name, tensor in held.items()
    }


def _write_graph(
    path: Path,
    graph: nn.Module,
    arguments: tuple[Any, ...],
    free: tuple[Any, ...],
    inputs: list[str],
    outputs: list[str],
) -> None:
    try:
        import onnxscript  # noqa: F401  torch exports with it
    except ImportError:
        raise _missing() from None
    n_bytes = sum(tensor.numel() * tensor.element_size() for tensor in graph.state_dict().values())
    with _quietly(), torch.no_grad(), tapped(graph, lambda site: _as_it_is):
        torch.onnx.export(
            graph,
            arguments,
            path,
            input_names=inputs,
            output_names=outputs,
            dynamic_shapes=free,
            opset_version=OPSET,
            external_data=n_bytes > LARGE,
            dynamo=True,
            verbose=False,
        )


@contextmanager
def _quietly() -> Iterator[None]:
    """What the exporter says is about torch, not about the model."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)


def _as_it_is(weights_BHQK: Tensor, v_BHKW: Tensor) -> Tensor:
    return weights_BHQK


def _missing() -> RunError:
    return RunError(
        "onnx: needs onnx, onnxscript and onnxruntime; install them with: pip install 'regard[onnx]'"
    )


class Engine:
    """The folder as onnxruntime loads it: greedy, as in examples/onnx_translate.py."""

    def __init__(self, folder: Path, search: Search) -> None:
        self.read, self.step = _session(folder / "read.onnx"), _session(folder / "step.onnx")
        self.name = _name()
        self.most = search.most
        self.names = [output.name for output in self.read.get_outputs()]
        self.changed = [output.name.removeprefix("next_") for output in self.step.get_outputs()[1:]]
        self.source, self.target = open_tokenizers(folder)

    def answer(self, texts: Sequence[str]) -> list[Answer]:
        written: list[list[int]] = [[] for _ in texts]

        def choose(logits_BV: NDArray[np.float32]) -> NDArray[np.int64]:
            logits_BV[:, list(NEVER_WRITTEN)] = -np.inf
            best_B: NDArray[np.int64] = logits_BV.argmax(-1)
            for row, piece in zip(written, best_B.tolist(), strict=True):
                row.append(piece)
            return best_B

        self._run(texts, choose, lambda: all(EOS in row for row in written), self.most)
        ended = [tuple(row[: row.index(EOS)] if EOS in row else row) for row in written]
        return [Answer(self.target.decode(list(ids)), ids, cut=len(ids) + 1 >= self.most) for ids in ended]

    def score(self, texts: Sequence[str], answers: Sequence[Answer]) -> list[list[float]]:
        forced = [iter((*answer.ids, EOS)) for answer in answers]
        scores: list[list[float]] = [[] for _ in texts]

        def choose(logits_BV: NDArray[np.float32]) -> NDArray[np.int64]:
            pieces = [next(pieces, PAD) for pieces in forced]
            for row, piece, log_probs in zip(scores, pieces, _log_softmax(logits_BV), strict=True):
                if piece != PAD:
                    row.append(float(log_probs[piece]))
            return np.array(pieces)

        self._run(texts, choose, lambda: False, max(len(answer.ids) for answer in answers) + 1)
        return scores

    def _run(self, texts: Sequence[str], choose: Any, over: Any, n_steps: int) -> None:
        tokens_BK, lengths_B = _padded(self.source, texts)
        read = self.read.run(None, {"tokens": tokens_BK, "lengths": lengths_B})
        state = dict(zip(self.names, read, strict=True))
        last_B = np.full(len(texts), BOS)
        for _ in range(n_steps):
            logits_BV, *after = self.step.run(None, {"last": last_B, "lengths": lengths_B} | state)
            state |= zip(self.changed, after, strict=True)
            last_B = choose(logits_BV)
            if over():
                break


class ClassifierEngine:
    def __init__(self, folder: Path) -> None:
        self.session, self.name = _session(folder / "model.onnx"), _name()
        self.source, _ = open_tokenizers(folder)
        self.labels = json.loads((folder / "labels.json").read_text("utf-8"))

    def answer(self, texts: Sequence[str]) -> list[Answer]:
        best = self._log_probs(texts).argmax(-1).tolist()
        return [Answer(self.labels[index], (index,)) for index in best]

    def score(self, texts: Sequence[str], answers: Sequence[Answer]) -> list[list[float]]:
        scores: list[list[float]] = self._log_probs(texts).tolist()
        return scores

    def _log_probs(self, texts: Sequence[str]) -> NDArray[np.float32]:
        tokens_BT, lengths_B = _padded(self.source, texts)
        (logits_BC,) = self.session.run(None, {"tokens": tokens_BT, "lengths": lengths_B})
        return _log_softmax(logits_BC)


def _padded(
    tokenizer: tokenizers.Tokenizer, texts: Sequence[str]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    found = [each.ids for each in tokenizer.encode_batch(list(texts))]
    lengths_B = np.array([len(ids) for ids in found])
    tokens_BT = np.full((len(found), lengths_B.max()), PAD)
    for row, ids in zip(tokens_BT, found, strict=True):
        row[: len(ids)] = ids
    return tokens_BT, lengths_B


def _log_softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    shifted = logits - logits.max(-1, keepdims=True)
    log_probs: NDArray[np.float32] = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return log_probs


def _runtime() -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise _missing() from None
    return onnxruntime


def _name() -> str:
    return f"onnxruntime {_runtime().__version__}"


def _session(path: Path) -> Any:
    runtime = _runtime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    return runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


TRANSLATOR_CARD = """# A translator for ONNX Runtime, trained and exported with regard

read.onnx takes `tokens` (batch × source, padded with 0) and `lengths` and gives the state of the decoder.
step.onnx takes `last` (at first `begin` of regard.json), `lengths` and that state; it gives `logits` and, as
`next_…`, what has changed of the state. tokenizer.json makes tokens of a text and adds the end; what is
written belongs to target/tokenizer.json, or to the same one where there is only that.
"""
CLASSIFIER_CARD = """# A classifier for ONNX Runtime, trained and exported with regard

model.onnx takes `tokens` (batch × length, padded with 0) and `lengths` and gives `logits`, one for each of
labels.json. tokenizer.json makes tokens of a text and adds its marks.
"""
