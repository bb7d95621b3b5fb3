"""Charts as SVG, drawn without a library: lines with their intervals, linear or logarithmic axes."""

import math
from collections.abc import Sequence
from html import escape

from regard.experiments.experiment import Chart
from regard.experiments.interval import Interval, number

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 360, 64, 170, 34, 46
COLOURS = ("#1b6ca8", "#c8553d", "#3a8f5c", "#8a5fa8", "#b58900", "#555555", "#d16ba5")
DASHES = ("", "6 3", "2 3", "8 3 2 3", "", "6 3", "2 3")


def draw(charts: Sequence[Chart]) -> str:
    """All charts of an experiment, one below the other."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT * len(charts)}" '
        f'width="{WIDTH}" font-family="sans-serif" font-size="12" fill="#222">',
        '<rect width="100%" height="100%" fill="#fff"/>',
    ]
    for place, chart in enumerate(charts):
        parts.append(f'<g transform="translate(0 {place * HEIGHT})">{"".join(_chart(chart))}</g>')
    return "\n".join([*parts, "</svg>\n"])


class _Scale:
    """Values along one axis, to pixels."""

    def __init__(self, values: Sequence[float], begin: float, end: float, *, log: bool) -> None:
        values = [value for value in values if math.isfinite(value) and (value > 0 or not log)]
        self.log, self.begin, self.end = log, begin, end
        low, high = min(values), max(values)
        if log:
            low, high = math.log10(low), math.log10(high)
            if high - low < 0.3:
                low, high = low - 0.3, high + 0.3
        elif low >= 0 and low < 0.5 * high:
            low = 0.0
        if low == high:
            low, high = low - 0.5, high + 0.5
        margin = 0.04 * (high - low)
        self.low = low if low == 0 else low - margin
        self.high = high + margin

    def __call__(self, value: float) -> float:
        if self.log:
            value = math.log10(max(value, 1e-300))
        share = (value - self.low) / (self.high - self.low)
        return self.begin + max(-0.02, min(1.02, share)) * (self.end - self.begin)

    @property
    def ticks(self) -> list[float]:
        if self.log:
            powers = range(math.ceil(self.low), math.floor(self.high) + 1)
            marks = [10.0**power for power in powers]
            if len(marks) < 3:
                every = range(math.floor(self.low), math.ceil(self.high) + 1)
                marks = [m * 10.0**p for p in every for m in (1, 2, 5)]
            return [mark for mark in marks if self.low <= math.log10(mark) <= self.high]
        rough = (self.high - self.low) / 5
        unit = 10.0 ** math.floor(math.log10(rough))
        step = next(unit * m for m in (1, 2, 5, 10) if unit * m >= rough)
        first = math.ceil(self.low / step)
        return [at * step for at in range(first, math.floor(self.high / step) + 1)]


def _chart(chart: Chart) -> list[str]:
    points = [point for line in chart.series.values() for point in line]
    bounds = [end for _, interval in points for end in (interval.low, interval.high, interval.mean)]
    x = _Scale([at for at, _ in points], LEFT, WIDTH - RIGHT, log=chart.log_x)
    y = _Scale(bounds, HEIGHT - BOTTOM, TOP, log=chart.log_y)
    parts = [f'<text x="{LEFT}" y="20" font-size="14" font-weight="bold">{escape(chart.title.en)}</text>']
    xs = sorted({at for at, _ in points})
    middle_x, middle_y = (LEFT + WIDTH - RIGHT) / 2, (TOP + HEIGHT - BOTTOM) / 2
    parts += [
        f'<line x1="{x(at):.1f}" x2="{x(at):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#e8e8e8"/>'
        f'<text x="{x(at):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{_mark(at)}</text>'
        for at in (xs if len(xs) <= 10 else x.ticks)
    ]
    parts += [
        f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(at):.1f}" y2="{y(at):.1f}" stroke="#e8e8e8"/>'
        f'<text x="{LEFT - 6}" y="{y(at) + 4:.1f}" text-anchor="end">{_mark(at)}</text>'
        for at in y.ticks
    ]
    parts.append(
        f'<text x="{middle_x}" y="{HEIGHT - 10}" text-anchor="middle">{escape(chart.x.en)}</text>'
        f'<text transform="translate(14 {middle_y}) rotate(-90)" text-anchor="middle">'
        f"{escape(chart.y.en)}</text>"
    )
    for place, (name, line) in enumerate(chart.series.items()):
        parts += _line(place, name, line, x, y)
    return parts


def _line(place: int, name: str, line: Sequence[tuple[float, Interval]], x: _Scale, y: _Scale) -> list[str]:
    colour, dash = COLOURS[place % len(COLOURS)], DASHES[place % len(DASHES)]
    style = f'stroke="{colour}" stroke-width="2" fill="none" stroke-dasharray="{dash}"'
    path, marks = [], []
    for at, interval in line:
        path.append(f"{x(at):.1f},{y(interval.mean):.1f}")
        marks.append(f'<circle cx="{x(at):.1f}" cy="{y(interval.mean):.1f}" r="3" fill="{colour}"/>')
        if interval.low != interval.high:
            marks.append(
                f'<line x1="{x(at):.1f}" x2="{x(at):.1f}" y1="{y(interval.low):.1f}" '
                f'y2="{y(interval.high):.1f}" stroke="{colour}"/>'
            )
    height = TOP + 8 + 18 * place
    legend = (
        f'<line x1="{WIDTH - RIGHT + 10}" x2="{WIDTH - RIGHT + 34}" y1="{height}" y2="{height}" {style}/>'
        f'<text x="{WIDTH - RIGHT + 40}" y="{height + 4}">{escape(name)}</text>'
    )
    return [f'<polyline points="{" ".join(path)}" {style}/>', *marks, legend]


def _mark(value: float) -> str:
    """A number at an axis, without zeros that say nothing."""
    if value >= 1 and value == int(value) and value < 1e6:
        return f"{value:,.0f}"
    text = number(value)
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text
