"""A tagger from its files to its answers, as a user goes: init, check, train, eval, predict, explain."""

import json
from pathlib import Path

import pytest

import regard
from small_runs import Call
from tiny import named

GIVEN = "amber ember cedar"
TRAIN = ("train.max_steps=4", "train.threads=1", "model.encoder.d_hidden=8", "model.encoder.d_embed=8")


@pytest.fixture
def recipe(call: Call, home: Path) -> Path:
    files = [path for name, n in (("train", 43), ("valid", 7), ("test", 5)) for path in named(home, n, name)]
    result = call("init", *(Path(path).name for path in files))
    assert result.exit_code == 0, result.stderr
    return home / "recipe.toml"


@pytest.fixture
def run(call: Call, recipe: Path, home: Path) -> Path:
    result = call("train", recipe, *TRAIN, "run=run")
    assert result.exit_code == 0, result.stderr
    return home / "run"


def test_init_recognises_the_files(recipe: Path) -> None:
    described = regard.Recipe.read(recipe)
    assert (described.task.kind, described.model.kind) == ("tag", "tagger")
    assert described.data.valid == ("valid.conll",)


def test_a_table_of_words_and_tags_is_recognised(call: Call, home: Path) -> None:
    lines = ["Anna Berg lives\tB-PER I-PER O", "in Rome\tO B-LOC"] * 9
    (home / "train.tsv").write_text("\n".join(lines) + "\n", "utf-8")
    assert call("init", "train.tsv").exit_code == 0
    described = regard.Recipe.read(home / "recipe.toml")
    assert described.task.kind == "tag"
    assert described.data.columns == {"text": 1, "tags": 2}


@pytest.mark.parametrize("name", ["train.txt", "train.tsv"])
def test_conll_by_another_name_is_told(call: Call, home: Path, name: str) -> None:
    (home / name).write_text("Anna\tB-PER\nlives\tO\n\nRome\tB-LOC\n" * 20, "utf-8")
    result = call("init", name)
    assert result.exit_code == 2
    assert f"{name}: looks like CoNLL" in result.stderr
    assert "ends in .conll" in result.stderr


def test_another_task_than_the_file_is_for(call: Call, home: Path) -> None:
    named(home, 3)
    result = call("init", "train.conll", "--task", "classify")
    assert result.exit_code == 2
    assert "train.conll: this format is for the task 'tag', not 'classify'" in result.stderr


def test_check_counts_tags_and_names_their_scheme(call: Call, recipe: Path) -> None:
    result = call("check", recipe, "--json")
    assert result.exit_code == 0, result.stdout
    found = json.loads(result.stdout)
    assert set(found["labels"]) == {"B-TREE", "I-TREE", "O"}
    (scheme,) = [one for one in found["findings"] if one["kind"] == "scheme"]
    assert "BIO tags mark" in scheme["message"]
    assert "tag: words in training" in call("check", recipe).stdout


def test_check_tells_of_a_rate_that_is_never_reached(call: Call, recipe: Path) -> None:
    def told(*changes: str) -> list[str]:
        findings = json.loads(call("check", recipe, *changes, "--json").stdout)["findings"]
        return [one["message"] for one in findings if one["kind"] == "warmup"]

    assert told("train.max_steps=9", "train.warmup=9") == [
        "train.warmup = 9 steps of a training of 9: train.lr is never reached; lower it"
    ]
    assert told("train.max_steps=9", "train.warmup=8") == []


def test_check_has_no_steps_of_a_model_that_counts(call: Call, recipe: Path, home: Path) -> None:
    text = recipe.read_text("utf-8")
    (home / "counts.toml").write_text(text[: text.index("[model]")] + '[model]\nkind = "hmm"\n', "utf-8")
    found = json.loads(call("check", "counts.toml", "--json").stdout)
    assert found["estimate"] is None
    assert "there are no steps to time" in str(found["findings"])
    result = call("train", "counts.toml", "run=counted")
    assert result.exit_code == 0, result.stderr
    assert "all was counted" in result.stderr + result.stdout


def test_check_warns_of_mixed_schemes(call: Call, recipe: Path, home: Path) -> None:
    with (home / "train.conll").open("a", encoding="utf-8") as file:
        file.write("amber U-TREE\n")
    findings = json.loads(call("check", recipe, "--json").stdout)["findings"]
    (scheme,) = [one for one in findings if one["kind"] == "scheme"]
    assert scheme["severity"] == "warning"
    assert "none of BIO, BIOES, BMES has all of these tags, because of 'U-TREE'" in scheme["message"]


