"""Relations from the command line: recognised, checked, trained, asked about marked and raw text, refused."""

import json
from pathlib import Path

import pytest

import regard
from regard.errors import DataError
from small_runs import Call
from tiny import named, paired

RECIPE = """
run = "{name}"
[task]
kind = "{task}"
tokenizer = {{ kind = "word", vocab_size = 60, min_frequency = 1 }}
[data]
train = "{train}"
{columns}
[model]
kind = "{model}"
encoder = {{ kind = "words", d_embed = 8 }}
[train]
max_steps = 100
warmup = 10
lr = 1e-2
batch_tokens = 300
threads = 1
"""


def trained(call: Call, home: Path, name: str, **parts: str) -> None:
    (home / f"{name}.toml").write_text(RECIPE.format(name=name, **parts), "utf-8")
    said = call("train", f"{name}.toml")
    assert said.exit_code == 0, said.stderr


@pytest.fixture
def pairs(call: Call, home: Path) -> str:
    paired(home, 90)
    columns = "columns = { label = 1, text = 2 }"
    trained(call, home, "pairs", task="relation", train="train.tsv", columns=columns, model="relater")
    return "pairs"


@pytest.fixture
def names(call: Call, home: Path) -> str:
    named(home, 90)
    trained(call, home, "names", task="tag", train="train.conll", columns="", model="tagger")
    return "names"


def test_init_recognises_marked_sentences(call: Call, home: Path) -> None:
    paired(home, 90)
    said = call("init", "train.tsv")
    assert said.exit_code == 0, said.stderr
    assert "The task is relation: " in said.stdout
    written = (home / "recipe.toml").read_text("utf-8")
    assert 'kind = "relater"' in written
    assert "text = 2" in written
    checked = call("check", "recipe.toml")
    assert checked.exit_code == 0, checked.stdout
    assert "relation: rows in training" in checked.stdout


@pytest.mark.parametrize(
    ("header", "n_rows", "options"),
    [
        ("relation\tsentence\n", 90, []),
        ("label\ttext\n", 7, []),
        ("kind\twords\n", 90, ["--column", "label=kind", "--column", "text=words"]),
        ("", 90, ["--column", "label=1"]),
        ("Other\tthis one has no marks\n", 90, []),
    ],
    ids=["header", "few", "columns", "one", "unmarked"],
)
def test_marks_tell_relations_from_other_labels(
    call: Call, home: Path, header: str, n_rows: int, options: list[str]
) -> None:
    path = Path(*paired(home, n_rows))
    path.write_text(header + path.read_text("utf-8"), "utf-8")
    assert "The task is relation: " in call("init", "train.tsv", *options).stdout
    unmarked = path.read_text("utf-8").replace("<e1>", "").replace("</e1>", "").replace("<e2>", "")
    path.write_text(unmarked.replace("</e2>", ""), "utf-8")
    assert "The task is relation: " not in call("init", "train.tsv", "--out", "other.toml", *options).stdout


def test_init_recognises_the_official_files(call: Call, home: Path) -> None:
    lines = [line.split("\t") for line in Path(*paired(home, 90)).read_text("utf-8").splitlines()]
    content = "".join(f'{n}\t"{text}"\n{label}\nComment:\n\n' for n, (label, text) in enumerate(lines, 1))
    (home / "TRAIN_FILE.TXT").write_text(content, "utf-8")
    refused = call("init", "TRAIN_FILE.TXT")
    assert refused.exit_code == 2
    assert "looks like SemEval-2010 task 8" in refused.stderr
    (home / "TRAIN_FILE.TXT").rename(home / "TRAIN_FILE.semeval")
    said = call("init", "TRAIN_FILE.semeval")
    assert said.exit_code == 0, said.stderr
    assert call("check", "recipe.toml").exit_code == 0


