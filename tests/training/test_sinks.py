"""The journal on disk and the lines on the console."""

import json
import math
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from regard.training.events import Encoding, Evaluated, Event, Finished, Prepared, RolledBack, Saved, Step
from regard.training.journal import Journal
from regard.training.sinks import ConsoleSink

PREPARED = Prepared(
    Path("runs/a"),
    1_234,
    {"empty": 2, "too long": 1300},
    67,
    1_500_000,
    1_500_000,
    "transformer 4+4 layers",
    "cpu",
)


def step(number: int, loss: float = 2.5) -> Step:
    return Step(number, 0, loss, 0.001, 1.5, 1000, "tokens", float(number), number / 100)


def evaluated(number: int, best: bool = True) -> Evaluated:
    return Evaluated(number, {"loss": 2.25, "bleu": 31.41}, best, float(number), 0.5)


FINISHED = Finished(40, "max_steps = 40", 83.0, 20, "best checkpoint (step 20)", {"bleu": 31.41})


def entries(path: Path) -> list[dict[str, Any]]:
    """Strictly JSON: nothing that only Python would read."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    return [json.loads(line, parse_constant=refuse) for line in path.read_text("utf-8").splitlines()]


def kept(journal: Path) -> list[tuple[str, int]]:
    return [(entry["event"], entry["step"]) for entry in entries(journal)]


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Of a run of 40 steps that logged every 10 and validated every 20."""
    path = tmp_path / "metrics.jsonl"
    write = Journal(path, every=10)
    write(PREPARED)
    for number in range(1, 41):
        write(step(number))
        if number % 20 == 0:
            write(evaluated(number))
            write(Saved(number, tmp_path))
    write(FINISHED)
    return path


def test_holds_some_steps_and_every_validation(journal: Path) -> None:
    assert kept(journal) == [
        ("step", 10),
        ("step", 20),
        ("evaluated", 20),
        ("saved", 20),
        ("step", 30),
        ("step", 40),
        ("evaluated", 40),
        ("saved", 40),
        ("finished", 40),
    ]
    first, validation = entries(journal)[0], entries(journal)[2]
    assert first["loss"] == 2.5
    assert validation["metrics"] == {"loss": 2.25, "bleu": 31.41}


def test_is_rewound_to_where_training_goes_on(journal: Path) -> None:
    write = Journal(journal, every=10, resumed_step=20)
    assert kept(journal) == [("step", 10), ("step", 20), ("evaluated", 20), ("saved", 20)]
    for number in range(21, 31):
        write(step(number))
    assert kept(journal)[-2:] == [("saved", 20), ("step", 30)]


@pytest.mark.parametrize("saved_at", [13, 20, 27])
@pytest.mark.parametrize("rolled_back", [False, True])
def test_no_token_and_no_second_is_lost_by_resuming(tmp_path: Path, saved_at: int, rolled_back: bool) -> None:
    """A line says what happened since the last one, whether or not the training was resumed between them."""
    lines: dict[str, list[dict[str, Any]]] = {}
    for name in ("whole", "resumed"):
        path = tmp_path / name
        write = Journal(path, every=10)
        for number in range(1, saved_at + 1):
            write(replace(step(number), waited=0.25, took=2.0))
        write(Saved(saved_at, tmp_path, took=3.0))
        if name == "resumed":
            for number in range(saved_at + 1, 34):
                write(replace(step(number), waited=0.5, took=4.0))
            if rolled_back:
                write(RolledBack(saved_at, 33, ()))
            else:
                write = Journal(path, every=10, resumed_step=saved_at)
        for number in range(saved_at + 1, 41):
            write(replace(step(number), waited=0.25, took=2.0))
        lines[name] = [entry for entry in entries(path) if entry["event"] == "step"]
    assert lines["resumed"] == lines["whole"]
    assert [entry["tokens"] for entry in lines["whole"]] == [10_000] * 4


def test_an_end_that_is_no_longer_one_is_forgotten(journal: Path) -> None:
    """A finished run that goes on, or ends once more, has one end."""
    Journal(journal, every=10, resumed_step=40)
    assert kept(journal)[-1] == ("saved", 40)


