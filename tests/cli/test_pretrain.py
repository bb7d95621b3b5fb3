"""Pretraining as a user goes: init, check, train, eval, predict, explain, export; then a classifier."""

import json
import re
from pathlib import Path

import pytest
import transformers

import regard
from small_runs import Call
from tiny import planted, storied

TRAIN = ("train.max_steps=4", "train.threads=1", "model.encoder.d_model=12", "model.encoder.n_heads=3")


@pytest.fixture
def recipe(call: Call, home: Path) -> Path:
    storied(home, 61)
    storied(home, 11, "test")
    result = call("init", "--task", "pretrain", "train.txt", "test.txt")
    assert result.exit_code == 0, result.stderr
    return home / "recipe.toml"


@pytest.fixture
def run(call: Call, recipe: Path, home: Path) -> Path:
    result = call("train", recipe, *TRAIN, "run=run")
    assert result.exit_code == 0, result.stderr
    return home / "run"


def test_init_sees_a_sentence_a_line(recipe: Path) -> None:
    described = regard.Recipe.read(recipe)
    assert (described.task.kind, described.model.kind) == ("pretrain", "bert_pretraining")
    assert (described.task.documents, described.task.sentences) == ("paragraphs", "lines")
    assert described.data.test == ("test.txt",)


LAYOUTS = {
    "paragraphs": (
        "One goes here. Two goes there.\nThree is\nlast.\n\nFour. Five.\n\n",
        "paragraphs",
        "marks",
    ),
    "a paragraph a line": ("One goes here. Two goes there.\nThree is last. Four too.\n", "lines", "marks"),
    "wrapped, without blanks": ("One goes\nhere. Two goes\nthere and\nthere.\n", "files", "marks"),
}


@pytest.mark.parametrize(("text", "documents", "sentences"), LAYOUTS.values(), ids=LAYOUTS)
def test_init_sees_how_documents_are_written(
    call: Call, home: Path, text: str, documents: str, sentences: str
) -> None:
    (home / "train.txt").write_text(text * 20, "utf-8")
    result = call("init", "--task", "pretrain", "train.txt")
    assert result.exit_code == 0, result.stderr
    described = regard.Recipe.read(home / "recipe.toml")
    assert (described.task.documents, described.task.sentences) == (documents, sentences)


def test_init_sees_how_documents_are_written_in_another_encoding(call: Call, home: Path) -> None:
    (home / "train.txt").write_text("今天很好。明天也好。\n" * 40, "gb18030")
    result = call("init", "--task", "pretrain", "train.txt", "--encoding", "gb18030")
    assert result.exit_code == 0, result.stderr
    described = regard.Recipe.read(home / "recipe.toml")
    assert (described.task.documents, described.task.sentences) == ("lines", "marks")
    assert described.data.encoding == "gb18030"


@pytest.mark.parametrize("task", ["pretrain", "language_model"])
def test_init_refuses_blank_lines_alone(call: Call, home: Path, task: str) -> None:
    (home / "train.txt").write_text("\n \n\n", "utf-8")
    result = call("init", "--task", task, "train.txt")
    assert result.exit_code == 2
    assert "error: train.txt: holds nothing but blank lines" in result.stderr
    assert not (home / "recipe.toml").exists()


def test_init_looks_past_a_blank_beginning(call: Call, home: Path) -> None:
    (home / "train.txt").write_text("\n" * 3000 + "One here. Two there.\n" * 40, "utf-8")
    assert call("init", "--task", "pretrain", "train.txt").exit_code == 0


def test_a_table_of_texts_is_documents(call: Call, home: Path) -> None:
    rows = (json.dumps({"id": str(n), "text": "One here. Two there. Three."}) for n in range(60))
    (home / "train.jsonl").write_text("\n".join(rows) + "\n", "utf-8")
    assert call("init", "--task", "pretrain", "train.jsonl").exit_code == 0
    described = regard.Recipe.read(home / "recipe.toml")
    assert described.data.columns == {"text": "text"}
    assert described.task.sentences == "marks"


def test_text_alone_is_still_a_language_models(call: Call, home: Path) -> None:
    storied(home, 61)
    assert call("init", "train.txt").exit_code == 0
    assert regard.Recipe.read(home / "recipe.toml").task.kind == "language_model"


def test_check_names_documents_of_one_sentence(call: Call, recipe: Path) -> None:
    result = call("check", recipe, "--json")
    assert result.exit_code == 0, result.stdout
    found = {one["kind"]: one for one in json.loads(result.stdout)["findings"]}
    assert "a document of one sentence: words are hidden in it" in found["one-sentence"]["message"]


