"""The few marks our SVG files are made of. Trees, not strings, so that no text can become markup.

Files stand alone: no script, no style sheet, no outside font or image, no ids that clash when two pictures
share a document. Cells of one colour are one path; beyond 20,000 cells they become an embedded PNG.
"""

import struct
import zlib
from base64 import b64encode
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import numpy as np
from numpy.typing import NDArray

from regard.explain.colour import INK, MUTED, PAPER, Palette
from regard.explain.legible import graphemes, visible, wrapped

FONT = (
    "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, 'PingFang SC', 'Hiragino Sans GB', "
    "'Microsoft YaHei', 'Noto Sans CJK SC', 'Source Han Sans SC', 'WenQuanYi Micro Hei', sans-serif"
)
MOST_VECTOR_CELLS = 20_000
LEADING = 1.45


class Box(NamedTuple):
    """Where cells go: the upper left corner and the size of one cell."""

    x: float
    y: float
    cell_width: float
    cell_height: float


def document(width: float, height: float, title: str) -> Element:
    size = {"width": f"{width:g}", "height": f"{height:g}", "viewBox": f"0 0 {width:g} {height:g}"}
    root = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "role": "img", "font-family": FONT, **size})
    SubElement(root, "title").text = visible(title)
    SubElement(root, "rect", {"width": "100%", "height": "100%", "fill": PAPER})
    return root


def written(root: Element) -> str:
    indent(root, " ")
    return tostring(root, encoding="unicode") + "\n"


def text(
    parent: Element,
    content: str,
    x: float,
    y: float,
    *,
    size: float = 13,
    fill: str = INK,
    anchor: str = "start",
    weight: int = 400,
    turned: float = 0,
) -> None:
    """One line of text at its baseline; `turned` rotates it about its anchor, in degrees."""
    look = {"font-size": f"{size:g}", "fill": fill, "text-anchor": anchor, "font-weight": str(weight)}
    place = {"x": f"{x:g}", "y": f"{y:g}"}
    if turned:
        place["transform"] = f"rotate({turned:g} {x:g} {y:g})"
    SubElement(parent, "text", place | look).text = visible(content)


def stack(parent: Element, content: str, x: float, bottom: float, *, size: float = 13) -> None:
    """One line of text set downwards with every character upright, ending at `bottom`."""
    parts = graphemes(content)
    for above, part in enumerate(reversed(parts)):
        text(parent, part, x, bottom - above * size * 1.08, size=size, anchor="middle")


def paragraph(
    parent: Element, content: str, x: float, y: float, width: float, *, size: float = 12, fill: str = MUTED
) -> float:
    """Wrapped text whose first baseline is `y`; returns the baseline after the last line."""
    for line in wrapped(visible(content), width / size):
        text(parent, line, x, y, size=size, fill=fill)
        y += size * LEADING
    return y


def legend(parent: Element, palette: Palette, x: float, y: float, low: str, high: str) -> None:
    """The colour scale as a bar of 128 × 10 with its two ends named."""
    text(parent, low, x - 6, y + 9, size=11, fill=MUTED, anchor="end")
    cells(parent, np.arange(0, 256, 4, dtype=np.uint8)[None, :], palette, Box(x, y, 2, 10))
    text(parent, high, x + 134, y + 9, size=11, fill=MUTED)


def cells(parent: Element, places_QK: NDArray[np.uint8], palette: Palette, box: Box) -> None:
    """A grid of palette places: one path per colour, a hair of paper between cells that are large enough."""
    if places_QK.size > MOST_VECTOR_CELLS:
        _image(parent, places_QK, palette, box)
        return
    gap = 1 if min(box.cell_width, box.cell_height) >= 8 else 0
    width, height = box.cell_width - gap, box.cell_height - gap
    for place in np.unique(places_QK):
        corners = (
            f"M{box.x + column * box.cell_width:g} {box.y + row * box.cell_height:g}"
            for row, column in np.argwhere(places_QK == place)
        )
        outline = f"h{width:g}v{height:g}h{-width:g}z"
        path = {"d": "".join(corner + outline for corner in corners), "shape-rendering": "crispEdges"}
        SubElement(parent, "path", path | {"fill": _hex(palette, place)})


def _image(parent: Element, places_QK: NDArray[np.uint8], palette: Palette, box: Box) -> None:
    height, width = places_QK.shape
    extent = {
        "x": f"{box.x:g}",
        "y": f"{box.y:g}",
        "width": f"{width * box.cell_width:g}",
        "height": f"{height * box.cell_height:g}",
    }
    look = {"preserveAspectRatio": "none", "style": "image-rendering:pixelated"}
    data = "data:image/png;base64," + b64encode(png(places_QK, palette)).decode()
    SubElement(parent, "image", extent | look | {"href": data})


def png(places_QK: NDArray[np.uint8], palette: Palette) -> bytes:
    """The grid as a palette PNG, one pixel a cell."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    height, width = places_QK.shape
    unfiltered = np.pad(places_QK, ((0, 0), (1, 0))).tobytes()
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0))
        + chunk(b"PLTE", palette.tobytes())
        + chunk(b"IDAT", zlib.compress(unfiltered, 9))
        + chunk(b"IEND", b"")
    )


def _hex(palette: Palette, place: int) -> str:
    return "#" + bytes(palette[place]).hex()