def test_check_warns_of_spans_that_nothing_begins(call: Call, recipe: Path, home: Path) -> None:
    for name in ("train", "valid", "test"):
        (home / f"{name}.conll").write_text("amber I-TREE\nsees O\n\n" * 9, "utf-8")
    findings = json.loads(call("check", recipe, "--json").stdout)["findings"]
    (scheme,) = [one for one in findings if one["kind"] == "scheme"]
    assert scheme["severity"] == "warning"
    assert "no tag begins a span (B-…), so 'I-TREE' mark none" in scheme["message"]
    findings = json.loads(call("check", recipe, "task.illegal=mend", "--json").stdout)["findings"]
    told = {one["kind"]: one for one in findings}
    assert told["illegal-tags"]["severity"] == "note"
    assert told["illegal-tags"]["message"].endswith("their spans begin where they are first seen")
    assert told["scheme"]["message"] == "train: BIO tags mark 9 spans: TREE 9"
    assert call("train", recipe, *TRAIN, "task.illegal=mend").exit_code == 0


def test_check_counts_the_tags_that_mending_makes(call: Call, recipe: Path, home: Path) -> None:
    for name in ("train", "valid", "test"):
        (home / f"{name}.conll").write_text("amber I-TREE\nember I-TREE\n\n" * 9, "utf-8")
    found = call("check", recipe)
    assert found.exit_code == 2
    assert "✗ train: a tagger needs at least two different tags" in found.stdout
    assert call("check", recipe, "task.illegal=mend").exit_code == 0
    assert call("train", recipe, *TRAIN, "task.illegal=mend").exit_code == 0


def test_check_names_every_fault_with_its_line(call: Call, recipe: Path, home: Path) -> None:
    valid = home / "valid.conll"
    before = len(valid.read_text("utf-8").splitlines())
    with valid.open("a", encoding="utf-8") as file:
        file.write("amber O\nember I-TREE\n\ncedar B-BUSH\n\nlonely\n")
    result = call("check", recipe, "--json")
    assert result.exit_code == 2
    found = {one["kind"]: one for one in json.loads(result.stdout)["findings"]}
    assert found["illegal-tags"]["places"][0]["where"] == f"valid.conll:{before + 2}"
    assert "I-TREE after O" in found["illegal-tags"]["places"][0]["excerpt"]
    assert found["illegal-tags"]["message"].endswith(
        "does not allow; mend them, or set task.illegal to mend (as conlleval reads them) or skip"
    )
    told = json.loads(call("check", recipe, "task.illegal=skip", "--json").stdout)["findings"]
    (skipped,) = [one["message"] for one in told if one["kind"] == "illegal-tags"]
    assert skipped.endswith("does not allow; scored, but without a loss")
    assert "'B-BUSH'" in found["unseen-tag"]["message"]
    assert f"valid.conll:{before + 6}: 1 cell found, 2 needed" in found["unreadable"]["message"]


@pytest.mark.parametrize(
    ("added", "said"),
    [
        (
            "amber I-TREE\n",
            "I-TREE cannot stand after the beginning in BIO tags; mend them (task.illegal=mend",
        ),
        ("amber B-BUSH\n", "tag 'B-BUSH' does not occur in the training data; known: B-TREE"),
        ("amber\n", "1 cell found, 2 needed; a word and its tag stand on one line"),
    ],
)
def test_training_stops_at_bad_tags(call: Call, recipe: Path, home: Path, added: str, said: str) -> None:
    valid = home / "valid.conll"
    line = len(valid.read_text("utf-8").splitlines()) + 1
    with valid.open("a", encoding="utf-8") as file:
        file.write(added)
    result = call("train", recipe, *TRAIN)
    assert result.exit_code == 2
    assert f"error: valid.conll:{line}: " in result.stderr
    assert said in result.stderr
    assert not (home / "runs").exists() or not any((home / "runs").glob("*/identity.json"))


