from pathlib import Path

import pytest

from small_runs import Call


def test_writes_a_page_and_a_picture_and_prints_links(call: Call, translator: Path, home: Path) -> None:
    result = call("explain", translator, "一二三")
    assert result.exit_code == 0
    assert "</html>" in (home / "attention.html").read_text("utf-8")
    assert "</svg>" in (home / "attention.svg").read_text("utf-8")
    assert result.stdout.startswith("一二三\n→ ")
    assert " ← " in result.stdout
    assert "Measured on this input" in result.stdout
    assert "they do not prove why it decided" in result.stdout
    assert result.stdout.splitlines()[-2:] == ["page     attention.html", "picture  attention.svg"]


def test_default_names_are_never_overwritten(call: Call, classifier: Path, home: Path) -> None:
    (home / "attention.html").write_text("mine")
    call("explain", classifier, "good film")
    call("explain", classifier, "bad film")
    assert (home / "attention.html").read_text() == "mine"
    assert sorted(path.name for path in home.glob("attention*")) == [
        "attention-2.html",
        "attention-2.svg",
        "attention-3.html",
        "attention.html",
        "attention.svg",
    ]


def test_names_that_are_given_are(call: Call, classifier: Path, home: Path) -> None:
    (home / "a.html").write_text("old")
    call("explain", classifier, "good film", "--out", "a.html", "--svg", "a.svg")
    assert "</html>" in (home / "a.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["一", "--out", "no/folder/a.html"], "error: no/folder/a.html: cannot be written (No such file"),
        ([" "], "error: there is nothing to explain: the text is empty"),
    ],
)
def test_what_cannot_be_asked(call: Call, translator: Path, arguments: list[str], said: str) -> None:
    result = call("explain", translator, *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(said)


def test_positions(call: Call, home: Path) -> None:
    assert call("positions").stdout == "positions.svg\n"
    assert "50 positions × 128 dimensions" in (home / "positions.svg").read_text("utf-8")
    assert call("positions", "--positions", "7", "--width", "11", "--out", "p.svg").stdout == "p.svg\n"
    assert "7 positions × 11 dimensions" in (home / "p.svg").read_text("utf-8")
