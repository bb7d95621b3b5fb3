"""One page with a table that can be sorted, and perhaps a picture above it; it needs no network."""

import base64
import hashlib
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import NamedTuple

from regard import durable
from regard.text.sanitize import printable


class Cell(NamedTuple):
    """What a cell shows, and the number that it is sorted by, if it is one."""

    text: str
    number: float | None = None


def plain(text: str) -> str:
    """Text of the user, escaped."""
    return escape(printable(text))


def table(header: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    head = "".join(f'<th><button type="button">{plain(name)}</button></th>' for name in header)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(cell: Cell) -> str:
    if cell.number is None:
        return f"<td>{plain(cell.text)}</td>"
    return f'<td class="number" data-value="{cell.number!r}">{plain(cell.text)}</td>'


def write_page(path: Path, title: str, main: str) -> Path:
    """Write a page whose only script is the one that sorts tables."""
    here = files("regard.runs.search")
    script = here.joinpath("sort.js").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    parts = {"title": plain(title), "main": main, "script": script, "hash": digest}
    text = Template(here.joinpath("page.html").read_text("utf-8")).substitute(parts)
    durable.write_file(path, text)
    return path