@pytest.mark.parametrize(("by", "counted"), [("paragraphs", "documents train "), ("files", "parts train ")])
def test_what_is_read_is_counted_by_its_name(call: Call, recipe: Path, by: str, counted: str) -> None:
    assert re.search(r'"train.txt"\]\s+# \d+ lines;', recipe.read_text("utf-8"))
    lines = call("check", recipe, f"task.documents={by}").stdout.splitlines()
    assert re.sub(" +", " ", lines[1]).startswith(counted)


def test_check_and_train_agree_on_documents_of_one_sentence(call: Call, recipe: Path, home: Path) -> None:
    """One that is longer than half of max_length becomes several, which follow one another."""
    (home / "train.txt").write_text("amber birch cedar delta ember\n\n" * 60, "utf-8")
    for max_length, refused in ((90, True), (8, False)):
        changed = (recipe, f"task.max_length={max_length}")
        result = call("check", *changed, "--json")
        told = json.loads(result.stdout)["findings"]
        assert "one-sentence" in {one["kind"] for one in told}
        assert any("every document has only one sentence" in one["message"] for one in told) == refused
        assert result.exit_code == (2 if refused else 0)
        assert call("train", *changed, *TRAIN, f"run=run{max_length}").exit_code == result.exit_code


def test_a_bert_that_tells_no_segments_apart_is_pretrained(call: Call, recipe: Path) -> None:
    result = call("train", recipe, *TRAIN, "model.encoder.n_segments=1", "run=run")
    assert result.exit_code == 0, result.stderr
    assert call("export", "run", "--to", "hf", "--out", "hf").exit_code == 0
    two = transformers.AutoTokenizer.from_pretrained("hf", local_files_only=True)("amber", "birch")
    assert "token_type_ids" not in two


def test_no_blank_lines_end_with_one_sentence(call: Call, recipe: Path, home: Path) -> None:
    (home / "train.txt").write_text("amber birch.\ncedar.\n" * 40, "utf-8")
    assert call("check", recipe).exit_code == 2
    result = call("train", recipe, *TRAIN)
    assert result.exit_code == 2
    assert "train.txt: holds only one document, so no sentence can come from another" in result.stderr


def test_it_is_scored_and_fills_blanks(call: Call, run: Path, home: Path) -> None:
    result = call("eval", run, "test.txt", "--json")
    assert result.exit_code == 0, result.stderr
    assert {"mlm_accuracy", "mlm_perplexity", "nsp_accuracy"} <= set(json.loads(result.stdout)["scores"])
    result = call("predict", run, "amber [MASK] cedar.", "--json")
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert len(told["blanks"][0]["candidates"]) == 5
    assert call("predict", run, "amber [MASK] cedar.").stdout == f"{told['text']}\n"
    result = call("predict", run, "amber cedar.")
    assert result.exit_code == 2
    assert "the text has no [MASK]" in result.stderr
    result = call("explain", run, "amber [MASK] cedar.")
    assert result.exit_code == 0, result.stderr


def test_it_leaves_and_comes_back(call: Call, run: Path, home: Path) -> None:
    result = call("export", run, "--to", "hf", "--out", home / "hf", "--json")
    assert result.exit_code == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["identical"] == 1
    assert report["max_difference"] < 1e-4
    two = transformers.AutoTokenizer.from_pretrained(home / "hf", local_files_only=True)("amber", "birch")
    assert two["token_type_ids"] == [0, 0, 0, 1, 1], "it says which text is which"
    for to in ("onnx", "ct2"):
        result = call("export", run, "--to", to)
        assert result.exit_code == 2
        assert "a pretrained BERT can only be exported to Hugging Face; export to hf" in result.stderr
    ours, again = regard.Embedder.load(run, "cpu"), regard.Embedder.load(home / "hf", "cpu")
    assert abs(ours(["amber birch"]) - again(["amber birch"])).max() < 1e-6
    (data,) = planted(home, 43, "labelled")
    lines = [f'run = "tuned"\ndata.train = "{data}"', '[task]\nkind = "classify"\nmax_length = 20']
    lines += ['[model]\nkind = "classifier"\npooling = "pooler"\ninit_from = "hf"', "[train]\nmax_steps = 2"]
    (home / "tuned.toml").write_text("\n".join(lines), "utf-8")
    for folder in (run, home / "hf"):
        result = call("train", "tuned.toml", f"model.init_from={folder}", f"run=tuned-{folder.name}")
        assert result.exit_code == 0, result.stderr
