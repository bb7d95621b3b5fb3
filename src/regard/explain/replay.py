"""Explanation by replay: predict with fused kernels, then force the answer through once with taps on.

It also measures how far to trust the maps: every input token is left out in turn, and the change in the
answer's probability is compared with the token's weight.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.attention.tap import Trace, sites, tapped
from regard.errors import DataError
from regard.explain.explanation import AttentionMap, Explanation
from regard.explain.rollout import rollout
from regard.explain.trust import leave_one_out_map, measured, rate_maps
from regard.fields.axis import Axis
from regard.files.row import Asked, text_of
from regard.tasks.task import Axes, Picture, Task, evaluating

MAX_MEASURED = 128
"""Longest input, in tokens, whose maps are rated; longer ones would take too long."""
MAX_MEASURED_PLANE = 256
"""The same of a plane, in patches: those of 224 × 224 pixels are 196."""
REPLAYS_PER_BATCH = 16
"""Replays computed at once; each holds a logit per token of the vocabulary and step of the answer."""


def explain(
    task: Task,
    model: nn.Module,
    description: str,
    query: Asked,
    device: torch.device,
    prediction: Any = None,
) -> Explanation:
    """Predict unless a prediction is given, replay it, and collect every attention map with its axes."""
    (row,) = task.asked([query])
    (example,) = task.encode([row])
    if not task.is_answerable(example):
        empty = [role for role in task.inputs if not text_of(row.cells[role]).strip()] or task.inputs
        fault = f"{' and '.join(empty)} must not be" if len(task.inputs) > 1 else "the text is"
        raise DataError(f"there is nothing to explain: {fault} empty")
    with evaluating(model):
        if prediction is None:
            ((_, prediction),) = task.predict(model, task.collate([example]).to(device))
        batch = task.force(example, prediction).to(device)
        axes = _through(model, task.axes(example, prediction))
        maps, log_probs_T = _attention(task, model, batch, axes)
        pictures = task.pictures(model, batch)
        others = [_map(picture, axes) for picture in pictures]
        inputs, answer = axes.by_name[axes.left_out], axes.by_name[axes.answer]
        if inputs.grid is not None:
            maps += _through_layers(model, maps, answer, inputs)
        to_inputs = [m for m in maps if m.columns is inputs and m.rows is not inputs]
        to_inputs += [one for one, picture in zip(others, pictures, strict=True) if picture.rated]
        trust = None
        most = MAX_MEASURED if inputs.grid is None else MAX_MEASURED_PLANE + 1
        if 1 < len(inputs.free) < most:
            change_KT = _changes(task, model, batch, log_probs_T, inputs)
            left_out = leave_one_out_map(change_KT, answer, inputs)
            if inputs.grid is not None or axes.quantity is not None or not to_inputs:
                others = [left_out, *others]
            if to_inputs:
                maps_QK = [m.head(None)[:, inputs.free] for m in to_inputs]
                best, trust = rate_maps(maps_QK, change_KT, inputs.unit, axes.quantity)
                to_inputs = [to_inputs[best]]
            if trust is None or (axes.quantity is not None and not trust.score):
                to_inputs, trust = [left_out], measured(inputs.unit, axes.quantity)
            trust = trust.beside(task.remark(model, batch, inputs))
        candidates = to_inputs or others or maps
        if not candidates:
            raise DataError(
                f"there is nothing to show: {description} has no attention, and leaving out {inputs.units} "
                f"is only measured where there are 2 to {most - 1} of them, not {len(inputs.free)}"
            )
    return Explanation(
        task=task.kind,
        model=description,
        input=task.as_text(row),
        output=prediction.text,
        maps=(*maps, *others),
        main=candidates[-1].site,
        trust=trust,
    )


def _through(model: nn.Module, axes: Axes) -> Axes:
    """The axes of what the encoder makes of its input, such as the patches of a picture."""
    positions: Any = getattr(model, "positions", None)
    if positions is None:
        return axes
    return replace(axes, by_name=axes.by_name | {axes.left_out: positions(axes.by_name[axes.left_out])})


def _attention(task: Task, model: nn.Module, batch: Any, axes: Axes) -> tuple[list[AttentionMap], Tensor]:
    """Attention maps of a forced batch of one, and the log-probabilities of the forced answer."""
    traces = {name: Trace() for name in sites(model)}
    scopes = {name: site.scope for name, site in sites(model).items()}
    with tapped(model, traces.get):
        log_probs_T = task.replay(model, batch)[0]
    maps = []
    for site, trace in traces.items():
        title, rows, columns = axes.titled(site)
        row = min(axes.row, len(trace.weights_BHQK) - 1)
        weights_HQK = trace.weights_BHQK[row].float().cpu().numpy()
        answering_HQK = weights_HQK[:, -len(rows) :]  # the rows before only read the input
        maps.append(AttentionMap(site, _scoped(title, scopes[site]), answering_HQK, rows, columns))
    return maps, log_probs_T


def _scoped(title: str, scope: str) -> str:
    """The title of a map, and what the map cannot show, if there is such."""
    return f"{title} ({scope})" if scope else title


def _through_layers(
    model: nn.Module, attention: Sequence[AttentionMap], answer: Axis, inputs: Axis
) -> list[AttentionMap]:
    """Maps from what is pooled for the answer to the inputs: by the last layer, and rolled out over all.

    A pooling that attends shows by itself what it reads of the last layer.
    """
    layers = [one for one in attention if one.rows is inputs and one.columns is inputs]
    if not layers:
        return []
    weights = [torch.from_numpy(one.weights_HQK) for one in layers]
    pooled = [one for one in attention if one.rows is answer and one.columns is inputs]
    if pooled:
        start_QK = torch.from_numpy(pooled[-1].head(None))
    else:
        pooling: Any = model.pooling
        start_QK = pooling.shares(len(inputs))[None]
    rolled_QK = start_QK @ rollout([one[None] for one in weights])[0]
    to_inputs = f"{answer.name} → {inputs.units}"
    found = [("rollout", f"rollout of all layers: {to_inputs}", rolled_QK[None])]
    if not pooled:
        found.insert(0, ("last-layer", f"last layer: {to_inputs}", start_QK @ weights[-1]))
    return [
        AttentionMap(site, title, weights_HQK.numpy(), answer, inputs) for site, title, weights_HQK in found
    ]


def _map(picture: Picture, axes: Axes) -> AttentionMap:
    weights_1QK = picture.weights_QK[None].float().cpu().numpy()
    rows, columns = axes.by_name[picture.rows], axes.by_name[picture.columns]
    return AttentionMap(picture.site, picture.title, weights_1QK, rows, columns, picture.holds)


def _changes(task: Task, model: nn.Module, batch: Any, log_probs_T: Tensor, axis: Axis) -> np.ndarray:
    """Log-probability that each answer token loses without each unit of the axis: (units, tokens)."""
    units = axis.free
    parts = [units[at : at + REPLAYS_PER_BATCH] for at in range(0, len(units), REPLAYS_PER_BATCH)]
    without_KT = torch.cat([task.replay(model, task.leave_out(batch, axis, part)) for part in parts])
    change_KT: np.ndarray = (log_probs_T - without_KT).float().cpu().numpy()
    return change_KT
