import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from regard.recipe import Recipe
from small_runs import Call, write_pairs
from tiny import told

SHRUNK = [
    "model.d_model=8",
    "model.n_heads=2",
    "model.d_ff=8",
    "train.max_steps=1",
    "train.warmup=0",
    "train.threads=1",
]


def test_writes_a_recipe_that_trains(call: Call, home: Path) -> None:
    for split, n_rows in (("train", 40), ("valid", 5)):
        write_pairs(home / f"{split}.tsv", n_rows)
    result = call("init", "train.tsv", "valid.tsv", "--column", "source=2", "--column", "target=1")
    assert result.exit_code == 0, result.stderr
    recipe = Recipe.read(home / "recipe.toml")
    assert (recipe.data.train, recipe.data.valid) == (("train.tsv",), ("valid.tsv",))
    assert recipe.data.columns == {"source": 2, "target": 1}
    assert call("train", "recipe.toml", *SHRUNK).exit_code == 0
    assert (home / recipe.run / "model" / "config.json").is_file()


def test_shows_rows_and_reasons(call: Call, home: Path) -> None:
    write_pairs(home / "train.tsv", 40)
    shown = call("init", "train.tsv", "--column", "source=2", "--column", "target=1").stdout
    for line in (home / "train.tsv").read_text("utf-8").splitlines()[:3]:
        assert all(cell in shown for cell in line.split("\t"))
    assert "The source is column 2, as given." in shown
    assert "regard train recipe.toml" in shown


def test_every_column_is_seen(call: Call, home: Path) -> None:
    rows = [f"{'premise ' * 40}{n}\t{'hypothesis ' * 30}{n}\t{'yes' if n % 2 else 'no'}" for n in range(40)]
    (home / "pairs.tsv").write_text("premise\thypothesis\tlabel\n" + "\n".join(rows) + "\n", "utf-8")
    shown = call("init", "pairs.tsv").stdout.splitlines()
    (header,) = (n for n, line in enumerate(shown) if line.split() == ["text", "second", "label"])
    cells = shown[header + 1].split()
    assert cells[0] == "premise"
    assert "hypothesis" in cells
    assert cells[-1] == "no"


WORDS = [f"{a}{b}" for a in ("am", "bi", "ce", "do", "em", "fu") for b in "bcdnt"]
"""About as long as a piece of English."""


def written(rng: Random, n: int) -> str:
    return " ".join(rng.choices(WORDS, k=n)) + "."


def many(made: Callable[[Random], object]) -> str:
    rng = Random(5)
    return "".join(f"{json.dumps(made(rng), ensure_ascii=False)}\n" for _ in range(400))


def characters(rng: Random, n: int) -> str:
    return "".join(chr(0x4E00 + rng.randrange(200)) for _ in range(n))


ESTIMATED = {
    "summaries": lambda rng: {
        "document": written(rng, rng.randint(5, 90)),
        "summary": written(rng, rng.randint(2, 12)),
    },
    "turns": lambda rng: {"turns": [written(rng, rng.randint(3, 9)) for _ in range(12)]},
    "pairs": lambda rng: {
        "premise": written(rng, rng.randint(9, 20)),
        "hypothesis": written(rng, rng.randint(9, 20)),
        "label": rng.choice(["yes", "no"]),
    },
    "chinese": lambda rng: {
        "text": f"<e1>{characters(rng, 3)}</e1>{characters(rng, rng.randint(9, 40))}<e2>好</e2>",
        "relation": rng.choice(["works_for", "Other"]),
    },
}


@pytest.mark.parametrize("made", ESTIMATED.values(), ids=ESTIMATED)
def test_it_knows_about_how_many_steps_an_epoch_has(
    call: Call, home: Path, monkeypatch: pytest.MonkeyPatch, made: Callable[[Random], object]
) -> None:
    monkeypatch.setattr("regard.check.cost.BUDGET", 0.0)
    (home / "train.jsonl").write_text(many(made), "utf-8")
    assert call("init", "train.jsonl").exit_code == 0
    (told,) = re.findall(r"an epoch is about ([\d,]+)", (home / "recipe.toml").read_text("utf-8"))
    checked = json.loads(call("check", "recipe.toml", "--json").stdout)
    assert int(told.replace(",", "")) == pytest.approx(checked["estimate"]["steps_per_epoch"], rel=0.3)


def commented(recipe: Path) -> bool:
    """Whether every setting but the choice of a kind has a comment."""
    lines = recipe.read_text("utf-8").splitlines()
    return all(" # " in line for line in lines if " = " in line and not line.startswith("kind"))


def test_a_recipe_says_what_was_decided_and_why(call: Call, home: Path) -> None:
    write_pairs(home / "train.tsv", 40)
    call("init", "train.tsv")
    assert commented(home / "recipe.toml")
    text = (home / "recipe.toml").read_text("utf-8")
    assert "for 40 rows" in text
    assert not re.search("^(seed|label_smoothing|clip_norm|device) =", text, re.MULTILINE), (
        "as they are anyway"
    )


