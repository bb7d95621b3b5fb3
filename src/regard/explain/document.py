"""One HTML file that asks nobody for anything: data, drawing code and style in one document.

The policy in its head allows this script, this style and inline images, and nothing else. Every text reaches
the page as JSON, and the document as `textContent`.
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

from regard.errors import RegardError
from regard.explain.assets import asset
from regard.explain.legible import visible

_MODULE = re.compile(r"^(?:import [^;]+;\n|export )", re.MULTILINE)
"""What makes a script of ours a module."""


def document(main: str, styles: Iterable[str], scripts: Iterable[str], title: str, data: Any) -> str:
    """The frame around the asset `main`, with styles and scripts, which are assets too."""
    style, script = "\n".join(map(asset, styles)), _together(scripts)
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
    """The page in a frame that may run its script and reach nothing else."""
    return (
        f'<iframe sandbox="allow-scripts allow-downloads" style="width:100%;height:760px;border:0" '
        f'title="{title}" srcdoc="{html.escape(page)}"></iframe>'
    )


def written(text: str, path: str | Path | None) -> str:
    """The text, which is also written to `path` if there is one."""
    if path is not None:
        try:
            Path(path).write_text(text, encoding="utf-8")
        except OSError as error:
            raise RegardError(f"{path}: cannot be written ({error.strerror})") from error
    return text


def _together(modules: Iterable[str]) -> str:
    """Modules as one script, in which they see each other: a page on a disk may not import its neighbours."""
    return '"use strict";\n\n' + "\n".join(_MODULE.sub("", asset(name)) for name in modules)


def _hash(inline: str) -> str:
    return f"'sha256-{b64encode(sha256(inline.encode()).digest()).decode()}'"
