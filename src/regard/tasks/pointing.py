"""The pointing score: when a word of a caption names an object, is attention highest inside the box of it?"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from regard.attention.tap import Trace, sites, tapped
from regard.fields.axis import Axis
from regard.tasks.prediction import Written

Pointed = tuple[int, int]
"""Hits, and words that name an object."""


def pointed(task: Any, model: Any, batch: Any, answers: Sequence[Written]) -> list[Pointed]:
    """Hits and named objects of every answer; of several heads and layers that look, their mean counts."""
    if not any(example.row.cells.get("objects") for example in batch.examples):
        return [(0, 0)] * len(answers)
    traces = {name: Trace() for name in sites(model) if task.site_axes(name)[1:] == ("target", "source")}
    with tapped(model, traces.get):
        task.forward(model, task.forced(batch, answers))
    looks_BTK = torch.stack([trace.weights_BHQK.mean(1) for trace in traces.values()]).mean(0)
    n_rows, n_columns, _ = task.source.shape
    axis = model.positions(Axis("", (), grid=(n_rows, n_columns)))
    return [
        _of_one(task, example, answer, looks_TK[:, axis.free].cpu(), axis.grid)
        for example, answer, looks_TK in zip(batch.examples, answers, looks_BTK, strict=True)
    ]


def _of_one(task: Any, example: Any, answer: Written, looks_TK: Tensor, grid: tuple[int, int]) -> Pointed:
    objects: Sequence[Mapping[str, Any]] = example.row.cells.get("objects") or ()
    hits = named = 0
    for word, places in task.words(answer.ids) if objects else ():
        meant = task.named(word, objects)
        if not meant:
            continue
        row, column = divmod(int(looks_TK[places].mean(0).argmax()), grid[1])
        at = (column + 0.5) / grid[1], (row + 0.5) / grid[0]
        value = task.value(example.row)
        boxes = (task.source.region(value, one["box"]) for one in meant)
        hits += any(left <= at[0] < right and top <= at[1] < bottom for left, top, right, bottom in boxes)
        named += 1
    return hits, named
