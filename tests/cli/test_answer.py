"""Answering from files to answers, as a user goes: init, check, train, eval, predict, explain."""

import json
from pathlib import Path

import pytest

import regard
from regard.runs.corpus import Corpus
from small_runs import Call
from tiny import asked

CONTEXT = "amber in heath, cedar in the jetty."
TRAIN = ("train.max_steps=4", "train.threads=1", "model.encoder.d_hidden=8", "model.encoder.d_embed=8")


@pytest.fixture
def recipe(call: Call, home: Path) -> Path:
    files = [path for name, n in (("train", 43), ("valid", 7), ("test", 5)) for path in asked(home, n, name)]
    result = call("init", *(Path(path).name for path in files))
    assert result.exit_code == 0, result.stderr
    return home / "recipe.toml"


@pytest.fixture
def run(call: Call, recipe: Path, home: Path) -> Path:
    result = call("train", recipe, *TRAIN, "run=run")
    assert result.exit_code == 0, result.stderr
    return home / "run"


def test_init_recognises_squad(recipe: Path) -> None:
    described = regard.Recipe.read(recipe)
    assert (described.task.kind, described.model.kind) == ("answer", "answerer")
    assert described.data.valid == ("valid.json",)


@pytest.mark.parametrize("header", ["question\tcontext\tanswer\n", "a\tb\tc\n", ""])
def test_init_recognises_a_table(call: Call, home: Path, header: str) -> None:
    lands = ("heath", "jetty", "grove")
    lines = [
        f"where is it {n}\tit is {n} in the {lands[n % 3]} , far away\tin the {lands[n % 3]}"
        for n in range(40)
    ]
    (home / "train.tsv").write_text(header + "\n".join(lines) + "\n", "utf-8")
    result = call("init", "train.tsv")
    assert result.exit_code == 0, result.stderr
    described = regard.Recipe.read(home / "recipe.toml")
    assert described.task.kind == "answer"
    names = header.split() or [1, 2, 3]
    assert described.data.columns == dict(zip(("question", "context", "answer"), names, strict=True))


def test_check_says_what_will_be_learnt(call: Call, recipe: Path) -> None:
    result = call("check", recipe, "--json")
    assert result.exit_code == 0, result.stdout
    found = {one["kind"]: one for one in json.loads(result.stdout)["findings"]}
    assert "43 rows (33.3%) without an answer: the model learns to say" in found["unanswerable"]["message"]


@pytest.mark.parametrize(("max_length", "windows", "said"), [(51, 1, 0), (50, 2, 129)])
def test_check_counts_what_is_read_in_windows(
    call: Call, recipe: Path, max_length: int, windows: int, said: int
) -> None:
    """A question of 15 characters, a mark, a context of 35."""
    small = ("task.tokenizer.kind=char", "task.max_question=15", "task.overlap=2")
    small = (*small, f"task.max_length={max_length}")
    corpus = Corpus(regard.Recipe.read(recipe, small), Path())
    examples = corpus.fit().encode(list(corpus.rows("train")))
    assert {len(example.arrays["lengths"]) for example in examples} == {windows}
    told = json.loads(call("check", recipe, *small, "--json").stdout)["findings"]
    found = [one["message"] for one in told if one["kind"] == "too-long"]
    assert [f"train: {said} rows" in message for message in found[:1]] == [True] * bool(said)


def test_check_names_every_fault(call: Call, recipe: Path, home: Path) -> None:
    told = json.loads((home / "valid.json").read_text())
    told["data"][0]["paragraphs"][1]["qas"][0]["answers"][0]["answer_start"] += 1
    (home / "valid.json").write_text(json.dumps(told))
    result = call("check", recipe, "--json")
    assert result.exit_code == 2
    (fault,) = [one for one in json.loads(result.stdout)["findings"] if one["kind"] == "unreadable"]
    assert "valid.json: question valid-1-0: the answer" in fault["message"]
    result = call("train", recipe, *TRAIN)
    assert result.exit_code == 2
    assert "error: valid.json: question valid-1-0: the answer" in result.stderr


def test_check_counts_places_that_are_wrong_alike(call: Call, recipe: Path, home: Path) -> None:
    """As when somebody counted bytes."""
    told = json.loads((home / "train.json").read_text())
    for paragraph in told["data"][0]["paragraphs"][:5]:
        paragraph["qas"][0]["answers"][0]["answer_start"] += 1
    (home / "train.json").write_text(json.dumps(told))
    found = json.loads(call("check", recipe, "--json").stdout)["findings"]
    (fault,) = [one for one in found if one["kind"] == "unreadable"]
    assert fault["message"].endswith("count characters, from 0 (4 more like it)")
    assert fault["count"] == 5
    assert [one["where"] for one in fault["places"]] == [
        f"train.json: question train-{number}-0" for number in range(3)
    ]


