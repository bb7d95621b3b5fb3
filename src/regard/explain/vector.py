"""SVG primitives, built as element trees and not as strings, so that no text can become markup.

Files are self-contained: no script, style sheet, external font or image, and no ids that clash when two
pictures share a document. Cells of one colour are one path; beyond 20,000 cells they are an embedded PNG.
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
MAX_VECTOR_CELLS = 20_000
LEADING = 1.45


class Box(NamedTuple):
    """Position of a grid: its upper left corner and the size of one cell."""

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


def to_string(root: Element) -> str:
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
    """Add one line of text at its baseline; `turned` rotates it about its anchor, in degrees."""
    look = {"font-size": f"{size:g}", "fill": fill, "text-anchor": anchor, "font-weight": str(weight)}
    position = {"x": f"{x:g}", "y": f"{y:g}"}
    if turned:
        position["transform"] = f"rotate({turned:g} {x:g} {y:g})"
    SubElement(parent, "text", position | look).text = visible(content)


def stack(parent: Element, content: str, x: float, bottom: float, *, size: float = 13) -> None:
    """Add a vertical line of text with every character upright, ending at `bottom`."""
    parts = graphemes(content)
    for above, part in enumerate(reversed(parts)):
        text(parent, part, x, bottom - above * size * 1.08, size=size, anchor="middle")


def paragraph(
    parent: Element, content: str, x: float, y: float, width: float, *, size: float = 12, fill: str = MUTED
) -> float:
    """Add wrapped text whose first baseline is `y`; returns the baseline after the last line."""
    for line in wrapped(visible(content), width / size):
        text(parent, line, x, y, size=size, fill=fill)
        y += size * LEADING
    return y


def legend(parent: Element, palette: Palette, x: float, y: float, low: str, high: str) -> None:
    """Add the colour scale as a bar of 128 × 10 with labels at both ends."""
    text(parent, low, x - 6, y + 9, size=11, fill=MUTED, anchor="end")
    cells(parent, np.arange(0, 256, 4, dtype=np.uint8)[None, :], palette, Box(x, y, 2, 10))
    text(parent, high, x + 134, y + 9, size=11, fill=MUTED)


def cells(parent: Element, indices_QK: NDArray[np.uint8], palette: Palette, box: Box) -> None:
    """Add a grid of palette indices: one path per colour, with a thin gap between cells if they are large."""
    if indices_QK.size > MAX_VECTOR_CELLS:
        _image(parent, indices_QK, palette, box)
        return
    gap = 1 if min(box.cell_width, box.cell_height) >= 8 else 0
    width, height = box.cell_width - gap, box.cell_height - gap
    for index in np.unique(indices_QK):
        corners = (
            f"M{box.x + column * box.cell_width:g} {box.y + row * box.cell_height:g}"
            for row, column in np.argwhere(indices_QK == index)
        )
        outline = f"h{width:g}v{height:g}h{-width:g}z"
        path = {"d": "".join(corner + outline for corner in corners), "shape-rendering": "crispEdges"}
        SubElement(parent, "path", path | {"fill": _hex(palette, index)})


def _image(parent: Element, indices_QK: NDArray[np.uint8], palette: Palette, box: Box) -> None:
    height, width = indices_QK.shape
    extent = {
        "x": f"{box.x:g}",
        "y": f"{box.y:g}",
        "width": f"{width * box.cell_width:g}",
        "height": f"{height * box.cell_height:g}",
    }
    look = {"preserveAspectRatio": "none", "style": "image-rendering:pixelated"}
    data = "data:image/png;base64," + b64encode(png(indices_QK, palette)).decode()
    SubElement(parent, "image", extent | look | {"href": data})


def png(indices_QK: NDArray[np.uint8], palette: Palette) -> bytes:
    """Encode the grid as a palette PNG, one pixel per cell."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    height, width = indices_QK.shape
    unfiltered = np.pad(indices_QK, ((0, 0), (1, 0))).tobytes()
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0))
        + chunk(b"PLTE", palette.tobytes())
        + chunk(b"IDAT", zlib.compress(unfiltered, 9))
        + chunk(b"IEND", b"")
    )


def _hex(palette: Palette, index: int) -> str:
    return "#" + bytes(palette[index]).hex()
