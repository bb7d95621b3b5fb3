"""The explanation page as one HTML file.

Weights are stored as deflated fixed-point numbers, by byte plane: six layers of eight heads over 64 tokens,
encoder, decoder and cross-attention together, stay under one megabyte.
"""

import zlib
from base64 import b64encode
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.explain.assets import STRINGS
from regard.explain.colour import SEQUENTIAL
from regard.explain.document import document
from regard.explain.legible import visible
from regard.fields.axis import Axis

if TYPE_CHECKING:
    from regard.explain.explanation import AttentionMap, Explanation, Trust, Weights

FULL_SCALE = 2**14
"""Fixed-point value of weight 1.0. Steps of 6e-5 are finer than any displayed number, and compress well."""

COMMON_DATA = {"palette": SEQUENTIAL.tobytes().hex(), "strings": STRINGS}
"""Data that every page gets in addition to its explanation."""

SCRIPTS = ("given.js", "numbers.js", "figure.js", "save.js", "plane.js", "view.js", "overview.js", "page.js")


def render(explanation: "Explanation") -> str:
    return document("page.html", ["page.css"], SCRIPTS, explanation.input, payload(explanation) | COMMON_DATA)


def payload(explanation: "Explanation", *, packed: bool = True) -> dict[str, Any]:
    """Data of the page; axes are listed once, however many maps share them."""
    axes = list(dict.fromkeys(axis for each in explanation.maps for axis in (each.rows, each.columns)))
    return {
        "task": visible(explanation.task),
        "model": visible(explanation.model),
        "input": visible(explanation.input),
        "output": visible(explanation.output),
        "main": explanation.sites.index(explanation.main),
        "trust": explanation.trust and _trust(explanation.trust),
        "axes": [_axis(axis) for axis in axes],
        "maps": [_map(each, axes) | _weights(each, packed) for each in explanation.maps],
        "fullScale": FULL_SCALE,
    }


def _trust(trust: "Trust") -> dict[str, Any]:
    sentences = {"en": trust.sentence, "zh": trust.in_chinese or trust.sentence}
    return {
        "sentences": {code: visible(sentence) for code, sentence in sentences.items()},
        "score": trust.score,
    }


def _axis(axis: Axis) -> dict[str, Any]:
    coordinates = {"grid": axis.grid, "seconds": axis.seconds}
    told: dict[str, Any] = {
        "name": visible(axis.name),
        "labels": [*map(visible, axis.labels)],
        "unit": axis.unit,
    }
    told |= {name: list(values) for name, values in coordinates.items() if values is not None}
    if axis.grid is not None:
        told["fixed"] = sorted(axis.fixed)
    if axis.picture is not None:
        told["picture"] = b64encode(axis.picture).decode()
    return told


def _map(attention: "AttentionMap", axes: list[Axis]) -> dict[str, Any]:
    return {
        "site": visible(attention.site),
        "title": visible(attention.title),
        "holds": attention.holds,
        "heads": attention.n_heads,
        "rows": axes.index(attention.rows),
        "columns": axes.index(attention.columns),
    }


def _weights(attention: "AttentionMap", packed: bool) -> dict[str, Any]:
    if packed:
        return {"packed": pack(attention.weights_HQK)}
    return {"weights": attention.weights_HQK.astype(float).round(4).tolist()}


def pack(weights_HQK: "Weights") -> str:
    """Encode weights as fixed point, low bytes before high bytes (which compresses well), in base64."""
    fixed = np.rint(weights_HQK.clip(0, 1) * FULL_SCALE).astype("<u2").ravel()
    planes = fixed.view(np.uint8).reshape(-1, 2).T
    return b64encode(zlib.compress(planes.tobytes(), 9)).decode()
