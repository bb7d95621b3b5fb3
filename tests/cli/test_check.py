import json
from pathlib import Path

import pytest

from regard.cli.check import _bins
from small_runs import CLASSIFY, Call, write_recipe


@pytest.fixture(autouse=True)
def _brief(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.check.cost.BUDGET", 0.0)


def test_good_data(call: Call, recipe: Path, home: Path) -> None:
    before = sorted(home.rglob("*"))
    result = call("check", recipe)
    assert result.exit_code == 0, result.stderr
    assert "rows        train 40, valid 7, test 5" in result.stdout
    assert "source: tokens a row" in result.stdout
    assert "█" in result.stdout
    assert "an epoch of" in result.stdout
    assert f"train with: regard train {recipe}" in result.stdout
    assert sorted(home.rglob("*")) == before, "check writes nothing"


def test_bad_data_is_told_all_at_once(call: Call, recipe: Path, home: Path) -> None:
    with (home / "train.tsv").open("ab") as file:
        file.write(b"bad\xff\t\xe4\xb8\x80\nalone\nsame\tsame\n")
    (home / "test.tsv").unlink()
    result = call("check", recipe)
    assert result.exit_code == 2
    assert "train.tsv:41: byte 4 of the line (0xff) is not valid utf-8" in result.stdout
    assert "train.tsv:42: 1 cell found, 2 needed" in result.stdout
    assert "test.tsv: no such file" in result.stdout
    assert "train: 1 row with source = target" in result.stdout
    assert f"{home}/train.tsv:43  same | same" in result.stdout
    assert "3 errors, " in result.stdout.splitlines()[-1]


def test_json(call: Call, recipe: Path) -> None:
    report = json.loads(call("check", recipe, "--json").stdout)
    assert report["trainable"] is True
    assert report["rows"] == {"train": 40, "valid": 7, "test": 5}
    assert report["estimate"]["steps_per_epoch"] > 1
    result = call("check", recipe, "data.train=nowhere.tsv", "--json")
    assert result.exit_code == 2
    (fault,) = (found for found in json.loads(result.stdout)["findings"] if found["severity"] == "error")
    assert fault["message"].startswith("nowhere.tsv: no such file")


def test_labels(call: Call, home: Path) -> None:
    recipe = write_recipe(home, CLASSIFY)
    (home / "test.csv").write_text("text,label\ngood [b]film,perhaps\n", "utf-8")
    result = call("check", recipe, "data.test=test.csv")
    assert result.exit_code == 2
    assert "label: rows in training" in result.stdout
    assert "test: 1 row with a label that does not occur in train ('perhaps')" in result.stdout
    assert "test.csv:2  good [b]film | perhaps" in result.stdout


def test_bins_are_called_by_what_they_hold() -> None:
    assert _bins((0, 1, 2)) == ["0", "1", "2 and more"]
    assert _bins((0, 10, 20)) == ["0–9", "10–19", "20 and more"]
    assert _bins((0,)) == ["0 and more"]
