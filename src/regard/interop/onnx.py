"""Graphs that onnxruntime runs with nothing but a tokenizer beside it (`regard[onnx]`).

A translator is two of them (onnx_translator.py); other models are one, model.onnx. Batch size and lengths are
dynamic. Attention is exported as a tap computes it, in plain operators, which are the same for every score,
mask, position and number of heads.
"""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.attention.tap import tapped
from regard.errors import RunError
from regard.interop.parity import Floats, Ints
from regard.layers.inputs import tokens
from regard.text.tokenizer import EOS, PAD

OPSET = 18
LARGE = 1_500_000_000
"""Bytes of weights above which they go into a second file: the format ends at 2 GB."""
SETTINGS = "regard.json"
MODEL = "model.onnx"
INPUTS = ("tokens", "lengths", "segments")


class TokenReader(nn.Module):
    """A model whose inputs are arguments, as ONNX wants them, and not named tensors."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens_BT: Tensor, lengths_B: Tensor, segments_BT: Tensor | None = None) -> Any:
        return self.model(tokens(tokens_BT, lengths_B, segments_BT))


def write_reader(folder: Path, graph: nn.Module, outputs: list[str], *, pairs: bool = False) -> None:
    """Write model.onnx: `tokens`, `lengths` and, for pairs of texts, `segments` → `outputs`.

    Pairs always have `segments`, even for an encoder without segment embeddings.
    """
    from torch.export import Dim  # takes a second, and most users never export

    batch, length = Dim("batch"), Dim("length")
    tokens_BT, lengths_B = torch.full((3, 5), EOS), torch.tensor([5, 4, 2])
    arguments = (tokens_BT, lengths_B, torch.zeros_like(tokens_BT))
    dynamic = ({0: batch, 1: length}, {0: batch}, {0: batch, 1: length})
    n = len(INPUTS) if pairs else len(INPUTS) - 1
    write_graph(folder / MODEL, graph, arguments[:n], dynamic[:n], list(INPUTS[:n]), outputs)


def write_graph(
    path: Path,
    graph: nn.Module,
    arguments: tuple[Any, ...],
    dynamic_shapes: tuple[Any, ...],
    inputs: list[str],
    outputs: list[str],
) -> None:
    try:
        import onnxscript  # noqa: F401  torch exports with it
    except ImportError:
        raise _missing() from None
    n_bytes = sum(tensor.numel() * tensor.element_size() for tensor in graph.state_dict().values())
    with _quietly(), torch.no_grad(), tapped(graph, lambda site: _unchanged):
        torch.onnx.export(
            graph,
            arguments,
            path,
            input_names=inputs,
            output_names=outputs,
            dynamic_shapes=dynamic_shapes,
            opset_version=OPSET,
            external_data=n_bytes > LARGE,
            dynamo=True,
            verbose=False,
        )


@contextmanager
def _quietly() -> Iterator[None]:
    """Silence the exporter, whose warnings are about torch and not about the model."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)


def _unchanged(weights_BHQK: Tensor, v_BHKW: Tensor) -> Tensor:
    return weights_BHQK


def _missing() -> RunError:
    return RunError(
        "onnx: needs onnx, onnxscript and onnxruntime; install them with: pip install 'regard[onnx]'"
    )


class Reader:
    """A model.onnx loaded by onnxruntime."""

    def __init__(self, folder: Path) -> None:
        self.session, self.name = session(folder / MODEL), runtime_name()
        self.reads_pairs = len(self.session.get_inputs()) == len(INPUTS)

    def __call__(self, *inputs: Ints) -> list[Floats]:
        """Run the graph on tokens_BT, lengths_B and, for pairs of texts, segments_BT."""
        outputs: list[Floats] = self.session.run(None, dict(zip(INPUTS, inputs, strict=False)))
        return outputs


def pad(rows: Sequence[Sequence[int]]) -> Ints:
    tokens_BT = np.full((len(rows), max(map(len, rows))), PAD)
    for tokens_T, row in zip(tokens_BT, rows, strict=True):
        tokens_T[: len(row)] = row
    return tokens_BT


def session(path: Path) -> Any:
    runtime = _runtime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    return runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def runtime_name() -> str:
    return f"onnxruntime {_runtime().__version__}"


def _runtime() -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise _missing() from None
    return onnxruntime
