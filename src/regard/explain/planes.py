"""Maps to units that lie in a plane: the picture, clear where a row looks, and the same weights as shades.

A row that lies in the plane itself is drawn at its own place: a plane of planes.
"""

from base64 import b64encode
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement

import numpy as np
from numpy.typing import NDArray

from regard.explain.colour import MUTED, PAPER, SEQUENTIAL, full_tone, indices
from regard.explain.legible import visible
from regard.explain.vector import Box, cells, text
from regard.fields.axis import Axis

if TYPE_CHECKING:
    from regard.explain.explanation import AttentionMap, Weights

PLANE = 300.0
"""The longer side of a plane."""
PLANE_OF_PLANES = 640.0
GAP = 16.0
MOST_ROWS = 12
"""Rows drawn with a picture of their own."""
VEIL = 0.75
"""How much of the paper lies over what has no weight; what has the most is clear."""
VEIL_STEPS = 32


def planes_of(axis: Axis, weights_K: "Weights") -> "Weights":
    """The weights of the units in the plane, rows × columns."""
    assert axis.grid is not None
    return weights_K[axis.free].reshape(axis.grid)


def rows_apart(attention: "AttentionMap") -> list[int]:
    """Rows that do not lie in the plane: labels, class tokens."""
    rows = attention.rows
    return sorted(rows.fixed) if rows.grid else [*range(len(rows))]


def draw_planes(
    parent: Element, attention: "AttentionMap", weights_QK: "Weights", left: float, top: float
) -> tuple[float, float]:
    """Draws every row that is apart beside the picture, and all others in one plane; the edges reached."""
    columns, right, y = attention.columns, left, top
    tone = full_tone(weights_QK)
    width, height = _extent(columns, PLANE)
    apart = rows_apart(attention)
    for row in apart[:MOST_ROWS]:
        if len(attention.rows) > 1:
            text(parent, visible(attention.rows.labels[row]), left, y + 12, size=13, weight=600)
            y += 20
        weights_YX = planes_of(columns, weights_QK[row])
        x, unit = left, width / weights_YX.shape[1]
        if columns.picture is not None:
            _picture(parent, columns.picture, x, y, width, height)
            _veil(parent, weights_YX / max(weights_YX.max(), 1e-9), x, y, width, height)
            x += width + GAP
        cells(parent, indices(weights_YX / tone), SEQUENTIAL, Box(x, y, unit, unit))
        right, y = max(right, x + width), y + height + GAP
        y = _beside(parent, columns, weights_QK[row], left, y)
    if attention.rows.grid is None or not attention.rows.free:
        return right, y - GAP
    return _plane_of_planes(parent, attention, weights_QK / tone, left, y, right)


def _plane_of_planes(
    parent: Element, attention: "AttentionMap", shares_QK: "Weights", left: float, y: float, right: float
) -> tuple[float, float]:
    """For every unit what it looks at, at its own place; the picture stands beside it."""
    rows, columns = attention.rows, attention.columns
    assert rows.grid is not None
    assert columns.grid is not None
    planes_QYX = shares_QK[np.ix_(rows.free, columns.free)].reshape(*rows.grid, *columns.grid)
    spaced = np.pad(planes_QYX, ((0, 0), (0, 0), (0, 1), (0, 1)))
    n_rows, n_columns = (n * (m + 1) for n, m in zip(rows.grid, columns.grid, strict=True))
    sheet = spaced.transpose(0, 2, 1, 3).reshape(n_rows, n_columns)[:-1, :-1]
    width, height = _extent(rows, PLANE_OF_PLANES)
    if columns.picture is not None:
        small_width, small_height = _extent(columns, PLANE / 2)
        _picture(parent, columns.picture, left, y, small_width, small_height)
        left += small_width + GAP
    cells(parent, indices(sheet), SEQUENTIAL, Box(left, y, width / sheet.shape[1], height / sheet.shape[0]))
    return max(right, left + width), y + height


def _extent(axis: Axis, longer: float) -> tuple[float, float]:
    """Width and height of a plane with square units."""
    assert axis.grid is not None
    n_rows, n_columns = axis.grid
    unit = longer / max(n_rows, n_columns)
    return n_columns * unit, n_rows * unit


def _picture(parent: Element, png: bytes, x: float, y: float, width: float, height: float) -> None:
    extent = {"x": f"{x:g}", "y": f"{y:g}", "width": f"{width:g}", "height": f"{height:g}"}
    look = {"preserveAspectRatio": "none", "image-rendering": "pixelated"}
    SubElement(parent, "image", extent | look | {"href": "data:image/png;base64," + b64encode(png).decode()})


def _veil(parent: Element, shares_YX: "Weights", x: float, y: float, width: float, height: float) -> None:
    """Paper over the picture, the thicker the less weight there is."""
    n_rows, n_columns = shares_YX.shape
    cell_width, cell_height = width / n_columns, height / n_rows
    steps_YX: NDArray[np.int64] = np.rint((1 - shares_YX.clip(0, 1)) * VEIL_STEPS).astype(int)
    for step in np.unique(steps_YX[steps_YX > 0]):
        outline = f"h{cell_width:g}v{cell_height:g}h{-cell_width:g}z"
        places = np.argwhere(steps_YX == step)
        path = "".join(
            f"M{x + column * cell_width:g} {y + row * cell_height:g}{outline}" for row, column in places
        )
        look = {"fill": PAPER, "fill-opacity": f"{VEIL * step / VEIL_STEPS:.3f}"}
        SubElement(parent, "path", {"d": path, "shape-rendering": "crispEdges"} | look)


def _beside(parent: Element, columns: Axis, weights_K: "Weights", left: float, y: float) -> float:
    """A line for what does not lie in the plane, with its weights."""
    if not columns.fixed:
        return y
    said = "   ".join(f"{visible(columns.labels[at])} {weights_K[at]:.2f}" for at in sorted(columns.fixed))
    text(parent, said, left, y + 4, size=12, fill=MUTED)
    return y + 22
