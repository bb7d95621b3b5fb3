"""An explanation in the terminal: the largest weights of each target token, or text or picture in shades.

Widths are in terminal cells, of which a Chinese character takes two.
"""

from collections.abc import Iterator

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.console import Group, RenderableType
from rich.text import Text

from regard.explain.assets import CAVEAT, STRINGS
from regard.explain.colour import SEQUENTIAL, full_tone, ink_on, shade
from regard.explain.explanation import AttentionMap, Explanation, Weights
from regard.explain.legible import visible
from regard.explain.planes import planes_of, rows_apart
from regard.files.picture import Picture

_MAX_ROWS, _MAX_WORDS, _MAX_LISTED, _MAX_LINKS = 60, 400, 8, 3
_PLANE_LINES, _MAX_PLANES = 24, 4
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def render(explanation: Explanation, console_width: int) -> RenderableType:
    """Render input, output, the largest weights of the main map (mean over heads), and the measured trust."""
    attention = explanation.map(explanation.main)
    draw = _plane if attention.columns.grid else _words if len(attention.rows) == 1 else _links
    trust = [Text(visible(explanation.trust.sentence))] if explanation.trust else []
    return Group(
        Text(visible(explanation.input)),
        Text.assemble(("→ ", "dim"), (visible(explanation.output), "bold")),
        Text(),
        Text(visible(attention.title), style="dim"),
        *draw(attention, attention.head(None), console_width),
        Text(),
        *trust,
        *([] if attention.holds != "weight" else [Text(CAVEAT, style="dim")]),
    )


def _links(attention: AttentionMap, weights_QK: Weights, console_width: int) -> Iterator[Text]:
    """Lines like `river ← 河 ██████▏ 0.62  边 █▎ 0.12`: each row with its largest weights."""
    rows, columns = (
        _labels(attention.rows.labels, console_width),
        _labels(attention.columns.labels, console_width),
    )
    row_cells, column_cells = max(map(cell_len, rows)), max(map(cell_len, columns))
    for_links = console_width - row_cells - 3
    n_links = max(1, min(_MAX_LINKS, for_links // (column_cells + 12), len(columns)))
    bar_cells = max(1, min(12, for_links // n_links - column_cells - 8))
    for row, weights_K in list(zip(rows, weights_QK, strict=True))[:_MAX_ROWS]:
        line = Text(no_wrap=True, overflow="crop")
        line.append(" " * (row_cells - cell_len(row)) + row, style="bold").append(" ← ", style="dim")
        for column in np.argsort(-weights_K, kind="stable")[:n_links]:
            weight = float(weights_K[column])
            line.append(set_cell_size(columns[column], column_cells) + " ")
            line.append(bar(weight, bar_cells), style="cyan").append(f" {weight:.2f}  ", style="dim")
        line.rstrip()
        yield line
    if len(rows) > _MAX_ROWS:
        yield Text(STRINGS["en"]["moreWords"].format(n=len(rows) - _MAX_ROWS), style="dim")


def _words(attention: AttentionMap, weights_QK: Weights, console_width: int) -> Iterator[Text]:
    """Text with every word shaded by its weight, then the words with the largest weights."""
    weights_K = weights_QK[0]
    tone = full_tone(weights_QK)
    words = _labels(attention.columns.labels, console_width)
    shaded = Text()
    for word, weight in list(zip(words, weights_K.tolist(), strict=True))[:_MAX_WORDS]:
        fill = shade(SEQUENTIAL, weight / tone)
        shaded.append(f" {word} ", style=f"{ink_on(fill)} on {fill}").append(" ")
    yield shaded
    if len(words) > _MAX_WORDS:
        yield Text(STRINGS["en"]["moreWords"].format(n=len(words) - _MAX_WORDS), style="dim")
    yield Text()
    yield from _heaviest(words, weights_K, tone, console_width)


def _plane(attention: AttentionMap, weights_QK: Weights, console_width: int) -> Iterator[Text]:
    """The picture beside its units in shades, for every row that is no part of the picture itself."""
    columns, tone = attention.columns, full_tone(weights_QK)
    words = _labels(columns.labels, console_width)
    assert columns.grid is not None
    n_rows, n_columns = columns.grid
    unit = max(1, min(_PLANE_LINES // n_rows, (console_width - 2) // (4 * n_columns)))
    for row in rows_apart(attention)[:_MAX_PLANES]:
        shares_YX = planes_of(columns, weights_QK[row]) / tone
        shades_YX = shares_YX.repeat(unit, 0).repeat(2 * unit, 1)
        lines = [_shaded_line(shares_X) for shares_X in shades_YX[:, : console_width - 1]]
        if columns.picture is not None and 4 * n_columns * unit + 2 <= console_width:
            seen = _pictured(columns.picture, unit * n_rows, 2 * unit * n_columns)
            lines = [one + Text("  ") + other for one, other in zip(seen, lines, strict=True)]
        if len(attention.rows) > 1:
            yield Text(visible(attention.rows.labels[row]), style="bold")
        yield from lines
        yield Text()
        yield from _heaviest(words, weights_QK[row], tone, console_width)


def _shaded_line(shares_X: Weights) -> Text:
    line = Text(no_wrap=True)
    for share in shares_X.tolist():
        line.append(" ", style=f"on {shade(SEQUENTIAL, share)}")
    return line


def _pictured(png: bytes, n_lines: int, width: int) -> list[Text]:
    """A picture of two pixels a character, one above the other."""
    pixels_YXC = Picture(png, "the picture").fitted(2 * n_lines, width, 3, stretch=True)
    colours = [["#" + bytes(pixel).hex() for pixel in line] for line in pixels_YXC]
    return [
        Text.assemble(
            *(("▀", f"{upper} on {lower}") for upper, lower in zip(*pair, strict=True)), no_wrap=True
        )
        for pair in zip(colours[::2], colours[1::2], strict=True)
    ]


def _heaviest(words: list[str], weights_K: Weights, tone: float, console_width: int) -> Iterator[Text]:
    """Units with the largest weights, each with a bar."""
    heaviest = np.argsort(-weights_K, kind="stable")[:_MAX_LISTED]
    word_cells = max(cell_len(words[at]) for at in heaviest)
    bar_cells = max(1, min(30, console_width - word_cells - 6))
    for at in heaviest:
        line = Text(" " * (word_cells - cell_len(words[at])) + words[at], style="bold", no_wrap=True)
        line.append(" " + bar(float(weights_K[at]) / tone, bar_cells), style="not bold cyan")
        yield line.append(f" {weights_K[at]:.2f}", style="not bold dim")


def _labels(labels: tuple[str, ...], console_width: int) -> list[str]:
    """Make labels visible and no wider than a quarter of the console."""
    limit = max(4, console_width // 4)
    escaped = map(visible, labels)
    return [label if cell_len(label) <= limit else set_cell_size(label, limit - 1) + "…" for label in escaped]


def bar(fraction: float, n_cells: int) -> str:
    """Draw a bar `n_cells` wide when full, in steps of an eighth of a cell."""
    eighths = round(max(0.0, min(1.0, fraction)) * n_cells * 8)
    bar = "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
    return bar + " " * (n_cells - len(bar))
