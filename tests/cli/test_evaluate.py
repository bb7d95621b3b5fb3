import json
import re
import shutil
from pathlib import Path

import pytest

import regard
from regard.cli.evaluate import _is_rival
from small_runs import Call, write_pairs


def test_the_recipe_knows_the_test_data(call: Call, translator: Path) -> None:
    stored = json.loads((translator / "model" / "metrics.json").read_text("utf-8"))
    found = json.loads(call("eval", translator, "--json").stdout)
    assert found["rows"] == 5
    assert found["scores"] == pytest.approx(stored["scores"]["test"])
    assert found["signatures"] == stored["signatures"]
    assert found["intervals"] == stored["intervals"]["test"]
    assert set(found["intervals"]) == {"bleu", "chrf"}
    shown = call("eval", translator).stdout
    assert "5 rows" in shown
    low, high = found["intervals"]["bleu"]
    assert f"bleu {found['scores']['bleu']:.2f} [{low:.2f}, {high:.2f}]" in shown
    assert f"bleu: {found['signatures']['bleu']}" in shown


def test_files_laid_out_like_the_training_data(call: Call, translator: Path, home: Path) -> None:
    write_pairs(home / "new.tsv", 3)
    found = json.loads(call("eval", translator, "new.tsv", "task.decode.beam=1", "--json").stdout)
    assert (found["files"], found["rows"]) == (["new.tsv"], 3)


def test_files_of_another_format_have_their_own_columns(call: Call, translator: Path, home: Path) -> None:
    """Aligned files are source, then target, although the recipe's table has them the other way round."""
    write_pairs(home / "new.tsv", 3)
    rows = [line.split("\t") for line in (home / "new.tsv").read_text("utf-8").splitlines()]
    for name, column in (("new.en", 0), ("new.zh", 1)):
        (home / name).write_text("".join(row[column] + "\n" for row in rows), "utf-8")
    table, files, named = (
        json.loads(call("eval", translator, *arguments, "--json").stdout)["scores"]
        for arguments in (
            ["new.tsv"],
            ["new.zh", "new.en"],
            ["new.en", "new.zh", "--column", "source=2", "--column", "target = 1"],
        )
    )
    assert table == files == named


def test_a_table_of_another_format_has_the_columns_of_the_recipe(
    call: Call, translator: Path, home: Path
) -> None:
    """In Python, too: the run knows that its source stands second."""
    write_pairs(home / "new.tsv", 3)
    rows = [line.split("\t") for line in (home / "new.tsv").read_text("utf-8").splitlines()]
    (home / "new.csv").write_text("".join(f'"{one}","{other}"\n' for one, other in rows), "utf-8")
    tabs, commas = (
        json.loads(call("eval", translator, f"new.{suffix}", "--json").stdout)["scores"]
        for suffix in ("tsv", "csv")
    )
    assert tabs == commas == regard.load(translator).evaluate(home / "new.csv").metrics
    swapped = json.loads(
        call("eval", translator, "new.csv", "--column", "source=1", "--column", "target=2", "--json").stdout
    )
    assert swapped["scores"]["loss"] != tabs["loss"]


def test_a_model_folder_needs_files(call: Call, translator: Path, home: Path) -> None:
    result = call("eval", translator / "model")
    assert result.exit_code == 2
    assert "names no test data; say which: regard eval" in result.stderr
    write_pairs(home / "new.tsv", 3)
    assert (
        call(
            "eval", translator / "model", "new.tsv", "--column", "source=2", "--column", "target=1"
        ).exit_code
        == 0
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["beem=1"], "error: decode.beem: unknown; did you mean beam?\n"),
        (["beam=few"], "error: decode.beam: "),
        (["x.tsv", "--column", "sorce=2"], "error: columns.sorce: unknown; did you mean source?\n"),
        (["--column", "2"], "error: --column 2: write it as role=column, for example"),
        (["x.tsv"], "error: x.tsv: no such file\n"),
        (["runs/nope"], "error: runs/nope: no such run or file\n"),
        (["nope/x.txt"], "error: nope/x.txt: no such file\n"),
    ],
)
def test_what_cannot_be_asked(call: Call, translator: Path, arguments: list[str], said: str) -> None:
    result = call("eval", translator, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(said)


def test_a_run_without_test_data(call: Call, classifier: Path) -> None:
    result = call("eval", classifier)
    assert result.exit_code == 2
    assert "its recipe has no test data; say which: regard eval" in result.stderr


def test_two_runs_are_compared_on_the_same_rows(call: Call, translator: Path, home: Path) -> None:
    """The second is known by being a folder, wherever it stands among the files."""
    shutil.copytree(translator, home / "other")
    write_pairs(home / "new.tsv", 7)
    arguments = ("eval", translator, "new.tsv", "other", "beam=1")
    found = json.loads(call(*arguments, "--json").stdout)
    assert list(found["runs"]) == [str(translator), "other"]
    assert found["files"] == ["new.tsv"]
    alone = json.loads(call("eval", translator, "new.tsv", "beam=1", "--no-baselines", "--json").stdout)
    assert found["runs"]["other"] | {"files": ["new.tsv"]} == alone
    assert found["differences"]["bleu"] == {"difference": 0, "interval": [0, 0], "p": 1}
    shown = call(*arguments).stdout
    assert "7 rows" in shown
    assert re.search(r"chrf .*\+0\.00 \[\+0\.00, \+0\.00\] +1\.0000", shown)


def test_what_cannot_be_compared(call: Call, translator: Path, classifier: Path, home: Path) -> None:
    (home / "empty").mkdir()
    for others, said in (
        ([translator], "a run is compared with another, not with itself"),
        ([classifier, home / "empty"], "empty: two runs are compared at a time; leave out all others"),
        ([home / "empty"], "empty: not a trained model of regard (no config.json)"),
        ([classifier], "its task is classify, that of"),
    ):
        result = call("eval", translator, *others)
        assert (result.exit_code, result.stdout) == (2, ""), said
        assert said in result.stderr


def test_a_folder_of_data_ends_with_a_slash(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "recipe.json").write_text("{}")
    (tmp_path / "data").mkdir()
    named = {name: _is_rival(f"{tmp_path}/{name}") for name in ("run", "run/", "data", "data/")}
    assert named == {"run": True, "run/": True, "data": True, "data/": False}