def test_classifies(call: Call, home: Path) -> None:
    rows = [f"{'好看' if n % 3 else '难看'}的电影 {n},{'积极' if n % 3 else '消极'}" for n in range(60)]
    (home / "评论.csv").write_text("文本,标签\n" + "\n".join(rows) + "\n", "utf-8")
    result = call("init", "评论.csv", "--out", "classify.toml")
    assert result.exit_code == 0, result.stderr
    recipe = Recipe.read(home / "classify.toml")
    assert recipe.task.kind == "classify"
    assert recipe.run == "runs/评论"
    overrides = ["model.encoder.d_hidden=8", "train.max_steps=1", "train.threads=1"]
    assert call("train", "classify.toml", *overrides).exit_code == 0


def test_never_overwrites(call: Call, home: Path) -> None:
    write_pairs(home / "train.tsv", 40)
    (home / "recipe.toml").write_text("mine")
    result = call("init", "train.tsv")
    assert result.exit_code == 2
    assert (
        result.stderr == "error: recipe.toml: already exists; choose another name with --out, or delete it\n"
    )
    assert (home / "recipe.toml").read_text() == "mine"


def test_a_run_folder_that_is_taken_is_not_proposed(call: Call, home: Path) -> None:
    write_pairs(home / "numbers.train.tsv", 40)
    (home / "runs" / "numbers").mkdir(parents=True)
    call("init", "numbers.train.tsv")
    assert tomllib.loads((home / "recipe.toml").read_text("utf-8"))["run"] == "runs/numbers-2"


def test_names_and_encodings_that_need_care(call: Call, home: Path) -> None:
    names = ['it\'s "train" #1.zh', 'it\'s "train" #1.en']
    write_pairs(home / "numbers.tsv", 40)
    rows = [line.split("\t") for line in (home / "numbers.tsv").read_text("utf-8").splitlines()]
    for name, column in zip(names, (1, 0), strict=True):
        (home / name).write_text("".join(row[column] + "\n" for row in rows), "gb18030")
    result = call("init", *names, "--encoding", "gb18030")
    assert result.exit_code == 0, result.stderr
    recipe = Recipe.read(home / "recipe.toml")
    assert recipe.data.train == tuple(names)
    assert recipe.data.encoding == "gb18030"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.tsv"], "error: nowhere.tsv: no such file"),
        (["train.tsv", "--task", "clasify"], "error: unknown task clasify; did you mean classify?"),
        (
            ["train.tsv", "--column", "source=3"],
            "error: train.tsv: no column 3 for source; its columns are 1 to 2",
        ),
        (
            ["train.tsv", "--column", "source=0"],
            "error: train.tsv: no column 0 for source; its columns are 1 to 2",
        ),
    ],
)
def test_what_cannot_be_asked(call: Call, home: Path, arguments: list[str], said: str) -> None:
    write_pairs(home / "train.tsv", 40)
    result = call("init", *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(said)
    assert not (home / "recipe.toml").exists()


def test_a_column_given_by_number_among_equal_names(call: Call, home: Path) -> None:
    rows = "".join(f"first {n},second thing {n},{'yes' if n % 2 else 'no'}\n" for n in range(30))
    (home / "a.csv").write_text("text,text,label\n" + rows, "utf-8")
    result = call("init", "a.csv", "--column", "text=2")
    assert result.exit_code == 0, result.stderr
    assert Recipe.read(home / "recipe.toml").data.columns == {"text": 2, "second": 1, "label": "label"}


@pytest.mark.parametrize("name", ["book.txt", "poems.tsv"])
def test_a_text_is_continued(call: Call, home: Path, name: str) -> None:
    (home / name).write_text(told(400), "utf-8")
    result = call("init", name)
    assert result.exit_code == 0, result.stderr
    recipe = Recipe.read(home / "recipe.toml")
    assert (recipe.task.kind, recipe.model.kind) == ("language_model", "gpt")
    assert recipe.task.documents == ("files" if name == "book.txt" else "lines")
    assert (recipe.task.tokenizer.kind, recipe.task.tokenizer.space) == ("char", "kept")
    assert commented(home / "recipe.toml")
    checked = call("check", "recipe.toml", *SHRUNK)
    assert checked.exit_code == 0, checked.stdout
    assert "nothing wrong" in checked.stdout or name == "poems.tsv"
    assert call("train", "recipe.toml", *SHRUNK).exit_code == 0
    assert call("predict", recipe.run, "amber", "--set", "max_length=5").exit_code == 0
    assert call("eval", recipe.run, name).exit_code == 0
    assert call("explain", recipe.run, "amber").exit_code == 0
