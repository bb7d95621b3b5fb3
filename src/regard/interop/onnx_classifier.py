"""A model that gives labels as a graph for onnxruntime: of a text, of two, of a sentence with two entities.

Texts are made tokens by tokenizer.json alone, which cuts them too. Where entities are marked it is given the
text without the marks; their ids, which no text can spell, are put among the others (tasks/entities.py).
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from torch import nn

from regard.files.row import Asked
from regard.interop.graphs import exportable
from regard.interop.labelling import Side
from regard.interop.onnx import SETTINGS, Reader, padded, write_reader
from regard.interop.parity import Floats
from regard.interop.tokens import open_tokenizers, write_tokenizer
from regard.runs.store import write_json
from regard.tasks import Classify, ClassifyPair, Multilabel, Relation
from regard.tasks.entities import placed
from regard.text.marked import MARKS, read_marked
from regard.text.tokenizer import Tokenizer

LABELS = "labels.json"


def write(task: Classify | Multilabel, model: nn.Module, folder: Path) -> None:
    write_reader(folder, exportable(model), ["logits"], pairs=isinstance(task, ClassifyPair))
    most = None if isinstance(task, Relation) else task.config.max_length
    write_tokenizer(task.tokenizer, folder, most)
    write_json(folder / LABELS, list(task.labels))
    if settings := _settings(task):
        write_json(folder / SETTINGS, settings)
    (folder / "README.md").write_text(CARDS[task.kind], "utf-8")


def _settings(task: Classify | Multilabel) -> dict[str, Any]:
    """What else must be known to ask it, or to read what it says."""
    if isinstance(task, Multilabel):
        return {"threshold": task.config.threshold, "separator": task.config.separator}
    if isinstance(task, Relation):
        marks, first = task.tokenizer.marks, task.first_mark
        return {
            "before": list(marks.begin),
            "after": marks.end,
            "marks": {mark: first + number for number, mark in enumerate(MARKS)},
            "most": task.config.max_length,
        }
    return {}


class _Batch(NamedTuple):
    rows: list[list[int]]
    segments: list[list[int]]


def there(folder: Path) -> Side[Any]:
    """The folder as onnxruntime and tokenizers load it."""
    reader = Reader(folder)
    path = folder / SETTINGS
    told = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    read = _Sentences(folder, told) if "marks" in told else _Texts(folder)

    def logits(asked: Sequence[Any]) -> Floats:
        rows, segments = read(asked)
        given = (padded(rows), np.array([len(row) for row in rows]))
        (logits_BC,) = reader(*given, padded(segments)) if reader.reads_pairs else reader(*given)
        return logits_BC

    labels = json.loads((folder / LABELS).read_text("utf-8"))
    return Side(reader.name, labels, told.get("threshold"), logits)


class _Texts:
    def __init__(self, folder: Path) -> None:
        self.tokenizer, _ = open_tokenizers(folder)

    def __call__(self, asked: Sequence[Asked]) -> _Batch:
        given = [one if isinstance(one, str) else (one["text"], one["second"]) for one in asked]
        found = self.tokenizer.encode_batch(given)
        return _Batch([each.ids for each in found], [each.type_ids for each in found])


class _Sentences:
    def __init__(self, folder: Path, told: dict[str, Any]) -> None:
        inner, _ = open_tokenizers(folder)
        self.tokenizer, self.told = Tokenizer(inner), told

    def __call__(self, asked: Sequence[str]) -> _Batch:
        rows = [[*self.told["before"], *self._pieces(text), self.told["after"]] for text in asked]
        return _Batch(rows, [])

    def _pieces(self, text: str) -> list[int]:
        first, most = self.told["marks"][MARKS[0]], self.told["most"]
        return placed(read_marked(text, "input"), self.tokenizer.encode, first, most).ids


_TITLE = "# {what} for ONNX Runtime, trained and exported with regard\n\n"
_TEXT = """model.onnx takes `tokens` (batch × length, padded with 0) and `lengths` and gives `logits`, one for
each of labels.json. tokenizer.json makes tokens of a text, cuts a long one and adds its marks.
"""
_SEVERAL = """
A text has every label whose probability, 1 / (1 + exp(-logit)), is at least `threshold` of regard.json.
"""
_PAIR = """model.onnx takes `tokens` (batch × length, padded with 0), `lengths` and `segments` (0 for the
first text, 1 for the second) and gives `logits`, one for each of labels.json. tokenizer.json makes tokens and
segments of two texts (`ids` and `type_ids` of `encode(text, second)`), cuts the longer one and adds their
marks.
"""
_MARKED = """model.onnx takes `tokens` (batch × length, padded with 0) and `lengths` and gives `logits`, one
for each of labels.json. tokenizer.json makes tokens of what stands before, in, between and after the marks,
each by itself, with `encode(text, add_special_tokens=False)`; spaces alone have none. Between them stand the
ids that regard.json has for the `marks`. `before` stands before them all, `after` after them. Of a sentence
with more than `most` pieces and marks read what is near the entities.
"""
CARDS = {
    "classify": _TITLE.format(what="A classifier") + _TEXT,
    "classify_pair": _TITLE.format(what="A classifier of pairs") + _PAIR,
    "multilabel": _TITLE.format(what="A classifier of several labels") + _TEXT + _SEVERAL,
    "relation": _TITLE.format(what="A relater") + _MARKED,
}
