"""A translator as two graphs for onnxruntime: read.onnx and step.onnx (graphs.py).

What was written so far is free in length, as everything else is.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.interop.graphs import CHANGING, COPY_TOKENS, Read, Step, exportable, named
from regard.interop.here import Search
from regard.interop.onnx import SETTINGS, padded, runtime_name, session, write_graph
from regard.interop.parity import Answer, Floats, Ints, log_softmax
from regard.interop.tokens import open_tokenizers, write_tokenizers
from regard.models import RNNSeq2Seq, Transformer
from regard.runs.store import write_json
from regard.tasks.seq2seq import Seq2Seq
from regard.tasks.writer import NEVER_WRITTEN
from regard.text.tokenizer import BOS, EOS, PAD


def write(task: Seq2Seq[Any], model: Transformer | RNNSeq2Seq, folder: Path) -> None:
    from torch.export import Dim  # takes a second, and most users never export

    graph = exportable(model)
    batch, source, past = Dim("batch"), Dim("source"), Dim("past")
    tokens_BK, lengths_B = torch.full((3, 5), EOS), torch.tensor([5, 4, 2])
    with torch.no_grad():
        held = _with_past(named(graph, graph.start(tokens_BK, lengths_B)))
    names = list(held)
    write_graph(
        folder / "read.onnx",
        Read(graph),
        (tokens_BK, lengths_B),
        ({0: batch, 1: source}, {0: batch}),
        ["tokens", "lengths"],
        names,
    )
    places = {name: past if name.startswith("past") else source for name in names}
    free = tuple(
        {0: batch} | ({axis: places[name]} if (axis := _length_axis(name, tensor)) else {})
        for name, tensor in held.items()
    )
    write_graph(
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
    (folder / "README.md").write_text(CARD, "utf-8")


def _length_axis(name: str, tensor: Tensor) -> int | None:
    """Along which a tensor of the state has a place for each piece, if it has."""
    if name == COPY_TOKENS:
        return 1
    return 2 if tensor.ndim == 4 else None


def _with_past(held: dict[str, Tensor]) -> dict[str, Tensor]:
    """As after some steps: what a graph is traced with must not be empty."""
    return {
        name: held[name.replace("past", "memory")][:, :, :4].clone() if name.startswith("past") else tensor
        for name, tensor in held.items()
    }


class Engine:
    """The folder as onnxruntime loads it: greedy, as in examples/onnx_translate.py."""

    def __init__(self, folder: Path, search: Search) -> None:
        self.read, self.step = session(folder / "read.onnx"), session(folder / "step.onnx")
        self.name = runtime_name()
        self.most = search.most
        self.names = [output.name for output in self.read.get_outputs()]
        self.changed = [output.name.removeprefix("next_") for output in self.step.get_outputs()[1:]]
        self.source, self.target = open_tokenizers(folder)

    def answer(self, texts: Sequence[str]) -> list[Answer]:
        written: list[list[int]] = [[] for _ in texts]

        def choose(logits_BV: Floats) -> Ints:
            logits_BV[:, list(NEVER_WRITTEN)] = -np.inf
            best_B: Ints = logits_BV.argmax(-1)
            for row, piece in zip(written, best_B.tolist(), strict=True):
                row.append(piece)
            return best_B

        self._run(texts, choose, lambda: all(EOS in row for row in written), self.most)
        ended = [tuple(row[: row.index(EOS)] if EOS in row else row) for row in written]
        return [Answer(self.target.decode(list(ids)), ids, cut=len(ids) + 1 >= self.most) for ids in ended]

    def score(self, texts: Sequence[str], answers: Sequence[Answer]) -> list[list[float]]:
        forced = [iter((*answer.ids, EOS)) for answer in answers]
        scores: list[list[float]] = [[] for _ in texts]

        def choose(logits_BV: Floats) -> Ints:
            pieces = [next(pieces, PAD) for pieces in forced]
            for row, piece, log_probs in zip(scores, pieces, log_softmax(logits_BV), strict=True):
                if piece != PAD:
                    row.append(float(log_probs[piece]))
            return np.array(pieces)

        self._run(texts, choose, lambda: False, max(len(answer.ids) for answer in answers) + 1)
        return scores

    def _run(self, texts: Sequence[str], choose: Any, over: Any, n_steps: int) -> None:
        found = [each.ids for each in self.source.encode_batch(list(texts))]
        tokens_BK, lengths_B = padded(found), np.array([len(ids) for ids in found])
        read = self.read.run(None, {"tokens": tokens_BK, "lengths": lengths_B})
        state = dict(zip(self.names, read, strict=True))
        last_B = np.full(len(texts), BOS)
        for _ in range(n_steps):
            logits_BV, *after = self.step.run(None, {"last": last_B, "lengths": lengths_B} | state)
            state |= zip(self.changed, after, strict=True)
            last_B = choose(logits_BV)
            if over():
                break


CARD = """# A model for ONNX Runtime, trained and exported with regard

read.onnx takes `tokens` (batch × source, padded with 0) and `lengths` and gives the state of the decoder.
step.onnx takes `last` (at first `begin` of regard.json), `lengths` and that state; it gives `logits` and, as
`next_…`, what has changed of the state. tokenizer.json makes tokens of a text and adds the end; what is
written belongs to target/tokenizer.json, or to the same one where there is only that.
"""
