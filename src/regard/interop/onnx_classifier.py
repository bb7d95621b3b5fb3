"""Export of a classifier as a graph for onnxruntime: of one text, of two, or of two entities in a sentence.

tokenizer.json alone tokenizes and truncates the texts. Where entities are marked, it gets the text without
the marks, and their ids, which no text can spell, are inserted between the tokens (tasks/entities.py).
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from torch import nn

from regard.fields.entities import placed
from regard.files.row import Asked
from regard.interop.graphs import exportable
from regard.interop.label_parity import LabelEngine
from regard.interop.onnx import SETTINGS, Reader, TokenReader, pad, write_reader
from regard.interop.parity import Floats
from regard.interop.tokens import open_tokenizers, write_tokenizer
from regard.runs.store import write_json
from regard.tasks import Classify, ClassifyPair, Multilabel, Relation
from regard.text.entity_marks import MARKS, read_marked
from regard.text.tokenizer import Tokenizer

LABELS = "labels.json"


def write(task: Classify | Multilabel, model: nn.Module, folder: Path) -> None:
    write_reader(folder, TokenReader(exportable(model)), ["logits"], pairs=isinstance(task, ClassifyPair))
    max_tokens = None if isinstance(task, Relation) else task.config.max_length
    write_tokenizer(task.tokenizer, folder, max_tokens)
    write_json(folder / LABELS, list(task.labels))
    if settings := _settings(task):
        write_json(folder / SETTINGS, settings)
    (folder / "README.md").write_text(CARDS[task.kind], "utf-8")


def _settings(task: Classify | Multilabel) -> dict[str, Any]:
    """Content of regard.json: what else a caller must know."""
    if isinstance(task, Multilabel):
        return {"threshold": task.config.threshold, "separator": task.config.separator}
    if isinstance(task, Relation):
        special, first = task.tokenizer.special, task.input.width["vocab"] - len(MARKS)
        return {
            "before": list(special.begin),
            "after": special.end,
            "marks": {mark: first + number for number, mark in enumerate(MARKS)},
            "most": task.config.max_length,
        }
    return {}


class _Batch(NamedTuple):
    rows: list[list[int]]
    segments: list[list[int]]


def load_engine(folder: Path) -> LabelEngine[Any]:
    """Load the folder with onnxruntime and tokenizers."""
    reader = Reader(folder)
    path = folder / SETTINGS
    settings = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    encode = _MarkedEncoder(folder, settings) if "marks" in settings else _TextEncoder(folder)

    def logits(inputs: Sequence[Any]) -> Floats:
        rows, segments = encode(inputs)
        arrays = (pad(rows), np.array([len(row) for row in rows]))
        (logits_BC,) = reader(*arrays, pad(segments)) if reader.reads_pairs else reader(*arrays)
        return logits_BC

    labels = json.loads((folder / LABELS).read_text("utf-8"))
    return LabelEngine(reader.name, labels, settings.get("threshold"), logits)


class _TextEncoder:
    """Tokens of texts, or of pairs of texts."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer, _ = open_tokenizers(folder)

    def __call__(self, inputs: Sequence[Asked]) -> _Batch:
        texts = [text if isinstance(text, str) else (text["text"], text["second"]) for text in inputs]
        encodings = self.tokenizer.encode_batch(texts)
        return _Batch([each.ids for each in encodings], [each.type_ids for each in encodings])


class _MarkedEncoder:
    """Tokens of sentences in which two entities are marked."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        inner, _ = open_tokenizers(folder)
        self.tokenizer, self.settings = Tokenizer(inner), settings

    def __call__(self, inputs: Sequence[str]) -> _Batch:
        rows = [[*self.settings["before"], *self._ids(text), self.settings["after"]] for text in inputs]
        return _Batch(rows, [])

    def _ids(self, text: str) -> list[int]:
        first, max_tokens = self.settings["marks"][MARKS[0]], self.settings["most"]
        return placed(read_marked(text, "input"), self.tokenizer.encode, first, max_tokens).ids


_TITLE = "# {model} for ONNX Runtime, trained and exported with regard\n\n"
_TEXT = """model.onnx takes `tokens` (batch × length, padded with 0) and `lengths` and returns `logits`, one
for each label in labels.json. tokenizer.json tokenizes a text, truncates it and adds its special tokens.
"""
_SEVERAL = """
A text has every label whose probability, 1 / (1 + exp(-logit)), is at least `threshold` of regard.json.
"""
_PAIR = """model.onnx takes `tokens` (batch × length, padded with 0), `lengths` and `segments` (0 for the
first text, 1 for the second) and returns `logits`, one for each label in labels.json. tokenizer.json makes
tokens and segments of two texts (`ids` and `type_ids` of `encode(text, second)`), truncates the longer one
and adds the special tokens.
"""
_MARKED = """model.onnx takes `tokens` (batch × length, padded with 0) and `lengths` and returns `logits`, one
for each label in labels.json. Tokenize the text before, inside, between and after the entity marks
separately with tokenizer.json and `encode(text, add_special_tokens=False)`; a part of spaces only has no
tokens. Join the parts with the ids of the `marks` in regard.json, and put `before` in front and `after` at
the end. Of a sentence with more than `most` tokens, marks included, keep what is near the entities.
"""
CARDS = {
    "classify": _TITLE.format(model="A classifier") + _TEXT,
    "classify_pair": _TITLE.format(model="A classifier of text pairs") + _PAIR,
    "multilabel": _TITLE.format(model="A multilabel classifier") + _TEXT + _SEVERAL,
    "relation": _TITLE.format(model="A relation classifier") + _MARKED,
}