def test_check_tells_all_bad_marks_at_once(call: Call, home: Path) -> None:
    path = Path(*paired(home, 90))
    lines = path.read_text("utf-8").splitlines()
    lines[4] = "Other\tno marks at all"
    lines[7] = "Other\t<e1>amber <e2>birch</e2></e1>"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    asked = RECIPE.format(
        name="x",
        task="relation",
        train="train.tsv",
        columns="columns = { label = 1, text = 2 }",
        model="relater",
    )
    (home / "x.toml").write_text(asked, "utf-8")
    said = call("check", "x.toml")
    assert said.exit_code == 2
    assert "train: 2 rows without two entities, marked once each" in said.stdout
    assert "train.tsv:5" in said.stdout
    assert "train.tsv:8" in said.stdout
    stopped = call("train", "x.toml")
    assert stopped.exit_code == 2
    assert "train.tsv:5: <e1> is missing; mark two entities once each" in stopped.stderr


def test_marked_and_raw_text(call: Call, home: Path, pairs: str, names: str) -> None:
    asked = "birch <e1>amber</e1> cedar <e2>ember</e2>"
    answer = call("predict", pairs, asked).stdout.strip()
    assert answer in ("Other", "Rules(e1,e2)", "Rules(e2,e1)")
    raw = "birch amber cedar ember"
    told = json.loads(call("relate", pairs, names, "--json", raw).stdout)
    assert told["input"] == raw
    assert [one["text"] for one in told["entities"]] == ["amber", "ember"]
    assert [one["text"] for one in told["relations"]] == [answer] * (answer != "Other")
    piped = call("relate", pairs, names, input=f"{raw}\n\nbirch\n").stdout
    assert piped.splitlines() == [told["text"], "", ""]
    far = f"amber {'birch ' * 300}ember"
    unread = "longer than 256 tokens (task.max_length): what is far from the entities was not read"
    assert (
        f"1 of the texts {unread}" in call("predict", pairs, f"<e1>{far[:5]}</e1><e2>{far[5:]}</e2>").stderr
    )
    assert f"1 of the texts {unread}" in call("relate", pairs, names, far).stderr
    explained = call("explain", pairs, asked, "--out", "x.html", "--svg", "x.svg")
    assert explained.exit_code == 0, explained.stderr
    assert (home / "x.html").is_file()


def refused(call: Call, *arguments: object) -> str:
    said = call(*arguments)
    assert said.exit_code == 2
    assert said.stdout == ""
    (line,) = said.stderr.splitlines()
    return str(line)


def test_what_is_refused_is_one_sentence(call: Call, pairs: str, names: str) -> None:
    assert "input:1: <e1> is missing; mark two entities once each" in refused(
        call, "predict", pairs, "raw text"
    )
    assert "input:1: <e2> is missing" in refused(call, "explain", pairs, "<e1>a</e1> b")
    assert "tag models relate nothing" in refused(call, "relate", names, names, "x")
    assert "find no entities; give a run" in refused(call, "relate", pairs, pairs, "x")
    assert "no such run" in refused(call, "relate", pairs, "nowhere", "x")
    assert "both given" in refused(call, "relate", pairs, names, "x", "--file", "y.txt")


def test_a_text_that_is_refused_is_told_by_its_place(call: Call, pairs: str, home: Path) -> None:
    """Its number among all of them, however many are read at a time; or its file and line."""
    good = "<e1>amber</e1> over <e2>birch</e2>"
    lines = [good, "", *[good] * 9, "raw", good]
    text = "\n".join(lines) + "\n"
    (home / "asked.txt").write_text(text, "utf-8")
    (home / "asked.csv").write_text(f"text\n{text}", "utf-8")
    for told, where in (
        (call("predict", pairs, *lines), "input:12"),
        (call("predict", pairs, input=text), "standard input:12"),
        (call("predict", pairs, "-f", "asked.txt"), "asked.txt:12"),
        (call("predict", pairs, "-f", "asked.csv"), "asked.csv:13"),
    ):
        assert told.exit_code == 2
        assert told.stderr.startswith(f"error: {where}: <e1> is missing")
    with pytest.raises(DataError, match="input:12: <e1> is missing"):
        regard.load(pairs).predict(lines)
