"""One attention map as a standalone SVG: a labelled grid, shaded words if it has one row, or a picture."""

from collections.abc import Sequence
from math import ceil, cos, radians, sin
from typing import TYPE_CHECKING, NamedTuple
from xml.etree.ElementTree import Element, SubElement

import numpy as np

from regard.explain.assets import CAVEAT, STRINGS
from regard.explain.colour import INK, MUTED, SEQUENTIAL, full_tone, indices, ink_on, shade
from regard.explain.legible import ems, graphemes, shortened, stacks, visible
from regard.explain.planes import draw_planes
from regard.explain.vector import Box, cells, document, legend, paragraph, stack, text, to_string

if TYPE_CHECKING:
    from regard.explain.explanation import AttentionMap, Explanation, Weights

_MARGIN, _HEADING, _TITLE, _LABEL = 24.0, 84.0, 17.0, 13.0
_MIN_WIDTH, _PROSE_WIDTH = 480.0, 720.0
_MAX_LABEL = 11.0  # ems
_SLANT = radians(50)
_MAX_PIXELS = 1024
_MAX_WORDS = 1000


def draw(explanation: "Explanation", attention: "AttentionMap", head: int | None) -> str:
    """Draw the map with its title, legend, measured trust and caveat."""
    weights_QK = attention.head(head)
    title = attention.title
    if attention.n_heads > 1:
        title += f" · {STRINGS['en']['mean'] if head is None else f'head {head + 1}'}"
    picture = Element("g")
    compose = _planes if attention.columns.grid else _words if len(attention.rows) == 1 else _grid
    width, bottom = compose(picture, attention, weights_QK)
    width = max(width, min(_PROSE_WIDTH, 1.05 * ems(visible(title)) * _TITLE + 2 * _MARGIN))
    inner = width - 2 * _MARGIN

    text(picture, shortened(visible(title), inner / _TITLE), _MARGIN, 36, size=_TITLE, weight=600)
    text(picture, shortened(visible(explanation.model), (inner - 190) / 12), _MARGIN, 58, size=12, fill=MUTED)
    legend(picture, SEQUENTIAL, width - _MARGIN - 160, 49, "0", f"{full_tone(weights_QK):.2f}")
    y = bottom + 30
    if explanation.trust:
        y = paragraph(picture, explanation.trust.sentence, _MARGIN, y, inner, fill=INK)
    if attention.holds == "weight":
        y = paragraph(picture, CAVEAT, _MARGIN, y, inner)
    root = document(width, y, title)
    root.append(picture)
    return to_string(root)


def _grid(picture: Element, attention: "AttentionMap", weights_QK: "Weights") -> tuple[float, float]:
    """Draw the labelled grid below the heading; returns its right and lower edge."""
    n_rows, n_columns = weights_QK.shape
    cell = min(38.0, 900 / max(n_rows, n_columns))
    row_labels = [shortened(visible(label), _MAX_LABEL) for label in attention.rows.labels]
    column_labels = [shortened(visible(label), _MAX_LABEL) for label in attention.columns.labels]
    columns = _column_labels(column_labels, cell)
    left = _MARGIN + 20 + max(map(ems, row_labels)) * _LABEL + 8
    top = _HEADING + 20 + columns.height
    right, bottom = left + n_columns * cell, top + n_rows * cell

    for column in range(0, n_columns, ceil(columns.min_distance / cell)):
        columns.draw(picture, column_labels[column], left + (column + 0.5) * cell, top - 7)
    for row in range(0, n_rows, ceil((_LABEL + 1) / cell)):
        text(picture, row_labels[row], left - 8, top + (row + 0.5) * cell + 4.5, size=_LABEL, anchor="end")
    _axis_name(picture, attention.columns.name, (left + right) / 2, _HEADING + 4)
    _axis_name(picture, attention.rows.name, _MARGIN + 6, (top + bottom) / 2, turned=-90)

    fine_QK = _pooled(weights_QK)
    box = Box(left, top, n_columns * cell / fine_QK.shape[1], n_rows * cell / fine_QK.shape[0])
    cells(picture, indices(fine_QK / full_tone(weights_QK)), SEQUENTIAL, box)
    return max(_MIN_WIDTH, right + columns.overhang + _MARGIN), bottom


