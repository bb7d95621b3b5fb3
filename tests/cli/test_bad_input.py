"""What users get wrong: one sentence with file, line and remedy, exit code 2, nothing overwritten."""

import json
import pickle
import shutil
from pathlib import Path

import pytest

from small_runs import CLASSIFY, Call, write_recipe


@pytest.fixture
def refused(call: Call, home: Path) -> Call:
    """Runs a command that must fail, and gives what it said."""

    def contents() -> dict[Path, bytes | None]:
        return {path: path.read_bytes() if path.is_file() else None for path in home.rglob("*")}

    def run(*arguments: object) -> str:
        before = contents()
        result = call(*arguments)
        assert contents() == before, "something was written"
        assert result.exit_code == 2
        assert result.stdout == ""
        (line,) = result.stderr.splitlines()
        return line.removeprefix("error: ")

    return run  # type: ignore[return-value]


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """The recipe of a classifier."""
    return write_recipe(tmp_path, CLASSIFY)


@pytest.fixture
def model(translator: Path, home: Path) -> Path:
    """A copy of a good model folder, to be broken."""
    return Path(shutil.copytree(translator / "model", home / "model"))


def test_files_of_different_length(refused: Call, recipe: Path, home: Path) -> None:
    (home / "a.zh").write_text("一\n二\n三\n", "utf-8")
    (home / "a.en").write_text("one\ntwo\n", "utf-8")
    assert refused("train", recipe, 'data.train=["a.zh", "a.en"]', "data.columns={}") == (
        "a.zh has 3 lines but a.en has 2: a.zh:3 is the first without a partner; "
        "the files must belong together line by line"
    )


def test_an_empty_file(refused: Call, recipe: Path, home: Path) -> None:
    (home / "empty.tsv").touch()
    assert (
        refused("train", recipe, "data.train=empty.tsv")
        == "empty.tsv: is empty; give a file with at least one record"
    )


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_no_such_file(refused: Call, recipe: Path, split: str) -> None:
    """Also for the split that is needed last."""
    assert (
        refused("train", recipe, f"data.{split}=trian.tsv")
        == "trian.tsv: no such file; did you mean train.tsv?"
    )


def test_a_missing_column(refused: Call, recipe: Path, texts: Path) -> None:
    assert refused("train", texts, "data.columns.label=lable").endswith(
        "texts.csv: no column lable; there are text, label; did you mean label?"
    )


def test_a_line_without_its_second_cell(refused: Call, recipe: Path, home: Path) -> None:
    (home / "a.tsv").write_text("one\t一\ntwo\n", "utf-8")
    said = refused("train", recipe, "data.train=a.tsv")
    assert said == "a.tsv:2: 1 cell found, 2 needed; a tab must stand between cells"


def test_a_label_seen_only_in_test(refused: Call, texts: Path, home: Path) -> None:
    (home / "new.csv").write_text("text,label\ngood film,yes\nfair film,perhaps\n", "utf-8")
    said = refused("train", texts, "data.test=new.csv")
    assert said.startswith("new.csv:3: label 'perhaps' does not occur in the training data")


def test_invalid_utf8(refused: Call, recipe: Path, home: Path) -> None:
    (home / "a.tsv").write_bytes("one\t一\n".encode() + "two\t二是二\n".encode("gb18030"))
    assert refused("train", recipe, "data.train=a.tsv") == (
        "a.tsv:2: byte 5 of the line (0xb6) is not valid utf-8; the line is valid gb18030: "
        'say so with data.encoding = "gb18030" in the recipe or --encoding gb18030, '
        "or convert the file to UTF-8"
    )


