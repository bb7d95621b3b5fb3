"""An explanation as one HTML file.

Weights travel as deflated fixed point, by byte plane: six layers of eight heads over 64 pieces, encoder,
decoder and cross together, stay under one megabyte.
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
"""Weight 1.0 on the wire. Steps of 6e-5: finer than any number shown, coarse enough to compress."""

LOOKS = {"palette": SEQUENTIAL.tobytes().hex(), "strings": STRINGS}
"""What every page is given beside its explanation."""

SCRIPTS = ("given.js", "numbers.js", "figure.js", "save.js", "view.js", "overview.js", "page.js")


def render(explanation: "Explanation") -> str:
    return document("page.html", ["page.css"], SCRIPTS, explanation.input, payload(explanation) | LOOKS)


def payload(explanation: "Explanation", *, packed: bool = True) -> dict[str, Any]:
    """What there is to draw; axes are listed once, however many maps share them."""
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
    return {"sentences": {code: visible(said) for code, said in sentences.items()}, "score": trust.score}


def _axis(axis: Axis) -> dict[str, Any]:
    lies = {"grid": axis.grid, "seconds": axis.seconds}
    shown = {"name": visible(axis.name), "labels": [*map(visible, axis.labels)], "unit": axis.unit}
    return shown | {name: list(places) for name, places in lies.items() if places is not None}


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
    """Fixed point, all low bytes before all high bytes (like bytes compress well), deflated, base64."""
    fixed = np.rint(weights_HQK.clip(0, 1) * FULL_SCALE).astype("<u2").ravel()
    planes = fixed.view(np.uint8).reshape(-1, 2).T
    return b64encode(zlib.compress(planes.tobytes(), 9)).decode()