def test_check_counts_answers_that_are_never_given(call: Call, recipe: Path) -> None:
    changed = ("task.tokenizer.kind=char", "task.max_answer=5")
    found = json.loads(call("check", recipe, *changed, "--json").stdout)["findings"]
    told = [one["message"] for one in found if one["kind"] == "long-answer"]
    assert told == []
    found = json.loads(call("check", recipe, *changed[:1], "task.max_answer=4", "--json").stdout)["findings"]
    told = [one["message"] for one in found if one["kind"] == "long-answer"]
    assert "whose answer has more than task.max_answer = 4 tokens, never to be given whole" in told[0]


def test_answers_inside_tokens_are_told(call: Call, home: Path) -> None:
    """Words without spaces: tokens that are learnt from them go where they like."""
    rows = [{"question": "谁?", "context": f"据说张三写了这本书 {n}", "answer": "张三"} for n in range(40)]
    (home / "qa.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    assert call("init", "qa.jsonl").exit_code == 0
    assert regard.Recipe.read(home / "recipe.toml").task.tokenizer.kind == "char"
    for kind, n in (("bpe", 40), ("char", 0)):
        told = call("check", "recipe.toml", f"task.tokenizer.kind={kind}", "--json").stdout
        inside = [one for one in json.loads(told)["findings"] if one["kind"] == "inside-tokens"]
        assert sum(one["count"] for one in inside) == n


def test_a_context_of_white_space_is_empty(call: Call, home: Path) -> None:
    (path,) = asked(home, 43)
    told = json.loads(Path(path).read_text())
    for paragraph in told["data"][0]["paragraphs"]:
        paragraph["qas"].pop()  # the one that has no answer
    told["data"][0]["paragraphs"][0] = {"context": " \n ", "qas": [{"id": "x", "question": "where?"}]}
    Path(path).write_text(json.dumps(told))
    assert call("init", "train.json").exit_code == 0
    found = json.loads(call("check", "recipe.toml", "--json").stdout)["findings"]
    told = {one["kind"]: one["message"] for one in found}
    assert told["empty"] == "train: 1 row with an empty question or context, left out of training"
    result = call("train", "recipe.toml", *TRAIN, "run=run")
    assert result.exit_code == 0, result.stderr
    assert json.loads((home / "run" / "model" / "answer.json").read_text()) == {"may_be_none": False}


def test_answers_that_are_not_in_the_text(call: Call, home: Path) -> None:
    lines = [{"question": "where", "context": CONTEXT, "answer": text} for text in ["heath"] * 25 + ["Heath"]]
    (home / "train.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert call("init", "train.jsonl").exit_code == 0
    result = call("check", "recipe.toml", "--json")
    assert result.exit_code == 2
    found = {one["kind"]: one for one in json.loads(result.stdout)["findings"]}
    assert found["answer-elsewhere"]["places"][0]["where"] == "train.jsonl:26"
    result = call("train", "recipe.toml", *TRAIN)
    assert result.exit_code == 2
    assert "train.jsonl:26: the answer 'Heath' does not stand in the context" in result.stderr


def test_without_validation_data_whole_contexts_are_held_out(call: Call, home: Path) -> None:
    asked(home, 41)
    assert call("init", "train.json").exit_code == 0
    found = json.loads(call("check", "recipe.toml", "--json").stdout)
    assert found["rows"] == {"train": 39 * 3, "valid": 2 * 3}
    result = call("train", "recipe.toml", *TRAIN, "run=run")
    assert result.exit_code == 0, result.stderr


def test_eval_gives_f1_and_exact_match(call: Call, run: Path) -> None:
    found = json.loads(call("eval", run, "--json").stdout)
    assert set(found["scores"]) == {"loss", "f1", "em"}
    assert set(found["by_kind"]) == {"has an answer", "has none"}
    assert found["by_kind"]["has none"]["n"] == 5


def test_predict_answers_what_is_typed_about_a_context(call: Call, run: Path, home: Path) -> None:
    trained = regard.load(run)
    expected = trained.predict({"question": "where is amber?", "context": CONTEXT})
    told = call("predict", run, "where is amber?", f"context={CONTEXT}")
    assert told.exit_code == 0, told.stderr
    assert told.stdout == f"{expected.text}\n"
    (home / "about.txt").write_text(f"{CONTEXT}\nfjord in grove.\n", "utf-8")
    answer = json.loads(
        call("predict", run, "question=where is fjord?", "context=@about.txt", "--json").stdout
    )
    assert answer["input"] == {"question": "where is fjord?", "context": f"{CONTEXT}\nfjord in grove."}
    assert {"text", "start", "end", "probability", "windows"} <= set(answer)
    lines = call("predict", run, f"context={CONTEXT}", input="where is amber?\n\nwhere is birch?\n").stdout
    assert lines.splitlines()[:2] == [expected.text, ""]


def test_predict_answers_files(call: Call, run: Path, home: Path) -> None:
    rows = [{"question": f"where is {tree}?", "context": CONTEXT} for tree in ("amber", "cedar")]
    (home / "qa.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = call("predict", run, "--file", "qa.jsonl", "--json").stdout.splitlines()
    assert [json.loads(line)["input"] for line in lines] == rows
    expected = [answer.to_json() for answer in regard.load(run).predict(rows)]
    assert [{key: json.loads(line)[key] for key in expected[0]} for line in lines] == expected
    assert len(call("predict", run, "-f", "test.json").stdout.splitlines()) == 15
    (home / "asked.txt").write_text("where is amber?\nwhere is cedar?\n")
    lines = call("predict", run, "-f", "asked.txt", f"context={CONTEXT}", "--json").stdout.splitlines()
    assert [json.loads(line)["input"] for line in lines] == rows
    result = call("predict", run, "-f", "asked.txt")
    assert result.exit_code == 2
    assert "asked with question and context; give context=VALUE or context=@FILE" in result.stderr


@pytest.mark.parametrize("verb", ["predict", "explain"])
def test_a_question_alone_is_refused(call: Call, run: Path, verb: str) -> None:
    result = call(verb, run, "where is amber?")
    assert result.exit_code == 2
    assert "'where is amber?': which input this is cannot be told" in result.stderr
    assert "this model is asked with question and context; write each as NAME=VALUE" in result.stderr


def test_two_contexts_are_refused(call: Call, run: Path) -> None:
    result = call("predict", run, "question=where?", "question=who?", "context=a", "context=b", "context=c")
    assert result.exit_code == 2
    assert "2 × question and 3 × context: give as many of one as of the other" in result.stderr
    result = call("explain", run, "question=where?", "context=a", "context=b")
    assert "2 inputs are given; give one at a time" in result.stderr
    result = call("predict", run, "question=where?", "contxt=a")
    assert "contxt: this model has no such input; did you mean context?" in result.stderr
    result = call("predict", run, "question=where?", "context=@nowhere.txt")
    assert result.stderr == "error: nowhere.txt: no such file\n"


def test_explain_says_which_words_spoke(call: Call, run: Path, home: Path) -> None:
    result = call("explain", run, "where is amber?", f"context={CONTEXT}")
    assert result.exit_code == 0, result.stderr
    assert "Measured, not attention" in result.stdout
    assert "begins: " in result.stdout
    assert (home / "attention.html").is_file()
    blank = call("explain", run, " ", f"context={CONTEXT}")
    assert "nothing to explain: question must not be empty" in blank.stderr


def test_it_leaves_proven_on_questions_with_contexts(call: Call, run: Path, home: Path) -> None:
    result = call("export", run, "--to", "onnx", "--out", "away", "--json")
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert (told["inputs"], told["identical"]) == (21, 1.0)
    assert told["max_difference"] < 1e-4
    (home / "questions.tsv").write_text(f"question\tcontext\nwhere is amber?\t{CONTEXT}\n", "utf-8")
    result = call("export", "run/model", "--to", "ct2", "--inputs", "questions.tsv")
    assert result.exit_code == 2
    assert "ct2: an answerer has no counterpart in CTranslate2; export to onnx" in result.stderr


def test_a_long_context_is_told(call: Call, recipe: Path, home: Path) -> None:
    small = ("task.max_length=14", "task.overlap=2", "task.max_question=6")
    assert call("train", recipe, *TRAIN, *small, "run=run").exit_code == 0
    result = call("predict", "run", "where is amber?", f"context={CONTEXT * 3}", "--json")
    answer = json.loads(result.stdout)
    assert answer["windows"] > 1
    assert (CONTEXT * 3)[answer["start"] or 0 : answer["end"] or 0] == answer["text"]
    assert "1 of the contexts was read in overlapping windows of 14 tokens" in result.stderr