def test_a_line_of_ten_megabytes(refused: Call, recipe: Path, home: Path) -> None:
    (home / "a.tsv").write_text("one\t一\n" + "x" * 10_000_000 + "\t二\n", "utf-8")
    assert refused("train", recipe, "data.train=a.tsv") == (
        "a.tsv:2: the line has 10,000,004 bytes, the limit is 1,000,000; split or drop it"
    )


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("model.n_haeds=2", "{recipe}: model.n_haeds: unknown; did you mean n_heads?"),
        ("model.n_heads=3", "{recipe}: model: n_heads (3) must divide d_model (8)"),
        ("model.kind=tranformer", "{recipe}: model.kind: unknown 'tranformer'; did you mean transformer?"),
        (
            "train.lr=fast",
            "{recipe}: train.lr: 'fast' should be a valid number, unable to parse string as a number",
        ),
        ("n_heads", "'n_heads': write an override as key=value, for example model.n_heads=8"),
        (
            "model.d_model=1000000000000000000",
            "{recipe}: model.d_model: 100000000000… is too large; the limit is 2147483647",
        ),
        ("train.lr=inf", "{recipe}: train.lr: inf should be a finite number"),
        ("train.betas=[5, 7]", "{recipe}: train.betas.0: 5 should be less than 1"),
        ("train.threads=100000", "{recipe}: train.threads: 100000 should be less than or equal to 1024"),
        ("train.device=meta", "train.device: 'meta' is not available here; use auto or cpu"),
        (
            "task.decode.max_ratio=1e308",
            "{recipe}: task.decode.max_ratio: 1e+308 should be less than or equal to 100",
        ),
        (
            "task.bleu_tokenize=ja-mecab",
            "{recipe}: task.bleu_tokenize: 'ja-mecab' should be '13a', 'zh', 'char', 'intl' or 'none'",
        ),
        ("run=", "{recipe}: run: '' is not the name of a folder"),
        ("run=[1, 2]", "{recipe}: run: [1, 2] is not the name of a folder; write it in quotes"),
        ('run="a\\u0000b"', "{recipe}: run: 'a\\x00b' is not the name of a folder"),
    ],
)
def test_a_recipe_that_cannot_be(refused: Call, recipe: Path, override: str, said: str) -> None:
    assert refused("train", recipe, override) == said.format(recipe=recipe)


def test_a_model_that_no_memory_holds(refused: Call, recipe: Path) -> None:
    said = refused("train", recipe, "model.d_model=100000", "model.n_heads=2", "model.d_ff=100000")
    assert said.startswith("model: its weights alone need ")
    assert said.endswith("GB; choose smaller sizes")


def test_a_row_wider_than_the_first(refused: Call, recipe: Path, texts: Path, home: Path) -> None:
    (home / "a.csv").write_text("text,label\nfine,yes\nhello, my friend,no\n", "utf-8")
    assert refused("train", texts, "data.train=a.csv") == (
        'a.csv:3: 3 cells found, the first line has 2; a text that contains a comma must stand in "quotes"'
    )
    (home / "a.tsv").write_text("one\t一\nvery\tgood\t好\n", "utf-8")
    assert refused("train", recipe, "data.train=a.tsv") == (
        "a.tsv:2: 3 cells found, the first line has 2; a text cannot contain a tab"
    )


def test_two_columns_of_one_name(refused: Call, texts: Path, home: Path) -> None:
    (home / "a.csv").write_text("text,text,label\nfine,good,yes\n", "utf-8")
    assert refused("train", texts, "data.train=a.csv") == (
        "a.csv: several columns are named text; give the number of the text"
    )


def test_a_name_that_is_too_long(refused: Call) -> None:
    """Whoever forgets RUN gives a sentence in its place."""
    sentence = "我每天早上喝一杯咖啡。" * 9
    assert refused("predict", sentence, "x") == f"{sentence}: File name too long"


def test_one_name_for_two_files(refused: Call, model: Path) -> None:
    assert refused("explain", "model", "一", "--out", "same", "--svg", "same") == (
        "same: cannot be page and picture at once; give two names"
    )


def test_weights_that_are_not_finite(refused: Call, model: Path) -> None:
    """The file is whole, the numbers are not."""
    path = model / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-8] + b"\xff" * 8)
    said = refused("predict", "model", "一")
    assert said.endswith("holds numbers that are not finite; is it damaged?")


