"""`regard export` and `regard import` as their user sees them."""

import json
import shutil
from pathlib import Path

import pytest

from small_runs import Call


def test_out_and_back(call: Call, translator: Path, home: Path) -> None:
    out = call("export", translator, "--to", "hf", "--out", "away")
    assert out.exit_code == 0, out.stderr
    assert "transformers" in out.stdout
    assert "checked on 7 texts only; use 200 or more" in out.stdout
    assert out.stdout.splitlines()[-1] == "wrote away"
    back = call("import", "away", "--out", "back")
    assert back.stdout.splitlines()[0] == "wrote back"
    asked = ("一二三", "十")
    assert call("predict", "back", *asked).stdout == call("predict", translator, *asked).stdout


def test_json_and_a_file_of_texts(call: Call, translator: Path, home: Path) -> None:
    (home / "texts.txt").write_text("一二\n\n三\n", "utf-8")
    out = call(
        "export", translator / "model", "--to", "ct2", "--inputs", "texts.txt", "--json", "--out", "away"
    )
    assert out.exit_code == 0, out.stderr
    told = json.loads(out.stdout)
    assert told["inputs"] == 2
    assert told["max_difference"] < 1e-4
    assert told["folder"] == "away"


def test_a_model_folder_needs_texts(call: Call, translator: Path, home: Path) -> None:
    out = call("export", translator / "model", "--to", "hf", "--out", "away")
    assert out.exit_code == 2
    assert "has no texts to check an export on; give some with --inputs FILE" in out.stderr
    assert list(home.iterdir()) == []


def test_what_is_no_folder_of_hugging_face(call: Call, translator: Path, home: Path) -> None:
    for folder in ("nowhere", translator):
        out = call("import", folder, "--out", "own")
        assert out.exit_code == 2
        assert f"{folder}: not a Hugging Face folder, as it has no config.json" in out.stderr
    said = call("import", translator / "model", "--out", "own").stderr
    assert "model: already a folder of regard; use it as it is" in said


def test_data_that_has_gone_is_no_reason_to_stay(call: Call, translator: Path, home: Path) -> None:
    recipe = json.loads((translator / "recipe.json").read_text("utf-8"))
    recipe["data"]["valid"] = ["gone.tsv"]
    shutil.copytree(translator, home / "moved")
    (home / "moved" / "recipe.json").write_text(json.dumps(recipe), "utf-8")
    out = call("export", "moved", "--to", "ct2", "--out", "away")
    assert out.exit_code == 2
    assert "gone.tsv: no such file" in out.stderr
    assert "with --inputs FILE" in out.stderr


def test_an_occupied_folder_is_refused(call: Call, translator: Path, home: Path) -> None:
    (home / "away").mkdir()
    (home / "link").symlink_to("nowhere")
    for out in ("away", "link"):
        assert f"{out}: already exists" in call("export", translator, "--to", "ct2", "--out", out).stderr
        assert f"{out}: already exists" in call("import", "anything", "--out", out).stderr


def test_a_run_that_is_here_is_exported_beside_itself(
    call: Call, translator: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shutil.copytree(translator, home / "here"))
    assert call("export", ".", "--to", "hf").exit_code == 0
    assert (home / "here-hf" / "config.json").is_file()
