"""Heat map of a position table: one row per position, one column per dimension of the model.

For the sinusoids of Vaswani et al. it shows the idea: the left dimensions oscillate quickly and distinguish
neighbours, the right ones oscillate slowly and distinguish regions, so that no two rows are equal.
"""

import numpy as np
from numpy.typing import NDArray

from regard.explain.colour import DIVERGING, MUTED, indices
from regard.explain.vector import Box, cells, document, legend, text, to_string

_LEFT, _TOP, _BOTTOM, _RIGHT = 62, 78, 66, 24
_MAX_TICKS = 9
_TITLE = "Position encodings"


def heatmap_svg(table_TD: NDArray[np.floating]) -> str:
    """Draw the table as SVG; the colours run from minus to plus its largest absolute value."""
    n_positions, d_model = table_TD.shape
    largest = float(np.abs(table_TD).max()) or 1.0
    cell_width, cell_height = max(1.0, 768 / d_model), max(1.0, 400 / n_positions)
    width, height = d_model * cell_width, n_positions * cell_height
    root = document(_LEFT + width + _RIGHT, _TOP + height + _BOTTOM, _TITLE)
    text(root, _TITLE, _LEFT, 32, size=18, weight=600)
    text(root, f"{n_positions} positions × {d_model} dimensions", _LEFT, 54, fill=MUTED)
    legend(root, DIVERGING, _LEFT + width - 170, 45, f"−{largest:.3g}", f"+{largest:.3g}")
    indices_TD = indices((table_TD / largest + 1) / 2)
    cells(root, indices_TD, DIVERGING, Box(_LEFT, _TOP, cell_width, cell_height))
    for position in _ticks(n_positions):
        y = _TOP + (position + 0.5) * cell_height + 4
        text(root, str(position), _LEFT - 8, y, size=11, fill=MUTED, anchor="end")
    for dimension in _ticks(d_model):
        x = _LEFT + (dimension + 0.5) * cell_width
        text(root, str(dimension), x, _TOP + height + 18, size=11, fill=MUTED, anchor="middle")
    text(root, "dimension", _LEFT + width / 2, _TOP + height + 44, anchor="middle")
    text(root, "position", 22, _TOP + height / 2, anchor="middle", turned=-90)
    return to_string(root)


def _ticks(length: int) -> range:
    """Ticks in round steps (1, 2, 5, 10, …) from zero, few enough to read."""
    steps = (digit * 10**power for power in range(12) for digit in (1, 2, 5))
    return range(0, length, next(step for step in steps if length <= step * _MAX_TICKS))