def _planes(picture: Element, attention: "AttentionMap", weights_QK: "Weights") -> tuple[float, float]:
    """Draw what lies in a plane below the heading; returns its right and lower edge."""
    right, bottom = draw_planes(picture, attention, weights_QK, _MARGIN, _HEADING)
    return max(_MIN_WIDTH, right + _MARGIN), bottom


def _axis_name(picture: Element, name: str, x: float, y: float, turned: float = 0) -> None:
    text(picture, shortened(visible(name), 14), x, y, size=11, fill=MUTED, anchor="middle", turned=turned)


class _ColumnLabels(NamedTuple):
    """Orientation of the column labels, and the space they need: above, to the right, between two."""

    angle: float
    height: float
    overhang: float
    min_distance: float

    def draw(self, picture: Element, label: str, x: float, y: float) -> None:
        if self.angle == 0:
            text(picture, label, x, y, size=_LABEL, anchor="middle")
        elif stacks(label):
            stack(picture, label, x, y, size=_LABEL)
        else:
            text(picture, label, x + _LABEL * 0.35, y, size=_LABEL, turned=self.angle)


def _column_labels(labels: Sequence[str], cell: float) -> _ColumnLabels:
    """Place labels horizontally if all fit; else stack Chinese and rotate Latin ones, or slant all."""
    longest = max(map(ems, labels)) * _LABEL
    if longest <= cell - 2:
        return _ColumnLabels(0, _LABEL, 0, cell)
    if any(stacks(label) for label in labels):
        tallest = max(len(graphemes(label)) * 1.08 if stacks(label) else ems(label) for label in labels)
        return _ColumnLabels(-90, tallest * _LABEL, 0, _LABEL + 1)
    return _ColumnLabels(-50, longest * sin(_SLANT) + _LABEL, longest * cos(_SLANT), _LABEL * 1.45)


def _pooled(weights_QK: "Weights") -> "Weights":
    """Max-pool to at most 1024 cells a side; a mean would hide single large weights."""
    for axis, length in enumerate(weights_QK.shape):
        starts = np.unique(np.linspace(0, length, min(length, _MAX_PIXELS), endpoint=False).astype(int))
        weights_QK = np.maximum.reduceat(weights_QK, starts, axis=axis)
    return weights_QK


def _words(picture: Element, attention: "AttentionMap", weights_QK: "Weights") -> tuple[float, float]:
    """Draw the text in boxes shaded by weight, each with its number; returns its right and lower edge."""
    size, height, gap = 16.0, 44.0, 5.0
    tone = full_tone(weights_QK)
    x, y = _MARGIN, _HEADING
    labels = attention.columns.labels
    for label, weight in zip(labels[:_MAX_WORDS], weights_QK[0].tolist(), strict=False):
        word = shortened(visible(label), 30)
        width = max(ems(word) * size + 14, 38.0)
        if x > _MARGIN and x + width > _PROSE_WIDTH - _MARGIN:
            x, y = _MARGIN, y + height + gap + 4
        fill = shade(SEQUENTIAL, weight / tone)
        place = {"x": f"{x:g}", "y": f"{y:g}", "width": f"{width:g}", "height": f"{height:g}", "rx": "5"}
        SubElement(picture, "rect", place | {"fill": fill})
        text(picture, word, x + width / 2, y + 21, size=size, fill=ink_on(fill), anchor="middle")
        text(picture, f"{weight:.2f}", x + width / 2, y + 37, size=10.5, fill=ink_on(fill), anchor="middle")
        x += width + gap
    bottom = y + height
    if len(labels) > _MAX_WORDS:
        more = STRINGS["en"]["moreWords"].format(n=len(labels) - _MAX_WORDS)
        bottom = paragraph(picture, more, _MARGIN, bottom + 24, _PROSE_WIDTH)
    return _PROSE_WIDTH, bottom
