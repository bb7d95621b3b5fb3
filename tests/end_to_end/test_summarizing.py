"""Documents and summaries, from files to a served model."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import regard
from regard.api.trained import Trained
from regard.check.examine import examine
from regard.cli import app
from regard.errors import DataError, RunError
from regard.init.detect import detect
from regard.interop.importing import import_folder
from regard.recipe import Recipe
from served import served
from tiny import summarizing, transformer, untrained


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("summaries")


@pytest.fixture(scope="module")
def trained(folder: Path) -> Trained:
    return regard.train(summarizing(folder), quiet=True)


def test_it_is_scored_by_rouge(trained: Trained, folder: Path) -> None:
    assert set(trained.metrics["scores"]["test"]) == {"loss", "rouge1", "rouge2", "rougeL"}
    shown = CliRunner().invoke(app, ["eval", str(folder / "run")])
    assert shown.exit_code == 0, shown.output
    assert "first 10 words" in shown.output
    assert "rougeL" in shown.output


def test_it_answers_explains_and_follows(trained: Trained) -> None:
    text = "amber birch cedar delta"
    assert list(trained.follow(text, min_length=2))[-1] == trained.predict(text, min_length=2).text
    explained = trained.explain(text)
    assert explained.map(explained.main).columns.name == "document"
    assert explained.map(explained.main).rows.name == "summary"
    assert "summary → document" in explained.map(explained.main).title


def test_it_is_served(trained: Trained, folder: Path, tmp_path: Path) -> None:
    with served([folder / "run"], tmp_path / "log") as server:
        reply = server.post("/v1/summarize", text="amber birch")
        assert reply.json["answers"] == [trained.predict("amber birch").to_json()]


@pytest.mark.parametrize("to", ["hf", "ct2"])
def test_it_leaves(trained: Trained, tmp_path: Path, to: str) -> None:
    long = " ".join(["amber birch cedar"] * 300)
    report = trained.export(tmp_path / "out", to, ["amber", "birch amber", "cedar birch amber", long])
    assert (report.n_inputs, report.identical) == (4, 1.0)
    assert report.difference < 1e-4
    if to == "hf":
        assert import_folder(tmp_path / "out", tmp_path / "back") == "summarize"
        back = regard.load(tmp_path / "back")
        assert back.task_config == trained.task_config
        assert back.predict(["amber birch", long]) == trained.predict(["amber birch", long])


def test_the_fast_engine_answers(trained: Trained, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["amber birch", "cedar amber"]
    search = {"min_length": 2, "length_penalty": 0.0}
    ours = trained.predict(texts, **search)
    fast = regard.load(folder / "run", engine="ct2")
    monkeypatch.setattr(type(fast.task), "predict", None)  # our own search
    assert [answer.text for answer in fast.predict(texts, **search)] == [answer.text for answer in ours]


def test_it_answers_with_its_kind_alone(trained: Trained, folder: Path, tmp_path: Path) -> None:
    untrained(transformer()).save(tmp_path / "translator")
    with pytest.raises(RunError, match=r"translator: a translate model cannot answer together with .*run"):
        regard.load(folder / "run", tmp_path / "translator")
    both = regard.load(folder / "run", folder / "run")
    assert both.predict("amber birch", min_length=2).text == trained.predict("amber birch", min_length=2).text


@pytest.mark.parametrize("named", [True, False])
def test_its_files_are_recognised(named: bool, tmp_path: Path) -> None:
    long = "a program that draws pictures of all kinds on any screen there may be number"
    names = ("article", "abstract") if named else ("one", "two")
    header = "id\t" + "\t".join(names) + "\n" if named else ""
    lines = (f"{n}\t{long} {n}\tdraws pictures {n}" for n in range(30))
    (tmp_path / "train.tsv").write_text(header + "\n".join(lines) + "\n", "utf-8")
    guess = detect([str(tmp_path / "train.tsv")])
    assert guess.task == "summarize"
    assert guess.columns == (
        {"document": "article", "summary": "abstract"} if named else {"document": 2, "summary": 3}
    )
    out = tmp_path / "recipe.toml"
    made = CliRunner().invoke(app, ["init", str(tmp_path / "train.tsv"), "--out", str(out)])
    assert made.exit_code == 0, made.output
    assert Recipe.read(out).task.kind == "summarize"


def test_what_is_wrong_with_the_data_is_told(tmp_path: Path) -> None:
    recipe = summarizing(tmp_path)
    with (tmp_path / "train.jsonl").open("a", encoding="utf-8") as file:
        for document, summary in (("", "amber"), ("amber", "amber birch cedar"), ("amber " * 300, "amber")):
            file.write(json.dumps({"document": document, "summary": summary}) + "\n")
    found = {finding.kind: finding for finding in examine(recipe).findings}
    assert "1 row with an empty document or summary, left out of training" in found["empty"].message
    assert "are the columns the right way round?" in found["longer-summary"].message
    assert found["too-long"].message.endswith("of documents the rest is not read, summaries are left out")


def test_documents_that_are_no_text_are_refused(tmp_path: Path) -> None:
    recipe = summarizing(tmp_path)
    (tmp_path / "train.jsonl").write_text('{"document": ["a", "b"], "summary": "a"}\n', "utf-8")
    with pytest.raises(DataError, match=r"train\.jsonl:1: document is an array; it must be a string"):
        regard.train(recipe, quiet=True)
