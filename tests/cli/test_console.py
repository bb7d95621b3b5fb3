"""How text from anywhere is printed."""

import json
import math

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from regard.cli import console
from regard.text.sanitize import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain 中文", "plain 中文"),
        ("\x1b[31mred", "[U+001B][31mred"),
        ("a\rb\nc\td\0", "a[U+000D]b[U+000A]c[U+0009]d[U+0000]"),
        ("\x9b31m", "[U+009B]31m"),
        ("abc\u202edef", "abc[U+202E]def"),
        ("\ud800", "[U+D800]"),
        ("می\u200cخواهم", "می\u200cخواهم"),
    ],
)
def test_what_a_terminal_would_obey_is_written_out(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_json_stays_json(capsys: pytest.CaptureFixture[str]) -> None:
    console.write_json({"loss": float("nan"), "scores": {"bleu": [float("inf")]}, "中": "文\n"})
    assert capsys.readouterr().out == '{"loss": null, "scores": {"bleu": [null]}, "中": "文\\n"}\n'


def test_json_commands_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    text = "\x9b31m \x7f \u202e می\u200cخواهم \ud800 \\u009b"
    console.write_json(text)
    said = capsys.readouterr().out.removesuffix("\n")
    assert json.loads(said) == text
    assert printable(said) == said
    assert "\u200c" in said


def test_scores_stand_with_their_intervals(capsys: pytest.CaptureFixture[str]) -> None:
    """What was infinite is null in the JSON of a run."""
    scores = {"valid": {"loss": math.inf}, "test": {"loss": 1.25, "f1": 80.5, "perplexity": None}}
    console.scores(scores, {"test": {"f1": [78.7, 82.3]}})
    told = capsys.readouterr().out.splitlines()
    assert told == ["valid  loss ∞", "test   loss 1.250  f1 80.50 [78.70, 82.30]  perplexity ∞"]


def test_markup_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    console.line("[red]x[/red] [/nothing]")
    console.facts([("name", "[link=file:///]y[/link]")])
    console.bars([("[b]label[/b]", 3)])
    out = capsys.readouterr().out
    assert out.splitlines()[0] == "[red]x[/red] [/nothing]"
    assert "[link=file:///]y[/link]" in out
    assert "[b]label[/b]" in out


def test_a_file_gets_whole_lines(capsys: pytest.CaptureFixture[str]) -> None:
    console.facts([("name", "word " * 60 + "end")])
    (line,) = capsys.readouterr().out.splitlines()
    assert line.endswith("end")


def test_a_file_gets_rows_of_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("a", "b", box=None)
    table.add_row("left " * 30, "right " * 30)
    console.table(table)
    _, row = capsys.readouterr().out.splitlines()
    assert row.split() == ["left"] * 30 + ["right"] * 30
    assert console.OUT.width < len(row)


def test_a_terminal_gets_lines_that_fit() -> None:
    terminal = Console(width=40, force_terminal=True, color_system=None, record=True, quiet=False)
    with terminal.capture() as captured:
        console.facts([("name", "一二三四五六七八九十" * 5), ("longer", "word " * 20)], console=terminal)
    lines = captured.get().splitlines()
    assert max(map(cell_len, lines)) <= 40
    assert all(line[:8].strip() in ("name", "longer", "") for line in lines)


def test_bars_stand_in_line_whatever_the_script(capsys: pytest.CaptureFixture[str]) -> None:
    console.bars([("积极", 10), ("negative", 5), ("x" * 80, 0)])
    lines = capsys.readouterr().out.splitlines()
    starts = [cell_len(line[: line.index("█")]) for line in lines[:2]]
    assert starts[0] == starts[1]
    assert lines[0].count("█") == 2 * lines[1].count("█")
    assert "…" in lines[2]


@pytest.mark.parametrize(
    ("n_bytes", "shown"),
    [(0, "0 B"), (999, "999 B"), (1_000, "1.0 kB"), (35_400_000, "35 MB"), (2e15, "2000 TB")],
)
def test_sizes(n_bytes: float, shown: str) -> None:
    assert console.size(n_bytes) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.84, "0.8 s"), (42.3, "42 s"), (300, "5 min"), (11_520, "3.2 h")]
)
def test_spans(seconds: float, shown: str) -> None:
    assert console.span(seconds) == shown
