"""Self-contained HTML: data, scripts and styles in one file that loads nothing.

Its content security policy allows this script, this style and inline images, and nothing else. Every text
reaches the page as JSON, and the document as `textContent`.
"""

import html
import json
import re
from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from string import Template
from typing import Any

from regard import durable
from regard.errors import RegardError
from regard.explain.assets import asset
from regard.explain.legible import visible

_MODULE_SYNTAX = re.compile(r"^(?:import [^;]+;\n|export )", re.MULTILINE)


def document(main: str, styles: Iterable[str], scripts: Iterable[str], title: str, data: Any) -> str:
    """Build a page from the asset `main` and from styles and scripts, which are assets too."""
    style, script = "\n".join(map(asset, styles)), _bundle(scripts)
    policy = {
        "default-src": "'none'",
        "script-src": _hash(script),
        "style-src": _hash(style),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
    }
    return Template(asset("frame.html")).substitute(
        policy="; ".join(f"{directive} {value}" for directive, value in policy.items()),
        title=html.escape(visible(title)[:80]),
        style=style,
        header=asset("header.html"),
        main=asset(main),
        data=json.dumps(data, ensure_ascii=False).replace("<", "\\u003c"),
        script=script,
    )


def in_notebook(page: str, title: str) -> str:
    """Embed a page in a sandboxed frame that may run its script and nothing else."""
    return (
        f'<iframe sandbox="allow-scripts allow-downloads" style="width:100%;height:760px;border:0" '
        f'title="{title}" srcdoc="{html.escape(page)}"></iframe>'
    )


def save(text: str, path: str | Path | None) -> str:
    """Write the text to `path`, if given, whole or not at all; returns the text."""
    if path is not None:
        try:
            durable.fill_named(Path(path), lambda place: place.write_text(text, encoding="utf-8"))
        except OSError as error:
            raise RegardError(f"{path}: cannot be written ({error.strerror})") from error
    return text


def _bundle(modules: Iterable[str]) -> str:
    """Join modules into one script, as a page opened from a disk cannot import other files."""
    return '"use strict";\n\n' + "\n".join(_MODULE_SYNTAX.sub("", asset(name)) for name in modules)


def _hash(inline: str) -> str:
    return f"'sha256-{b64encode(sha256(inline.encode()).digest()).decode()}'"