def test_training_without_bad_tags_says_so(call: Call, recipe: Path, home: Path) -> None:
    for name in ("train.conll", "valid.conll"):
        with (home / name).open("a", encoding="utf-8") as file:
            file.write("amber I-TREE\n")
    result = call("train", recipe, *TRAIN, "task.illegal=skip")
    assert result.exit_code == 0, result.stderr
    assert "43 training examples (left out: 1 illegally tagged), 8 for validation" in result.stderr
    assert "inf" not in result.stderr


def test_eval_gives_spans_and_a_table_of_kinds(call: Call, run: Path) -> None:
    told = call("eval", run)
    assert told.exit_code == 0, told.stderr
    assert "f1" in told.stdout
    assert "TREE" in told.stdout
    found = json.loads(call("eval", run, "--json").stdout)
    assert set(found["scores"]) == {"loss", "f1", "precision", "recall", "accuracy"}
    assert found["by_kind"]["TREE"].keys() == {"f1", "precision", "recall", "n"}


def test_predict_answers_lines_and_files(call: Call, run: Path, home: Path) -> None:
    told = call("predict", run, GIVEN).stdout
    assert [part.partition("/")[0] for part in told.split()] == GIVEN.split()
    answer = json.loads(call("predict", run, GIVEN, "--json").stdout)
    assert answer["input"] == GIVEN
    assert answer["words"] == GIVEN.split()
    assert len(answer["probabilities"]) == len(answer["tags"]) == 3
    (home / "new.conll").write_text("don't O\nU.S. O\n\namber O\n", "utf-8")
    lines = call("predict", run, "-f", "new.conll", "--json").stdout.splitlines()
    assert [json.loads(line)["words"] for line in lines] == [["don't", "U.S."], ["amber"]]
    (home / "new.jsonl").write_text('{"tokens": ["don\'t", "U.S."]}\n{"tokens": "U.S."}\n', "utf-8")
    lines = call("predict", run, "-f", "new.jsonl", "--json").stdout.splitlines()
    assert [json.loads(line)["words"] for line in lines] == [["don't", "U.S."], ["U", ".", "S", "."]]
    lines = call("predict", run, "--json", "-s", "split=characters", "ab").stdout.splitlines()
    assert json.loads(lines[0])["words"] == ["a", "b"]
    assert call("predict", run, input="\namber\n").stdout.splitlines()[0] == ""


def test_explain_says_which_words_spoke_for_a_tag(call: Call, run: Path, home: Path) -> None:
    result = call("explain", run, GIVEN)
    assert result.exit_code == 0, result.stderr
    assert "left out: answer → text" in result.stdout
    assert "Measured, not attention" in result.stdout
    assert (home / "attention.html").is_file()
    assert (home / "attention.svg").is_file()
    explained = regard.load(run).explain(GIVEN)
    assert explained.sites == ["left-out", "marginals", "transitions"]
    weights_QK = explained.map("left-out").head(None)
    assert weights_QK.shape == (3, 4)
    assert weights_QK.sum(1) == pytest.approx(1, abs=1e-5)
    assert (weights_QK[:, 3] == 0).all()


def test_a_transformer_shows_its_attention_too(call: Call, recipe: Path) -> None:
    encoder = 'model.encoder={kind = "transformer", d_model = 8, n_heads = 2, d_ff = 12, n_layers = 1}'
    result = call("train", recipe, "train.max_steps=2", "train.threads=1", encoder, "run=run")
    assert result.exit_code == 0, result.stderr
    explained = regard.load("run").explain(GIVEN)
    assert explained.sites == ["encoder.stack.layers.0.self", "left-out", "marginals", "transitions"]
    assert explained.main == "left-out"


def test_it_leaves_proven_on_its_own_words(call: Call, run: Path, home: Path) -> None:
    result = call("export", run, "--to", "onnx", "--out", "away", "--json")
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert (told["inputs"], told["identical"]) == (7, 1.0)
    assert told["max_difference"] < 1e-4
    assert json.loads((home / "away" / "tags.json").read_text("utf-8"))["split"] == "signs"
    for to, what in (("ct2", "a tagger has no"), ("hf", "a tagger with a rnn encoder has no")):
        result = call("export", run, "--to", to)
        assert result.exit_code == 2
        assert f"{to}: {what} counterpart" in result.stderr
        assert "export to onnx" in result.stderr


def test_info_lists_the_tags(call: Call, run: Path) -> None:
    assert "B-TREE, I-TREE, O" in call("info", run).stdout
