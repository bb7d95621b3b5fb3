"""Export of a translator as two graphs for onnxruntime: read.onnx and step.onnx (graphs.py).

The length of the decoder's past is dynamic, as are batch size and source length.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.interop.graphs import CHANGING, COPY_TOKENS, ReadGraph, StepGraph, exportable, name_state
from regard.interop.onnx import SETTINGS, pad, runtime_name, session, write_graph
from regard.interop.parity import Answer, Floats, Ints, log_softmax
from regard.interop.tokens import open_tokenizers, write_tokenizers
from regard.interop.translation_parity import Search
from regard.layers.inputs import tokens
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
        state = _with_past(name_state(graph, graph.start(tokens(tokens_BK, lengths_B))))
    names = list(state)
    write_graph(
        folder / "read.onnx",
        ReadGraph(graph),
        (tokens_BK, lengths_B),
        ({0: batch, 1: source}, {0: batch}),
        ["tokens", "lengths"],
        names,
    )
    lengths = {name: past if name.startswith("past") else source for name in names}
    dynamic = tuple(
        {0: batch} | ({axis: lengths[name]} if (axis := _length_axis(name, tensor)) else {})
        for name, tensor in state.items()
    )
    write_graph(
        folder / "step.onnx",
        StepGraph(graph, names),
        (torch.full((3,), BOS), lengths_B, tuple(state.values())),
        ({0: batch}, {0: batch}, dynamic),
        ["last", "lengths", *names],
        ["logits", *(f"next_{name}" for name in names if name.startswith(CHANGING))],
    )
    write_tokenizers(task, folder)
    settings = {"begin": BOS, "end": EOS, "never": list(NEVER_WRITTEN), "most": task.config.max_length - 1}
    write_json(folder / SETTINGS, settings)
    (folder / "README.md").write_text(CARD, "utf-8")


def _length_axis(name: str, tensor: Tensor) -> int | None:
    """Axis of a state tensor that has one entry per token, if any."""
    if name == COPY_TOKENS:
        return 1
    return 2 if tensor.ndim == 4 else None


def _with_past(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """State as after some steps: a graph cannot be traced with an empty past."""
    return {
        name: state[name.replace("past", "memory")][:, :, :4].clone() if name.startswith("past") else tensor
        for name, tensor in state.items()
    }


class ONNXTranslationEngine:
    """The exported folder as onnxruntime loads it, searched greedily as in examples/onnx_translate.py."""

    def __init__(self, folder: Path, search: Search) -> None:
        self.read, self.step = session(folder / "read.onnx"), session(folder / "step.onnx")
        self.name = runtime_name()
        self.max_tokens = search.max_tokens
        self.names = [output.name for output in self.read.get_outputs()]
        self.changed = [output.name.removeprefix("next_") for output in self.step.get_outputs()[1:]]
        self.source, self.target = open_tokenizers(folder)

    def answer(self, texts: Sequence[str]) -> list[Answer]:
        outputs: list[list[int]] = [[] for _ in texts]

        def choose(logits_BV: Floats) -> Ints:
            logits_BV[:, list(NEVER_WRITTEN)] = -np.inf
            best_B: Ints = logits_BV.argmax(-1)
            for row, token in zip(outputs, best_B.tolist(), strict=True):
                row.append(token)
            return best_B

        self._run(texts, choose, lambda: all(EOS in row for row in outputs), self.max_tokens)
        until_end = [tuple(row[: row.index(EOS)] if EOS in row else row) for row in outputs]
        return [
            Answer(self.target.decode(list(ids)), ids, truncated=len(ids) + 1 >= self.max_tokens)
            for ids in until_end
        ]

    def score(self, texts: Sequence[str], answers: Sequence[Answer]) -> list[list[float]]:
        forced = [iter((*answer.ids, EOS)) for answer in answers]
        scores: list[list[float]] = [[] for _ in texts]

        def choose(logits_BV: Floats) -> Ints:
            tokens = [next(answer_tokens, PAD) for answer_tokens in forced]
            for row, token, log_probs in zip(scores, tokens, log_softmax(logits_BV), strict=True):
                if token != PAD:
                    row.append(float(log_probs[token]))
            return np.array(tokens)

        self._run(texts, choose, lambda: False, max(len(answer.ids) for answer in answers) + 1)
        return scores

    def _run(self, texts: Sequence[str], choose: Any, is_done: Any, n_steps: int) -> None:
        sources = [encoding.ids for encoding in self.source.encode_batch(list(texts))]
        tokens_BK, lengths_B = pad(sources), np.array([len(ids) for ids in sources])
        tensors = self.read.run(None, {"tokens": tokens_BK, "lengths": lengths_B})
        state = dict(zip(self.names, tensors, strict=True))
        last_B = np.full(len(texts), BOS)
        for _ in range(n_steps):
            logits_BV, *after = self.step.run(None, {"last": last_B, "lengths": lengths_B} | state)
            state |= zip(self.changed, after, strict=True)
            last_B = choose(logits_BV)
            if is_done():
                break


CARD = """# A model for ONNX Runtime, trained and exported with regard

read.onnx takes `tokens` (batch × source, padded with 0) and `lengths` and returns the decoder's state.
step.onnx takes `last` (at first `begin` of regard.json), `lengths` and that state; it returns `logits` and,
as `next_…`, the tensors of the state that have changed. tokenizer.json tokenizes a text and adds EOS; the
output belongs to target/tokenizer.json, or to tokenizer.json if there is no other.
"""
