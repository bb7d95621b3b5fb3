"""Export of a recommender as a graph for onnxruntime: numbers of items in, a score of every item out.

catalogue.json beside it names the items by number; so a caller needs no more than a few lines of numpy.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.fields.items import FILE
from regard.files.row import Asked
from regard.interop.graphs import exportable
from regard.interop.onnx import MODEL, SETTINGS, runtime_name, session, write_graph
from regard.interop.parity import Answer, Floats, log_softmax
from regard.runs.store import write_json
from regard.tasks import Recommend

INPUTS = ("items", "lengths", "times")


class HistoryReader(nn.Module):
    """A recommender whose inputs are arguments, as ONNX wants them: the scores after the last item."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, items_BT: Tensor, lengths_B: Tensor, times_BT: Tensor | None = None) -> Tensor:
        inputs = {"items": items_BT, "lengths": lengths_B}
        if times_BT is not None:
            inputs["times"] = times_BT
        at_B = torch.arange(items_BT.shape[0]) * items_BT.shape[1] + lengths_B - 1
        scores_BV: Tensor = self.model(inputs, at_B)
        return scores_BV


def write(task: Recommend, model: nn.Module, config: Any, folder: Path) -> None:
    """Write model.onnx, the catalogue, and regard.json: what is read of a history and what is left out."""
    from torch.export import Dim  # takes a second, and most users never export

    batch, length = Dim("batch"), Dim("length")
    items_BT = torch.zeros(3, min(5, task.config.max_length), dtype=torch.long)
    lengths_B = torch.tensor([items_BT.shape[1], 2, 1]).clamp(max=items_BT.shape[1])
    arguments = (items_BT, lengths_B, items_BT.double())
    shapes = ({0: batch, 1: length}, {0: batch}, {0: batch, 1: length})
    n = len(INPUTS) if getattr(config, "time_gaps", False) else len(INPUTS) - 1
    reader = HistoryReader(exportable(model))
    write_graph(folder / MODEL, reader, arguments[:n], shapes[:n], list(INPUTS[:n]), ["scores"])
    task.items.save(folder)
    settings = {
        "most": task.config.max_length,
        "hidden": task.mask if task.draws else None,
        "k": task.config.k,
        "remove_seen": task.config.remove_seen,
    }
    write_json(folder / SETTINGS, settings)
    (folder / "README.md").write_text(CARD, "utf-8")


@dataclass(frozen=True)
class ListEngine:
    """Either side of the parity check: lists of the k best items, and log-probabilities of all items."""

    name: str
    k: int
    remove_seen: bool
    numbers: Callable[[Asked], list[int]]
    """An input → the numbers of the known items of its history."""
    scores: Callable[[Sequence[Asked]], Floats]
    """Inputs → scores_BV."""

    def answer(self, inputs: Sequence[Asked]) -> list[Answer]:
        lists = []
        for history, scores_V in zip(inputs, self.scores(inputs), strict=True):
            allowed_V = scores_V.copy()
            if self.remove_seen:
                allowed_V[self.numbers(history)] = -np.inf
            best = np.argsort(-allowed_V, kind="stable")[: self.k]
            best = best[allowed_V[best] > -np.inf]
            lists.append(Answer(" ".join(map(str, best)), tuple(best.tolist())))
        return lists

    def score(self, inputs: Sequence[Asked], answers: Sequence[Answer]) -> list[list[float]]:
        log_probs: list[list[float]] = log_softmax(self.scores(inputs)).tolist()
        return log_probs


def our_engine(task: Recommend, model: nn.Module) -> ListEngine:
    device = next(model.parameters()).device

    def numbers(history: Asked) -> list[int]:
        (example,) = task.encode(task.asked([history]))
        known: list[int] = example.arrays["items"][example.arrays["items"] >= 0].tolist()
        return known

    def scores(inputs: Sequence[Asked]) -> Floats:
        batch = task.collate(task.encode(task.asked(inputs))).to(device)
        with torch.inference_mode():
            scores_BV: Floats = model(batch.inputs, batch.at_N).float().cpu().numpy()
        return scores_BV

    return ListEngine("regard", task.config.k, task.config.remove_seen, numbers, scores)


def load_engine(folder: Path) -> ListEngine:
    """Load the folder with onnxruntime."""
    graph = session(folder / MODEL)
    settings = json.loads((folder / SETTINGS).read_text("utf-8"))
    catalogue = json.loads((folder / FILE).read_text("utf-8"))["items"]
    number_of = {name: number for number, name in enumerate(catalogue)}

    def numbers(history: Asked) -> list[int]:
        names = history.split() if isinstance(history, str) else history
        return [number_of[name] for name in names if name in number_of]

    def scores(inputs: Sequence[Asked]) -> Floats:
        hidden = settings["hidden"]
        room = settings["most"] if hidden is None else max(1, settings["most"] - 1)
        rows = [numbers(history)[-room:] + ([] if hidden is None else [hidden]) for history in inputs]
        arrays: dict[str, NDArray[Any]] = dict(zip(INPUTS, _padded(rows), strict=True))
        wanted = [one.name for one in graph.get_inputs()]
        scores_BV: Floats = graph.run(None, {name: arrays[name] for name in wanted})[0]
        return scores_BV

    return ListEngine(runtime_name(), settings["k"], settings["remove_seen"], numbers, scores)


def _padded(rows: Sequence[Sequence[int]]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """items_BT, lengths_B and times_BT, which nobody has who types a history."""
    lengths_B = np.array([len(row) for row in rows])
    items_BT = np.zeros((len(rows), lengths_B.max()), np.int64)
    for items_T, row in zip(items_BT, rows, strict=True):
        items_T[: len(row)] = row
    return items_BT, lengths_B, np.zeros(items_BT.shape)


CARD = """# A recommender for ONNX Runtime, trained and exported with regard

model.onnx takes `items` (batch × length, padded with 0) and `lengths` and returns `scores`, one for each item
of the catalogue; where it also has an input `times`, give the seconds of each item, or zeros.
The number of an item is its place in the list `items` of catalogue.json, from 0. Of a history take known
items, the oldest first, of these the last `most` of regard.json. Where `hidden` is a number, take one item
less and put that number at the end: it stands for what comes next.
With `remove_seen`, set the scores of the items in the history to −∞. The best `k` scores are the
recommendations; softmax over all scores gives their probabilities.
"""
