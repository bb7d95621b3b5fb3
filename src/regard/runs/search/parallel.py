"""Parallel coordinates: an axis for every setting and one for the score, a line for every trial."""

from collections.abc import Sequence

from regard.runs.search.page import Cell, plain

WIDTH, HEIGHT = 960, 340
LEFT, RIGHT, TOP, BOTTOM = 70, 90, 46, 24


def parallel(names: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """Draw rows, the best of them first; axes of numbers are to scale, others have their values in order."""
    if not rows:
        return ""
    columns = [[row[place] for row in rows] for place in range(len(names))]
    heights = [_heights(column) for column in columns]
    xs = [_x(place, len(names)) for place in range(len(names))]
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="parallel coordinates">']
    for place in reversed(range(len(rows))):
        points = " ".join(f"{x:.1f},{of[place]:.1f}" for x, of in zip(xs, heights, strict=True))
        title = ", ".join(f"{name} {cell.text}" for name, cell in zip(names, rows[place], strict=True))
        best = "" if place else " best"
        parts.append(f'<polyline class="trial{best}" points="{points}"><title>{plain(title)}</title>')
        parts.append("</polyline>")
    for number, (name, x, column, of) in enumerate(zip(names, xs, columns, heights, strict=True)):
        level = 20 if number % 2 else 36
        parts.append(f'<path class="axis" d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}"/>')
        parts.append(f'<text class="name" x="{x:.1f}" y="{level}" text-anchor="middle">{plain(name)}</text>')
        for text, y in _labels(column, of):
            parts.append(f'<text x="{x + 7:.1f}" y="{y + 4:.1f}">{plain(text)}</text>')
    return "".join([*parts, "</svg>"])


def _x(place: int, n: int) -> float:
    return LEFT + place * (WIDTH - LEFT - RIGHT) / max(1, n - 1)


def _heights(column: Sequence[Cell]) -> list[float]:
    """The y of each cell: numbers to scale, the larger the higher; other values in their order."""
    numbers = [cell.number for cell in column if cell.number is not None]
    if len(numbers) < len(column):
        values = sorted({cell.text for cell in column})
        numbers = [float(values.index(cell.text)) for cell in column]
    low, high = min(numbers), max(numbers)
    room = HEIGHT - TOP - BOTTOM
    share = [0.5 if low == high else (number - low) / (high - low) for number in numbers]
    return [HEIGHT - BOTTOM - one * room for one in share]


def _labels(column: Sequence[Cell], heights: Sequence[float]) -> list[tuple[str, float]]:
    """Values that do not lie upon each other, the ends of the axis among them."""
    at = sorted({(y, cell.text) for cell, y in zip(column, heights, strict=True)})
    kept: list[tuple[str, float]] = []
    for y, text in [at[0], at[-1], *at[1:-1]]:
        if all(abs(y - other) >= 14 for _, other in kept):
            kept.append((text, y))
    return kept
