"""Curves as a picture: for each the past, the mean of what comes next, and the band around it."""

from collections.abc import Sequence
from html import escape

from regard.tasks.prediction import Curve, Curves

WIDTH, HEIGHT = 760, 190
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 28, 24
MOST_DRAWN = 24
"""Channels at most."""
PAST, NEXT, BAND = "#57606a", "#0b62c4", "#0b62c4"
TICKS = 3


def draw(answer: Curves) -> str:
    """The SVG of an answer that is curves."""
    shown = answer.curves[:MOST_DRAWN]
    height = 34 + HEIGHT * len(shown)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" font-family="system-ui, sans-serif" font-size="11" role="img">',
        f"<title>{escape(answer.title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="20" font-size="13" fill="#1f2328">{escape(answer.title)}</text>',
    ]
    for number, curve in enumerate(shown):
        parts += _panel(curve, 34 + HEIGHT * number, answer.marks, answer.band)
    return "\n".join([*parts, "</svg>", ""])


def _panel(curve: Curve, top: float, labels: Sequence[str], band: str) -> list[str]:
    values = [value for value in (*curve.past, *curve.mean, *curve.low, *curve.high) if value is not None]
    low, high = min(values), max(values)
    if high - low <= 1e-12 * max(abs(high), 1e-300):
        low, high = low - 0.5, high + 0.5
    n = len(curve.past) + len(curve.mean)

    def x(step: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * step / max(1, n - 1)

    def y(value: float) -> float:
        return top + TOP + (HEIGHT - TOP - BOTTOM) * (high - value) / (high - low)

    def line(begin: int, ys: Sequence[float | None]) -> str:
        """The points of a curve, which is broken where a value is missing."""
        path, pen = [], "M"
        for step, value in enumerate(ys, begin):
            if value is None:
                pen = "M"
                continue
            path.append(f"{pen}{x(step):.1f} {y(value):.1f}")
            pen = "L"
        return " ".join(path)

    begin = len(curve.past)
    joined = [*([curve.past[-1]] if curve.past else []), *curve.mean]
    base = top + HEIGHT - BOTTOM
    name = f"{curve.name} (band: {band})" if curve.low else curve.name
    parts = [f'<text x="{LEFT}" y="{top + 16:.0f}" fill="#1f2328">{escape(name)}</text>']
    for tick in range(TICKS):
        value = low + (high - low) * tick / (TICKS - 1)
        parts.append(
            f'<path d="M{LEFT} {y(value):.1f} H{WIDTH - RIGHT}" stroke="#d8dee4"/>'
            f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end" fill="#57606a">{value:.4g}</text>'
        )
    if curve.low:
        edge = [*enumerate(curve.high, begin), *reversed([*enumerate(curve.low, begin)])]
        points = " ".join(f"{x(step):.1f},{y(value):.1f}" for step, value in edge)
        parts.append(f'<polygon points="{points}" fill="{BAND}" fill-opacity="0.18"/>')
    parts += [
        f'<path d="{line(0, curve.past)}" fill="none" stroke="{PAST}" stroke-width="1.3"/>',
        f'<path d="{line(begin - (len(joined) > len(curve.mean)), joined)}" fill="none" stroke="{NEXT}" '
        'stroke-width="1.8"/>',
    ]
    marks = [(0.0, "start"), (float(begin), "middle"), (float(n - 1), "end")]
    for (step, anchor), label in zip(marks, labels, strict=False):
        parts.append(
            f'<text x="{x(step):.1f}" y="{base + 16:.0f}" text-anchor="{anchor}" fill="#57606a">'
            f"{escape(label)}</text>"
        )
    return parts
