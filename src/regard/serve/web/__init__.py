"""The page, as files the server holds in memory: no path that a client sends ever meets a disk.

Look, colours and weights are drawn as in the explanation pages: their files are served as they are.
"""

import json
from importlib.resources import files
from string import Template
from typing import Any

from regard.explain.assets import STRINGS, asset
from regard.explain.page import COMMON_DATA

KINDS = {
    "css": "text/css",
    "html": "text/html",
    "js": "text/javascript",
    "json": "application/json",
    "svg": "image/svg+xml",
}
OWN = (
    "page.css",
    "page.js",
    "listening.js",
    "microphone.js",
    "dom.js",
    "language.js",
    "ask.js",
    "answers.js",
    "drop.js",
    "plane_map.js",
    "settings.js",
    "attention.js",
    "basket.js",
    "forecast.js",
    "icon.svg",
)


def page_files() -> dict[str, tuple[str, bytes]]:
    """Paths, with kind and content of what is there."""
    ours = {name: _own(name) for name in OWN}
    ours |= {
        "base.css": asset("page.css"),
        "numbers.js": asset("numbers.js"),
        "figure.js": asset("figure.js"),
        "plane.js": asset("plane.js"),
        "looks.json": json.dumps(_looks()),
    }
    texts = {"/": ("html", Template(_own("index.html")).substitute(header=asset("header.html")))}
    texts |= {f"/web/{name}": (name.rpartition(".")[2], text) for name, text in ours.items()}
    return {path: (f"{KINDS[kind]}; charset=utf-8", text.encode()) for path, (kind, text) in texts.items()}


def _own(name: str) -> str:
    return files("regard.serve").joinpath("web", name).read_text("utf-8")


def _looks() -> dict[str, Any]:
    own = json.loads(_own("strings.json"))
    return {
        "palette": COMMON_DATA["palette"],
        "strings": {code: STRINGS[code] | own[code] for code in STRINGS},
    }
