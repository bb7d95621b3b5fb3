"""Explanation by replay: predict fast and fused, then force the finished answer through once with taps on.

Beside the maps it measures how far they may be trusted: every input piece is left out in turn, and the change
in the answer's probability is compared with the weight the piece was given.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.attention.tap import Trace, sites, tapped
from regard.errors import DataError
from regard.explain.explanation import AttentionMap, Explanation
from regard.explain.trust import MEASURED, measured, rate
from regard.fields.axis import Axis
from regard.files.row import Asked, text_of
from regard.tasks.task import Axes, Picture, Task, evaluating

MAX_MEASURED = 128
"""Pieces of the longest input whose maps are rated; beyond it the reader's patience would end."""
LEFT_OUT_TOGETHER = 16
"""Replays at once: each holds a number for every word of the vocabulary and every token of the answer."""


def explain(
    task: Task,
    model: nn.Module,
    description: str,
    asked: Asked,
    device: torch.device,
    prediction: Any = None,
) -> Explanation:
    """Predict unless told, replay the answer, and gather every attention map with its axes named."""
    (row,) = task.asked([asked])
    (example,) = task.encode([row])
    if not task.usable_input(example):
        empty = [role for role in task.inputs if not text_of(row.cells[role]).strip()] or task.inputs
        what = f"{' and '.join(empty)} must not be" if len(task.inputs) > 1 else "the text is"
        raise DataError(f"there is nothing to explain: {what} empty")
    with evaluating(model):
        if prediction is None:
            (prediction,) = task.predict(model, task.collate([example]).to(device))
        batch = task.force(example, prediction).to(device)
        axes = _through(model, task.axes(example, prediction))
        maps, told_T = _attention(task, model, batch, axes)
        others = [_map(picture, axes) for picture in task.pictures(model, batch)]
        given, answer = axes.by_name[axes.left_out], axes.by_name[axes.answer]
        looks_out = [m for m in maps if m.columns is given and m.rows is not given]
        trust = None
        if 1 < len(given.free) < MAX_MEASURED:
            change_KT = _changes(task, model, batch, told_T, given)
            if looks_out:
                best, trust = rate([m.head(None)[:, given.free] for m in looks_out], change_KT)
                looks_out = [looks_out[best]]
            else:
                looks_out, trust = [measured(change_KT, answer, given)], MEASURED
                others = [*looks_out, *others]
        shown = looks_out or others or maps
        if not shown:
            raise DataError(
                f"there is nothing to show: {description} has no attention, and what spoke for the answer is "
                f"measured for texts of 2 to {MAX_MEASURED - 1} pieces, not {len(given.free)}"
            )
    return Explanation(
        task=task.kind,
        model=description,
        input="\n".join(text_of(row.cells[role]) for role in task.inputs),
        output=prediction.text,
        maps=(*maps, *others),
        main=shown[-1].site,
        trust=trust,
    )


def _through(model: nn.Module, axes: Axes) -> Axes:
    """The axes of what the encoder makes of its input, such as the patches of a picture."""
    positions: Any = getattr(model, "positions", None)
    if positions is None:
        return axes
    return replace(axes, by_name=axes.by_name | {axes.left_out: positions(axes.by_name[axes.left_out])})


def _attention(task: Task, model: nn.Module, batch: Any, axes: Axes) -> tuple[list[AttentionMap], Tensor]:
    """Every attention map of a forced batch of one, and the log-probabilities of what is forced."""
    traces = {name: Trace() for name in sites(model)}
    with tapped(model, traces.get):
        told_T = task.replay(model, batch)[0]
    maps = []
    for site, trace in traces.items():
        title, rows, columns = axes.titled(site)
        weights_HQK = trace.weights_BHQK[0].float().cpu().numpy()
        answering_HQK = weights_HQK[:, -len(rows) :]  # the others only read what was given
        maps.append(AttentionMap(site, title, answering_HQK, rows, columns))
    return maps, told_T


def _map(picture: Picture, axes: Axes) -> AttentionMap:
    weights_1QK = picture.weights_QK[None].float().cpu().numpy()
    rows, columns = axes.by_name[picture.rows], axes.by_name[picture.columns]
    return AttentionMap(picture.site, picture.title, weights_1QK, rows, columns, holds="probability")


def _changes(task: Task, model: nn.Module, batch: Any, told_T: Tensor, axis: Axis) -> np.ndarray:
    """The log-probability that each answer token loses without each of these units: (units, tokens)."""
    units = axis.free
    parts = [units[at : at + LEFT_OUT_TOGETHER] for at in range(0, len(units), LEFT_OUT_TOGETHER)]
    told_KT = torch.cat([task.replay(model, task.leave_out(batch, axis, part)) for part in parts])
    change_KT: np.ndarray = (told_T - told_KT).float().cpu().numpy()
    return change_KT
