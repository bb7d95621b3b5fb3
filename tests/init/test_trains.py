"""Whatever `init` recognises, `train` accepts the recipe that it writes: a few steps of every kind."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from regard.cli import app
from regard.recipe import Recipe

N = 45
WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove")
SMALL = ("train.max_steps=2", "train.warmup=0", "train.batch_tokens=256", "train.threads=1")
TINY = {
    "transformer": ("model.d_model=8", "model.n_heads=2", "model.d_ff=8"),
    "forecaster": ("task.look_back=6", "task.horizon=2"),
    "nlinear": ("task.look_back=6", "task.horizon=2"),
    "gpt": ("model.d_model=8", "model.n_heads=2", "model.d_ff=8", "task.decode.max_length=3"),
    "bert_pretraining": ("model.encoder.d_model=8", "model.encoder.n_heads=2", "model.encoder.d_ff=8"),
}


def said(row: int, n: int = 5) -> str:
    return " ".join(WORDS[(row * row + word * (row + 1)) % len(WORDS)] for word in range(n)) + f" {row}"


def chinese(row: int) -> str:
    return "".join("山水木火土金石"[(row + n * n) % 7] for n in range(4)) + str(row)


def label(row: int) -> str:
    return ("good", "bad", "fair")[row % 3]


def answered(row: int) -> dict[str, str]:
    passage = f"it is {said(row, 20)}"
    return {"question": f"which {row}?", "passage": passage, "answer": passage[6:17].rstrip()}


def squad() -> str:
    answers = [{"text": "amber", "answer_start": 4}]
    paragraphs = [
        {"context": f"The amber {said(n)}", "qas": [{"id": str(n), "question": f"{n}?", "answers": answers}]}
        for n in range(N)
    ]
    return json.dumps({"data": [{"paragraphs": paragraphs}]})


def lines(row: Callable[[int], str], header: str = "") -> str:
    return header + "".join(f"{row(n)}\n" for n in range(N))


def objects(row: Callable[[int], object]) -> str:
    return lines(lambda n: json.dumps(row(n)))


TS = "@problemName waves\n@univariate true\n@classLabel true up down\n@data\n"


def wave(row: int) -> str:
    return ",".join(f"{(step * (row + 2)) % 7}.5" for step in range(30)) + f":{('up', 'down')[row % 2]}"


def measurement(row: int) -> str:
    """Values that recur, as those of sensors do: they are no ids for it."""
    return f"2016-07-{1 + row // 24:02} {row % 24:02}:00:00,{row % 24}.5,{row % 5}.25,{row % 3}"


Files = dict[str, str]
SAMPLES: dict[str, tuple[str, Files]] = {
    "aligned files": ("translate", {"train.en": lines(said), "train.zh": lines(chinese)}),
    "pairs": ("translate", {"train.tsv": lines(lambda n: f"{said(n)}\t{chinese(n)}")}),
    "summaries": ("summarize", {"train.csv": lines(lambda n: f"{said(n, 40)},{said(n, 4)}")}),
    "turns in lists": ("dialogue", {"train.jsonl": objects(lambda n: {"turns": [said(n), said(n + 1)]})}),
    "turns with marks": ("dialogue", {"talk.txt": lines(lambda n: f"{said(n)} __eou__ {said(n + 1)}")}),
    "replies": ("dialogue", {"a.tsv": lines(lambda n: f"{said(n)}\t{said(n + 1)}", "context\treply\n")}),
    "labels": ("classify", {"train.csv": lines(lambda n: f"{label(n)},{said(n)}")}),
    "a header": ("classify", {"train.tsv": lines(lambda n: f"{said(n)}\t{label(n)}", "review\tstars\n")}),
    "files of labels and texts": ("classify", {"x.labels": lines(label), "x.texts": lines(said)}),
    "pairs with labels": (
        "classify_pair",
        {"train.tsv": lines(lambda n: f"{said(n)}\t{said(n + 3)}\t{label(n)}")},
    ),
    "several labels": ("multilabel", {"a.tsv": lines(lambda n: f"{said(n)}\t{'|'.join('abc'[: n % 4])}")}),
    "lists of labels": (
        "multilabel",
        {"a.jsonl": objects(lambda n: {"text": said(n), "labels": list("abc"[: n % 4])})},
    ),
    "words and tags": (
        "tag",
        {"a.tsv": lines(lambda n: "Anna lives here\tB-PER O O" if n % 2 else "in Rome\tO B-LOC")},
    ),
    "CoNLL": ("tag", {"train.conll": lines(lambda n: f"{WORDS[n % 7]} B-X\nlives O\n")}),
    "marked entities": (
        "relation",
        {"a.tsv": lines(lambda n: f"<e1>{WORDS[n % 7]}</e1> has <e2>{n}</e2>\t{label(n)}")},
    ),
    "SQuAD": ("answer", {"train.json": squad()}),
    "questions": ("answer", {"train.jsonl": objects(answered)}),
    "labelled series": ("classify", {"waves_TRAIN.ts": TS + lines(wave)}),
    "measurements": ("forecast", {"load.csv": lines(measurement, "date,load,heat,wind\n")}),
    "a text": ("language_model", {"book.txt": lines(said)}),
    "a column of texts": ("language_model", {"poems.csv": lines(said, "poem\n")}),
}


@pytest.mark.parametrize(("task", "files"), SAMPLES.values(), ids=SAMPLES)
def test_a_recipe_for_recognised_files_trains(
    task: str, files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in files.items():
        Path(name).write_text(content, "utf-8")
    made = CliRunner().invoke(app, ["init", *files])
    assert made.exit_code == 0, made.output
    recipe = Recipe.read("recipe.toml")
    assert recipe.task.kind == task
    trained = CliRunner().invoke(app, ["train", "recipe.toml", *SMALL, *TINY.get(recipe.model.kind, ())])
    assert trained.exit_code == 0, trained.output


def test_what_is_between_two_tasks_is_not_guessed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.tsv").write_text(lines(lambda n: f"{said(n, 12)}\t{said(n, 4)}"), "utf-8")
    made = CliRunner().invoke(app, ["init", "train.tsv"])
    assert made.exit_code == 2
    assert not Path("recipe.toml").exists()
    assert (
        "train.tsv: could be for two tasks: translate, as there are two columns of text (Latin); "
        "summarize, as there are two columns of text, one 2.9 times as long as the other. Say which, as in: "
        "regard init train.tsv --task translate"
    ) in made.output
