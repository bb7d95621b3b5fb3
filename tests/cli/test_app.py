"""What is common to all verbs: starting quickly, helping, failing in one sentence."""

import subprocess
import sys
from pathlib import Path

import pytest

import regard
from regard.errors import RegardError
from small_runs import Call

VERBS = ["demo", "init", "check", "train", "eval", "predict", "explain", "info", "positions", "doctor"]


def python(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=120)


def test_version(call: Call) -> None:
    assert call("--version").stdout == f"regard {regard.__version__}\n"


def test_is_a_module_too() -> None:
    assert python("-m", "regard", "--version").stdout == f"regard {regard.__version__}\n"


def test_help_names_every_verb(call: Call) -> None:
    shown = call("--help").stdout
    assert [verb for verb in VERBS if f" {verb} " in shown] == VERBS


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(call: Call, verb: str) -> None:
    assert call(verb, "-h").exit_code == 0


def test_starting_does_not_wait_for_torch() -> None:
    heavy = python("-c", "import sys, regard.cli; print({'torch', 'numpy', 'pydantic'} & set(sys.modules))")
    assert heavy.stdout == "set()\n", heavy.stderr


def test_the_package_fetches_its_names_when_asked() -> None:
    light = python(
        "-c", "import sys, regard; print('torch' in sys.modules, callable(regard.train), dir(regard))"
    )
    assert light.stdout.startswith("False True ['Embedder', 'Evaluation', 'Recipe', 'Relations', 'Trained'")
    with pytest.raises(AttributeError, match="module 'regard' has no attribute 'trian'"):
        regard.trian  # noqa: B018


def test_an_unknown_verb_gets_the_nearest(call: Call) -> None:
    result = call("trian")
    assert result.exit_code == 2
    assert "Did you mean 'train'?" in result.stderr


def test_a_fault_of_the_user_is_one_sentence(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(folder: Path) -> None:
        raise RegardError("it is [bold]broken[/bold] \x1b[31mhere\x1b[0m " + "and long " * 30 + "so there")

    monkeypatch.setattr("regard.runs.describe.describe", fail)
    result = call("info", "x")
    assert result.exit_code == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: it is [bold]broken[/bold] [U+001B][31mhere[U+001B][0m and long")
    assert line.endswith("so there")


def test_a_fault_of_ours_is_not_hidden(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.runs.describe.describe", lambda folder: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        call("info", "x")


def test_interrupted(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(folder: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("regard.runs.describe.describe", stop)
    result = call("info", "x")
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", "interrupted\n")