def test_a_new_run_begins_a_new_journal(journal: Path) -> None:
    Journal(journal, every=10)
    assert kept(journal) == []


@pytest.mark.parametrize("cut", [1, 2, 3, 30])
def test_a_line_cut_off_by_a_crash_is_dropped(journal: Path, cut: int) -> None:
    """Also where the cut falls behind an inner brace, so that the rest looks whole at its end."""
    lines = journal.read_text("utf-8").splitlines()[:3]
    assert '"metrics": {' in lines[-1]
    inner = lines[-1].index("}") + 1
    for broken in (lines[-1][:-cut], lines[-1][:inner]):
        journal.write_text("\n".join([*lines[:-1], broken]), "utf-8")
        Journal(journal, every=10, resumed_step=40)
        assert kept(journal) == [("step", 10), ("step", 20)]


def test_is_json_also_when_training_diverges(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    write = Journal(path, every=1)
    write(step(1, loss=math.nan))
    write(step(2, loss=math.inf))
    assert [entry["loss"] for entry in entries(path)] == [None, None]


@pytest.mark.parametrize("line", [b"[]", b'{"a": 1}', b"\xff\xfe", b"3"])
def test_a_line_that_is_not_ours_is_dropped(journal: Path, line: bytes) -> None:
    journal.write_bytes(line + b"\n" + journal.read_bytes())
    Journal(journal, every=10, resumed_step=20)
    assert kept(journal) == [("step", 10), ("step", 20), ("evaluated", 20), ("saved", 20)]


def test_a_name_cannot_command_the_terminal() -> None:
    text = said(replace(PREPARED, run=Path("r\x1b[31mRED")))
    assert "\x1b" not in text
    assert "r[U+001B][31mRED" in text


def said(*events: Event, terminal: bool = False) -> str:
    out = StringIO()
    sink = ConsoleSink(Console(file=out, force_terminal=terminal, width=200, color_system=None))
    for event in events:
        sink(event)
    sink.close()
    return out.getvalue()


def test_what_is_frozen_is_told() -> None:
    assert "1.50 M parameters (0.30 M trainable) on cpu" in said(replace(PREPARED, n_learning=300_000))


@pytest.mark.parametrize("terminal", [False, True])
def test_the_console_says_what_matters(terminal: bool) -> None:
    text = said(
        PREPARED, step(1), evaluated(1), step(2), evaluated(2, best=False), FINISHED, terminal=terminal
    )
    assert "1.50 M parameters on cpu" in text
    assert "1,234 training examples (left out: 2 empty, 1,300 too long), 67 for validation" in text
    assert "step 1: loss 2.250, bleu 31.41 ← best" in text
    assert "step 2: loss 2.250, bleu 31.41  (0:02" in text
    assert "finished at step 40 after 1:23 (max_steps = 40); kept the best checkpoint (step 20)" in text


def test_plain_lines_come_now_and_then() -> None:
    text = said(PREPARED, *(step(number) for number in range(1, 50)))
    assert text.count("tokens/s") == 1
    assert "step 1 · epoch 1 · loss 2.500" in text
    assert "\x1b" not in text


def test_names_are_never_markup() -> None:
    """A run folder may be called anything."""
    strange = Prepared(Path("runs/[/b][red]x"), 1, {}, 1, 1, 1, "[/i]", "cpu")
    text = said(strange, Finished(1, "[/u]", 1.0, 1, "[/s]", {}))
    assert "run folder runs/[/b][red]x" in text
    assert "([/u]); kept the [/s]" in text


def test_a_long_path_is_not_broken_up_when_piped() -> None:
    long = Prepared(Path("runs/" + "x" * 150), 1, {}, 1, 1, 1, "transformer", "cpu")
    out = StringIO()
    ConsoleSink(Console(file=out, width=80))(long)
    assert "x" * 150 in out.getvalue()


def test_encoding_is_told_once_it_takes_long() -> None:
    assert said(Encoding(4096, 0.4)) == ""
    assert "encoding · 90,000 rows · 30,000 rows/s" in said(Encoding(90_000, 3.0))
