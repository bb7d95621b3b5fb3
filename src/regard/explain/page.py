"""An explanation as one HTML file: data, drawing code and style in a document that asks nobody for anything.

The policy in its head allows this script, this style and inline images, and nothing else. Every text reaches
the page as JSON, and the document as `textContent`. Weights travel as deflated fixed point, by byte plane:
six layers of eight heads over 64 pieces, encoder, decoder and cross together, stay under one megabyte.
"""

import html
import json
import zlib
from base64 import b64encode
from hashlib import sha256
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.explain.assets import STRINGS, asset
from regard.explain.colour import SEQUENTIAL
from regard.explain.legible import visible

if TYPE_CHECKING:
    from regard.explain.explanation import AttentionMap, Axis, Explanation, Trust, Weights

FULL_SCALE = 2**14
"""Weight 1.0 on the wire. Steps of 6e-5: finer than any number shown, coarse enough to compress."""

SCRIPTS = ("numbers.js", "figure.js", "save.js", "view.js", "overview.js", "page.js")


def render(explanation: "Explanation") -> str:
    script = "\n".join(map(asset, SCRIPTS))
    style = asset("page.css")
    policy = {
        "default-src": "'none'",
        "script-src": _hash(script),
        "style-src": _hash(style),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
    }
    return Template(asset("page.html")).substitute(
        policy="; ".join(f"{directive} {value}" for directive, value in policy.items()),
        title=html.escape(visible(explanation.input)[:80]),
        style=style,
        data=json.dumps(payload(explanation), ensure_ascii=False).replace("<", "\\u003c"),
        script=script,
    )


def payload(explanation: "Explanation") -> dict[str, Any]:
    """What the page is given; axes are listed once, however many maps share them."""
    axes = list(dict.fromkeys(axis for each in explanation.maps for axis in (each.rows, each.columns)))
    return {
        "task": visible(explanation.task),
        "model": visible(explanation.model),
        "input": visible(explanation.input),
        "output": visible(explanation.output),
        "main": explanation.sites.index(explanation.main),
        "trust": explanation.trust and _trust(explanation.trust),
        "axes": [{"name": visible(axis.name), "labels": [*map(visible, axis.labels)]} for axis in axes],
        "maps": [_map(each, axes) for each in explanation.maps],
        "fullScale": FULL_SCALE,
        "palette": SEQUENTIAL.tobytes().hex(),
        "strings": STRINGS,
    }


def _trust(trust: "Trust") -> dict[str, Any]:
    sentences = {"en": trust.sentence, "zh": trust.in_chinese or trust.sentence}
    return {"sentences": {code: visible(said) for code, said in sentences.items()}, "score": trust.score}


def _map(attention: "AttentionMap", axes: list["Axis"]) -> dict[str, Any]:
    return {
        "site": visible(attention.site),
        "title": visible(attention.title),
        "heads": attention.n_heads,
        "rows": axes.index(attention.rows),
        "columns": axes.index(attention.columns),
        "packed": pack(attention.weights_HQK),
    }


def pack(weights_HQK: "Weights") -> str:
    """Fixed point, all low bytes before all high bytes (like bytes compress well), deflated, base64."""
    fixed = np.rint(weights_HQK.clip(0, 1) * FULL_SCALE).astype("<u2").ravel()
    planes = fixed.view(np.uint8).reshape(-1, 2).T
    return b64encode(zlib.compress(planes.tobytes(), 9)).decode()


def _hash(inline: str) -> str:
    return f"'sha256-{b64encode(sha256(inline.encode()).digest()).decode()}'"