@pytest.mark.parametrize("labels", ["[" * 100_000, '["a", "a"]', '["a", "\\ud800"]', '["a"]', "{}"])
def test_labels_that_cannot_be(refused: Call, classifier: Path, home: Path, labels: str) -> None:
    folder = Path(shutil.copytree(classifier / "model", home / "labels"))
    (folder / "labels.json").write_text(labels)
    assert refused("predict", "labels", "x").startswith("labels/labels.json: ")


@pytest.mark.parametrize(
    "metrics", ['{"scores": 5}', '{"scores": {"test": 5}}', '{"scores": {"test": {"bleu": "x"}}}']
)
def test_metrics_that_cannot_be(refused: Call, model: Path, metrics: str) -> None:
    (model / "metrics.json").write_text(metrics)
    assert refused("info", "model") == "model/metrics.json: damaged (scores are not numbers by split)"


def test_a_recipe_that_is_no_recipe(refused: Call, home: Path) -> None:
    assert refused("train", "nowhere.toml") == (
        "nowhere.toml: no such recipe; make one with: regard init YOUR_FILES"
    )
    (home / "bad.toml").write_text("[task\n")
    assert refused("check", "bad.toml").startswith("bad.toml: not a valid toml file: ")


def test_a_run_folder_that_already_exists(refused: Call, recipe: Path, home: Path) -> None:
    (home / "run").mkdir()
    (home / "run" / "precious.txt").write_text("mine")
    assert refused("train", recipe) == (
        f"{home / 'run'}: already exists and is not a run (it has precious.txt); "
        "choose another folder with run=NAME, or delete it"
    )


@pytest.mark.parametrize(
    "ask",
    [
        ("predict", "model", "一"),
        ("eval", "model", "test.tsv"),
        ("explain", "model", "一"),
        ("info", "model"),
    ],
)
def test_truncated_weights(refused: Call, model: Path, ask: tuple[str, ...]) -> None:
    weights = model / "model.safetensors"
    content = weights.read_bytes()
    weights.write_bytes(content[: len(content) // 2])
    said = refused(*ask)
    assert said.startswith(
        f"model/model.safetensors: has {len(content) // 2:,} bytes, but the model in config.json needs"
    )
    assert said.endswith("is it truncated?")


def test_truncated_settings(refused: Call, model: Path) -> None:
    config = model / "config.json"
    config.write_text(config.read_text("utf-8")[:100], "utf-8")
    said = refused("predict", "model", "一")
    assert said.startswith("model/config.json: cannot be read as JSON (")
    assert said.endswith("; is it truncated?")


def test_a_missing_tokenizer(refused: Call, model: Path) -> None:
    (model / "source" / "tokenizer.json").unlink()
    said = refused("predict", "model", "一")
    assert (
        said
        == "model/source/tokenizer.json: cannot be read (No such file or directory); is the folder complete?"
    )


def test_a_foreign_model(refused: Call, home: Path) -> None:
    (home / "bert").mkdir()
    config = {"architectures": ["BertModel"], "model_type": "bert", "hidden_size": 768}
    (home / "bert" / "config.json").write_text(json.dumps(config))
    (home / "bert" / "model.safetensors").write_bytes(b"")
    assert refused("predict", "bert", "x") == (
        "bert/config.json: was not made by regard; train a model here, or import this one with regard import"
    )


def test_a_pickle_is_never_opened(refused: Call, model: Path, home: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[object, ...]:
            return (Path.touch, (home / "exploded",))

    size = (model / "model.safetensors").stat().st_size
    (model / "model.safetensors").write_bytes(pickle.dumps(Bomb()).ljust(size, b"\0"))
    said = refused("predict", "model", "一")
    assert said.startswith("model/model.safetensors: not a readable safetensors file (")
    assert not (home / "exploded").exists()


def test_no_such_run(refused: Call, home: Path) -> None:
    assert refused("predict", "runs/nothing", "x") == "runs/nothing: no such run or model folder"
    (home / "data").mkdir()
    assert refused("info", "data") == "data: not a trained model of regard (no config.json)"
