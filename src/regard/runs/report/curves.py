"""Curves as SVG: round ticks, a bounded number of points, readable in light and dark mode."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

from regard.runs.report.history import Points

WIDTH, HEIGHT = 560, 240
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 14, 30
MOST_POINTS = 400


@dataclass(frozen=True)
class Curve:
    name: str
    points: Points
    kind: str = "main"
    """CSS class: main, faint or mark."""


def draw(curves: Sequence[Curve], label: str) -> str:
    """Draw the curves over the steps in one frame; only a dash if there is no point yet."""
    thin = [Curve(curve.name, thinned(curve.points), curve.kind) for curve in curves if curve.points]
    if not thin:
        return '<p class="none">—</p>'
    xs = [x for curve in thin for x, _ in curve.points]
    ys = [y for curve in thin for _, y in curve.points]
    across, up = ticks(min(xs), max(xs)), ticks(min(ys), max(ys))
    x_low, x_high = min(xs), max(max(xs), min(xs) + 1)
    y_low, y_high = up[0], up[-1]

    def x_of(x: float) -> float:
        return LEFT + (x - x_low) / (x_high - x_low) * (WIDTH - LEFT - RIGHT)

    def y_of(y: float) -> float:
        return HEIGHT - BOTTOM - (y - y_low) / (y_high - y_low) * (HEIGHT - TOP - BOTTOM)

    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">']
    for y in up:
        parts.append(f'<path class="grid" d="M{LEFT} {y_of(y):.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text class="tick end" x="{LEFT - 6}" y="{y_of(y) + 4:.1f}">{short(y)}</text>')
    parts += [
        f'<text class="tick mid" x="{x_of(x):.1f}" y="{HEIGHT - 8}">{short(x)}</text>'
        for x in across
        if x_low <= x <= x_high
    ]
    for curve in thin:
        line = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in curve.points)
        parts.append(f'<polyline class="{curve.kind}" points="{line}"><title>{escape(curve.name)}</title>')
        parts.append("</polyline>")
        if len(curve.points) <= 60:
            parts += [
                f'<circle class="{curve.kind}" cx="{x_of(x):.1f}" cy="{y_of(y):.1f}" r="2.5">'
                f"<title>{escape(curve.name)} {short(y)} · {x:,.0f}</title></circle>"
                for x, y in curve.points
            ]
    return "".join([*parts, "</svg>"])


def thinned(points: Points) -> Points:
    """At most MOST_POINTS points, each the mean of neighbours."""
    size = ceil(len(points) / MOST_POINTS)
    groups = (points[i : i + size] for i in range(0, len(points), size)) if points else ()
    return [(sum(x for x, _ in g) / len(g), sum(y for _, y in g) / len(g)) for g in groups]


def ticks(low: float, high: float) -> list[float]:
    """Four to seven round numbers from at most `low` to at least `high`."""
    span = (high - low) or abs(high) or 1.0
    size = 10.0 ** floor(log10(span / 4))
    step = next(size * factor for factor in (1, 2, 5, 10) if span / (size * factor) <= 5)
    first, last = floor(low / step), ceil(high / step)
    return [n * step for n in range(first, max(last, first + 1) + 1)]


def short(value: float) -> str:
    """A number in short form: 12k, 3.5, 0.003, 1e-06."""
    if value and abs(value) < 1e-3:
        return f"{value:.0e}"
    if abs(value) >= 1e6:
        return f"{value / 1e6:.3g}M"
    if abs(value) >= 1e4:
        return f"{value / 1e3:.3g}k"
    return f"{value:.4g}"
