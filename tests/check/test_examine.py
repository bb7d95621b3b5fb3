"""The data doctor finds what is wrong, names the places, and does not stop at the first fault."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.check.examine import Report, examine
from regard.check.finding import Finding
from regard.check.tokens import cut, histogram
from regard.check.tokens import examine as examine_tokens
from regard.files.row import Row
from regard.recipe import Recipe
from regard.tasks import (
    TASKS,
    Classify,
    ClassifyConfig,
    ClassifyPair,
    ClassifyPairConfig,
    MultilabelConfig,
    RelationConfig,
    Translate,
    TranslateConfig,
)
from regard.training.machine import Machine
from tiny import transformer

PAIRS = [(f"alpha {n}", f"beta {n} gamma") for n in range(30)]
TEXTS = [(f"text {n}", "yes" if n % 2 else "no") for n in range(30)]
WORDS = {"kind": "word", "vocab_size": 100, "min_frequency": 1}

Examine = Callable[..., Report]


@pytest.fixture(autouse=True)
def _brief(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("regard.check.cost.BUDGET", 0.0)
    monkeypatch.chdir(tmp_path)


def tsv(rows: list[tuple[str, ...]]) -> bytes:
    return "".join("\t".join(row) + "\n" for row in rows).encode()


@pytest.fixture
def translation(tmp_path: Path) -> Examine:
    """Examines pairs given as rows or bytes; other keywords are batch_tokens and settings of the task."""

    def run(**given: Any) -> Report:
        splits = {"train": PAIRS, "valid": [("alpha", "beta")], "test": [("0 alpha", "gamma beta")]}
        data = {}
        for split, rows in splits.items():
            content = given.pop(split, rows)
            path = tmp_path / f"{split}.tsv"
            path.write_bytes(content if isinstance(content, bytes) else tsv(content))
            data[split] = path.name
        tokens = given.pop("batch_tokens", 40)
        task = {"kind": "translate", "tokenizer": WORDS} | given
        return _examined(task, data, transformer().model_dump(), tokens)

    return run


@pytest.fixture
def classification(tmp_path: Path) -> Examine:
    def run(**given: list[tuple[str, str]]) -> Report:
        for split, rows in ({"train": TEXTS, "valid": TEXTS[:2], "test": TEXTS[:2]} | given).items():
            (tmp_path / f"{split}.tsv").write_bytes(tsv([("text", "label"), *rows]))
        model = {"kind": "classifier", "encoder": {"kind": "words", "d_embed": 4}}
        data = {split: f"{split}.tsv" for split in ("train", "valid", "test")}
        return _examined({"kind": "classify", "tokenizer": WORDS}, data, model)

    return run


def _examined(
    task: dict[str, Any], data: dict[str, str], model: dict[str, Any], batch_tokens: int | str = 40
) -> Report:
    train = {"max_steps": 100, "warmup": 9, "batch_tokens": batch_tokens, "threads": 1}
    return examine(Recipe.parse({"task": task, "data": data, "model": model, "train": train}))


def found(report: Report, kind: str, split: str = "") -> Finding:
    (finding,) = (one for one in report.findings if one.kind == kind and one.message.startswith(split))
    return finding


def places(finding: Finding) -> list[str]:
    return [place.where for place in finding.places]


def test_nothing_is_wrong_with_good_data(translation: Examine, tmp_path: Path) -> None:
    report = translation()
    assert report.findings == ()
    assert report.trainable
    assert report.rows == {"train": 30, "valid": 1, "test": 1}
    assert report.labels == {}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["test.tsv", "train.tsv", "valid.tsv"]


def test_empty_sides(translation: Examine) -> None:
    report = translation(train=[*PAIRS, ("", "x"), ("y", ""), ("z", "")], test=[("", "t")])
    train = found(report, "empty", "train")
    assert (train.severity, train.count, places(train)) == (
        "warning",
        3,
        ["train.tsv:31", "train.tsv:32", "train.tsv:33"],
    )
    assert train.message == "train: 3 rows with an empty source or target, left out of training"
    assert found(report, "empty", "test").message.endswith("scored all the same")


def test_only_the_first_three_places_are_named(translation: Examine) -> None:
    copied = found(translation(train=[*PAIRS, *((f"c{n}", f"c{n}") for n in range(9))]), "copied")
    assert copied.count == 9
    assert places(copied) == ["train.tsv:31", "train.tsv:32", "train.tsv:33"]
    assert copied.places[0].excerpt == "c0 | c0"


def test_repeated_rows(translation: Examine) -> None:
    repeated = found(translation(train=[*PAIRS, PAIRS[3], (PAIRS[4][0], "another"), PAIRS[3]]), "duplicates")
    assert places(repeated) == ["train.tsv:31", "train.tsv:33"]


def test_sentences_shared_between_splits(translation: Examine) -> None:
    report = translation(
        valid=[PAIRS[0], ("new", "new too")], test=[(PAIRS[0][0], "other"), ("0 alpha", "gamma")]
    )
    shared = {finding.message.split(", so")[0] for finding in report.findings if finding.kind == "shared"}
    assert shared == {
        "valid: 1 row (50.0%) whose source is also in train",
        "test: 1 row (50.0%) whose source is also in train",
        "test: 1 row (50.0%) whose source is also in valid",
    }


def test_absurd_lengths_and_ratios(translation: Examine) -> None:
    report = translation(train=[*PAIRS, ("a " * 400, "b " * 400), ("a", "b c d e f g h i j k l m n o p q r")])
    assert [place for one in report.findings if one.kind == "absurd-length" for place in places(one)] == [
        "train.tsv:31",
        "train.tsv:31",
    ]
    assert places(found(report, "askew")) == ["train.tsv:32"]


def test_faults_are_counted_to_the_end(translation: Examine) -> None:
    """Two sorts of fault in one file, and one in another; the good rows are examined all the same."""
    broken = tsv(PAIRS) + b"\xff\tx\nx\t\xfe\nalone\n" + tsv([("same", "same")])
    report = translation(train=broken, test=b"\xffz\ty\n")
    assert not report.trainable
    train, alone, test = (one for one in report.findings if one.kind == "unreadable")
    assert train.message.startswith("train.tsv:31: byte 1 of the line (0xff) is not valid utf-8")
    assert train.message.endswith("(1 more like it)")
    assert (train.count, places(train)) == (2, ["train.tsv:31", "train.tsv:32"])
    assert alone.message.startswith("train.tsv:33: 1 cell found, 2 needed")
    assert test.message.startswith("test.tsv:1: byte 1")
    assert places(found(report, "copied")) == ["train.tsv:34"]
    assert report.rows == {"train": 33, "valid": 1, "test": 1}


def test_line_counts_that_differ(tmp_path: Path) -> None:
    for name, lines in (("a", PAIRS), ("b", PAIRS[:-2])):
        (tmp_path / f"train.{name}").write_text("".join(f"{row[0]} {name}\n" for row in lines))
    recipe = Recipe.parse(
        {
            "task": {"kind": "translate", "tokenizer": WORDS},
            "data": {"train": ["train.a", "train.b"], "valid": ["train.b", "missing"]},
            "model": transformer().model_dump(),
        }
    )
    report = examine(recipe)
    messages = [one.message for one in report.findings if one.kind == "unreadable"]
    assert messages == [
        "train.a has 30 lines but train.b has 28: train.a:29 is the first without a partner; "
        "the files must belong together line by line",
        "missing: no such file",
    ]
    assert report.rows == {"train": 28, "valid": 0}


def test_a_file_that_is_missing_does_not_hide_the_others(tmp_path: Path) -> None:
    recipe = Recipe.parse(
        {
            "task": {"kind": "translate"},
            "data": {"train": ["a", "b"], "test": "c.tsv"},
            "model": transformer().model_dump(),
        }
    )
    report = examine(recipe)
    assert [one.message for one in report.findings] == [
        "a: no such file",
        "b: no such file",
        "c.tsv: no such file",
    ]
    assert report.estimate is None


@pytest.mark.parametrize(
    ("kind", "called"), [("classify", "label"), ("multilabel", "label"), ("relation", "relation")]
)
def test_a_very_long_label_does_not_flood_a_message(kind: str, called: str) -> None:
    def rows(*labels: str) -> list[Row]:
        return [
            Row({"text": f"{n} <e1>a</e1> <e2>b</e2>", "label": label}, "x", n)
            for n, label in enumerate(labels)
        ]

    config = {"classify": ClassifyConfig, "multilabel": MultilabelConfig, "relation": RelationConfig}[kind]()
    splits = {"train": rows("Other", "no", "long " * 9_000), "test": rows("other " * 9_000)}
    told = {one.kind: one.message for one in TASKS[kind].data.examine(splits, config)}
    assert told["unseen-label"].startswith(
        f"test: 1 row with a {called} that does not occur in train ('other other "
    )
    assert told["rare-label"].startswith(
        f"train: {called}s with fewer than 5 examples: 'Other', 'no', 'long long "
    )
    assert max(map(len, told.values())) < 500


def test_a_label_of_a_held_out_row_alone(tmp_path: Path) -> None:
    (tmp_path / "all.tsv").write_bytes(tsv([("text", "label"), *TEXTS[:19], ("odd", "perhaps"), *TEXTS[19:]]))
    model = {"kind": "classifier", "encoder": {"kind": "words", "d_embed": 4}}
    report = _examined({"kind": "classify", "tokenizer": WORDS}, {"train": "all.tsv"}, model)
    assert found(report, "unseen-label").message == (
        "valid: 1 row with a label that does not occur in train ('perhaps'), this row was held out of "
        "train for validation; to choose other rows, give data.valid"
    )


def test_labels(classification: Examine) -> None:
    report = classification(
        train=[*TEXTS, ("text 1", "no"), ("odd", "")], test=[("new", "perhaps"), ("newer", "{x}")]
    )
    assert report.labels == {"no": 16, "yes": 15}
    assert found(report, "unseen-label").message.endswith("does not occur in train ('perhaps', '{x}')")
    assert found(report, "unseen-label").severity == "error"
    assert places(found(report, "empty-label")) == ["train.tsv:33"]
    assert places(found(report, "contradictions")) == ["train.tsv:3", "train.tsv:32"]


@pytest.mark.parametrize(
    ("labels", "kind", "message"),
    [
        (["yes"] * 30, "one-label", "at least two different labels"),
        (["yes"] * 30 + ["no"] * 2, "rare-label", "labels with fewer than 5 examples: 'no'"),
        (["yes"] * 77 + ["no"] * 7, "imbalance", "'yes' is 11 times as common as 'no'"),
    ],
)
def test_balance(classification: Examine, labels: list[str], kind: str, message: str) -> None:
    rows = [(f"text {n}", label) for n, label in enumerate(labels)]
    report = classification(train=rows, valid=rows[:1], test=rows[:1])
    assert message in found(report, kind).message


def test_what_the_vocabulary_does_not_know(translation: Examine) -> None:
    report = translation(test=[("zeta alpha alpha alpha", "beta")])
    assert report.unknown["test"]["source"] == 1 / 4
    message = found(report, "unknown").message
    assert message.startswith("test: 25.0% of the source's tokens are unknown; give more text to learn from")


def test_what_is_spelt_in_bytes(translation: Examine) -> None:
    rare = [(f"{chr(0x4E00 + n)}", f"word {n}") for n in range(40)]
    report = translation(train=rare, tokenizer={"kind": "bpe", "vocab_size": 300})
    assert report.spelt["train"]["source"] > 0.9
    assert "single bytes of rare characters" in found(report, "spelt", "train").message


def test_rows_that_are_too_long(translation: Examine) -> None:
    report = translation(train=[*PAIRS, ("a " * 13, "b")], max_length=12)
    too_long = found(report, "too-long")
    assert places(too_long) == ["train.tsv:31"]
    assert too_long.message == (
        "train: 1 row (3.2%) longer than task.max_length = 12 tokens, left out of training"
    )


@pytest.mark.parametrize("n_words", [7, 8, 9])
def test_too_long_is_what_the_task_leaves_out_or_cuts(n_words: int) -> None:
    text = " ".join("abcdefghi"[:n_words])
    settings = {"tokenizer": WORDS, "max_length": 8}
    rows = [Row({"source": text, "target": "a"}, "f", 1)]
    translate = Translate.fit(TranslateConfig.model_validate(settings), rows)
    (counts,) = cut(TASKS["translate"].data, translate, {"train": rows})
    assert (counts.lengths["source"][0] > 8) == (translate.unusable(translate.encode(rows)[0]) is not None)
    rows = [Row({"text": text, "label": label}, "f", 1) for label in "xy"]
    classify = Classify.fit(ClassifyConfig.model_validate(settings), rows)
    (counts,) = cut(TASKS["classify"].data, classify, {"train": rows})
    n_kept = len(classify.encode(rows)[0].arrays["ids"]) - 1
    assert (counts.lengths["text"][0] > 8) == (n_kept < n_words)
    rows = [Row({"text": text[:-2], "second": "a", "label": label}, "f", 1) for label in "xy"]
    pair = ClassifyPair.fit(ClassifyPairConfig.model_validate(settings), rows)
    kind = TASKS["classify_pair"].data
    told = [one.kind for one in examine_tokens(cut(kind, pair, {"train": rows}), kind, pair.config, None)]
    assert ("too-long" in told) == pair.encode(rows)[0].notes["cut"]


@pytest.mark.parametrize("lengths", [[0], [1, 2, 3], list(range(1000)), [5] * 99 + [100_000]])
def test_histograms_count_everything_once(lengths: list[int]) -> None:
    drawn = histogram(np.array(lengths))
    assert sum(drawn.counts) == len(lengths)
    assert len(drawn.counts) == len(drawn.edges) <= 10
    bounds = [*drawn.edges, float("inf")]
    for count, low, high in zip(drawn.counts, bounds, bounds[1:], strict=False):
        assert count == sum(low <= length < high for length in lengths)


def test_time_and_memory_are_measured(translation: Examine) -> None:
    estimate = translation().estimate
    assert estimate is not None
    assert estimate.steps_per_epoch > 2
    assert estimate.measured_steps == 2
    assert estimate.seconds_per_epoch > 0
    assert estimate.memory > 10_000_000
    expected = 100 / estimate.steps_per_epoch * estimate.seconds_per_epoch
    assert estimate.total_seconds == pytest.approx(expected)


def test_of_very_many_rows_a_sample_is_looked_at(
    translation: Examine, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = translation().estimate
    monkeypatch.setattr("regard.check.reading.LOOKED_AT", 15)
    report = translation()
    assert report.rows == {"train": 30, "valid": 1, "test": 1}
    assert found(report, "sampled").message.startswith("train: of 30 rows 15 were drawn at random")
    assert sum(report.lengths["source"].counts) == 15
    assert whole is not None
    assert report.estimate is not None
    assert report.estimate.steps_per_epoch == pytest.approx(whole.steps_per_epoch, rel=0.5)


@pytest.mark.parametrize(("memory", "severity"), [(1000, "error"), (200_000_000, "error")])
def test_a_machine_that_is_too_small(
    translation: Examine, monkeypatch: pytest.MonkeyPatch, memory: int, severity: str
) -> None:
    monkeypatch.setattr(Machine, "here", lambda: Machine(1, memory, gpu=False))
    tight = found(translation(), "memory")
    assert tight.severity == severity
    assert 'or let train.batch_tokens = "auto" or train.accumulate split batches' in tight.message


def test_a_batch_that_does_not_fit_is_a_finding(
    translation: Examine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> Any:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")

    monkeypatch.setattr("regard.check.cost.update", full)
    tight = found(translation(), "memory")
    assert tight.message.startswith("the largest batch does not fit into memory (DefaultCPUAllocator: can't")


def test_what_training_would_split_is_measured_in_parts(
    translation: Examine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.check.cost.find_micro_batches", lambda training: 2)
    seen: list[int] = []
    monkeypatch.setattr(
        "regard.check.cost.update", lambda training, *_: seen.append(training.n_micro_batches)
    )
    translation(batch_tokens="auto")
    assert set(seen) == {2}


def test_data_that_nothing_can_be_learnt_from(translation: Examine) -> None:
    report = translation(train=[("a", ""), ("", "b")], valid=[("a", "b")])
    assert found(report, "untrainable").message == "train.tsv: no usable training examples"


def test_series_of_one_length_are_told_apart_by_their_steps(tmp_path: Path) -> None:
    """Many are `9 steps of 1` to a user; only those with the same steps are the same series."""

    def lines(first: int, labels: str) -> str:
        rows = [
            ",".join(str((first + row) * step % 11) for step in range(9)) + f":{label}"
            for row, label in enumerate(labels)
        ]
        return "\n".join(["@univariate true", "@classLabel true a b", "@data", *rows, ""])

    (tmp_path / "train.ts").write_text(lines(1, "abababab"))
    (tmp_path / "test.ts").write_text(lines(9, "aba"))
    (tmp_path / "again.ts").write_text(lines(1, "abababab") + lines(1, "b").splitlines()[-1] + "\n")
    settings = {
        "task": {"kind": "classify"},
        "fields": {"series": {"kind": "series"}},
        "model": {"kind": "classifier", "encoder": {"kind": "patchtst"}},
    }

    def codes(train: str) -> set[str]:
        data = {"train": train, "valid": "test.ts", "test": "test.ts"}
        report = examine(Recipe.parse(settings | {"data": data}))
        return {found.kind for found in report.findings}

    assert not codes("train.ts") & {"duplicates", "contradictions"}
    assert codes("again.ts") >= {"contradictions"}
