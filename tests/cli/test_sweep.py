"""Many trainings of one recipe: sweeps, folds, and the board of all runs."""

import json
from pathlib import Path

import pytest

from regard.data.splits import Every, Fold
from regard.errors import RecipeError
from regard.files.row import Row
from regard.metrics.metric import Metric
from regard.recipe import Recipe
from regard.runs.search import trials
from regard.runs.search.space import Axis, Range, axis, mixtures
from small_runs import CLASSIFY, Call, write_recipe


@pytest.fixture
def labelled(home: Path) -> Path:
    return write_recipe(home, CLASSIFY)


def test_axes_are_lists_or_ranges() -> None:
    assert axis("train.lr=1e-3, 3e-3") == Axis("train.lr", ("1e-3", "3e-3"))
    assert axis("a.b=[1,2],[3]") == Axis("a.b", ("[1,2]", "[3]"))
    assert axis("k=1e-4..1e-2") == Axis("k", Range(1e-4, 1e-2, whole=False))
    assert axis("k=8..64") == Axis("k", Range(8, 64, whole=True))
    assert mixtures([axis("a=1,2"), axis("b=3,4")], None, 1) == [
        ("1", "3"),
        ("1", "4"),
        ("2", "3"),
        ("2", "4"),
    ]


def test_what_is_drawn_lies_in_its_range_and_comes_once() -> None:
    drawn = mixtures([axis("a=1e-4..1e-2"), axis("b=8..12"), axis("c=x,y")], 30, 1)
    assert drawn == mixtures([axis("a=1e-4..1e-2"), axis("b=8..12"), axis("c=x,y")], 30, 1)
    assert drawn != mixtures([axis("a=1e-4..1e-2"), axis("b=8..12"), axis("c=x,y")], 30, 2)
    assert len(set(drawn)) == 30
    assert all(1e-4 <= float(a) <= 1e-2 and b in ("8", "9", "10", "11", "12") for a, b, _ in drawn)
    assert 5 < sum(float(a) < 1e-3 for a, _, _ in drawn) < 25, "orders of magnitude are drawn evenly"
    assert len(mixtures([axis("a=1,2")], 9, 1)) == 2, "there are no more"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["train.lr"], "write a setting as key=value,value"),
        (["train.lr=1,,2"], "nothing between two commas"),
        (["train.lr=2..1"], "the range is empty"),
        (["train.lr=1e-3..1e-2"], "say how many are drawn: --random 20"),
        (["train.lr=1e-3"], "nothing to try"),
        (["model.nonsense=1,2"], "nonsense: unknown"),
        (["train.lr=1e-3,1e-2", "--budget", "soon"], "--budget soon: write a time such as 30m"),
        (["train.lr=1e-3,1e-2", "train.max_steps=none"], "train.max_steps"),
    ],
)
def test_a_fault_is_seen_before_anything_is_trained(
    call: Call, labelled: Path, home: Path, settings: list[str], message: str
) -> None:
    result = call("sweep", labelled, *settings)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not (home / "run-sweep").exists()


def test_a_sweep_ranks_by_validation_and_goes_on_where_it_was(call: Call, labelled: Path, home: Path) -> None:
    asked = ("sweep", labelled, "train.lr=1e-5,0.05", "model.pooling=mean", "--seeds", "2")
    result = call(*asked)
    assert result.exit_code == 0, result.stderr
    saved = json.loads((home / "run-sweep" / "sweep.json").read_text("utf-8"))
    assert [len(one["scores"]) for one in saved["trials"]] == [2, 2]
    means = [one["mean"] for one in saved["trials"]]
    assert means == sorted(means, reverse=True)
    best = saved["trials"][0]["settings"]
    assert f"model.pooling=mean train.lr={best['train.lr']}" in result.stdout
    runs = sorted((home / "run-sweep").glob("*-*"))
    assert len(runs) == 4
    assert all(Recipe.read(run / "recipe.json").data.test is None for run in runs)
    page = (home / "run-sweep" / "sweep.html").read_text("utf-8")
    assert page.count("<polyline") == 2
    before = {run: (run / "model" / "model.safetensors").stat().st_mtime_ns for run in runs}
    assert call(*asked).exit_code == 0
    assert before == {run: (run / "model" / "model.safetensors").stat().st_mtime_ns for run in runs}


def test_a_halving_trains_the_best_longer(call: Call, labelled: Path, home: Path) -> None:
    settings = "train.lr=1e-5,1e-4,1e-3,1e-2"
    result = call("sweep", labelled, settings, "train.max_steps=9", "--halving", "--json")
    assert result.exit_code == 0, result.stderr
    trials = json.loads(result.stdout)["trials"]
    assert [one["rung"] for one in trials] == [1, 0, 0, 0] or [one["rung"] for one in trials] == [2, 0, 0, 0]
    steps = sorted(
        Recipe.read(run / "recipe.json").train.max_steps or 0 for run in (home / "run-sweep").glob("*-rung*")
    )
    assert steps == [1, 1, 1, 1, 3, 9]


def test_a_budget_begins_no_trial_that_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials of two minutes each: two fit into five minutes, as a third would end after six."""
    monkeypatch.setattr(trials, "score_of", lambda run, metric: (float(run.name), 2.0))
    content = {"task": {"kind": "classify"}, "model": {"kind": "classifier"}, "data": {"train": "a.csv"}}
    recipe = Recipe.parse(content)
    waiting = [
        trials.Trial((name,), (), (recipe.model_copy(update={"run": name}),)) for name in ("3", "1", "7", "5")
    ]
    trained: list[str] = []
    sweep = trials.Sweep(Metric("accuracy"), lambda one: trained.append(one.run), budget=300)
    sweep.run(waiting)
    assert trained == ["3", "1"]
    assert [one.values for one in sweep.left_out] == [("7",), ("5",)]
    assert [one.mean for one in sweep.ranked] == [3, 1]
    lower = trials.Sweep(Metric("loss", higher=False), lambda one: None)
    lower.run(waiting)
    assert [one.mean for one in lower.ranked] == [1, 3, 5, 7]


@pytest.mark.parametrize(("text", "seconds"), [("30m", 1800), ("2h", 7200), ("90s", 90), ("1.5", 90)])
def test_times(text: str, seconds: float) -> None:
    assert trials.seconds(text) == seconds


def test_folds_test_every_row_once() -> None:
    rows = [Row({"text": str(n)}, "a.tsv", n) for n in range(1, 103)]
    tested = []
    for place in range(1, 6):
        fold = Fold(Every(), place, 5)
        border, held_out = fold.border(rows), list[Row]()
        learnt = list(fold.split(border, rows, held_out))
        part = list(fold.test(border, rows))
        assert {*map(id, learnt)} | {*map(id, held_out)} | {*map(id, part)} == {*map(id, rows)}
        assert len(learnt) + len(held_out) + len(part) == len(rows)
        assert held_out
        tested += part
    assert sorted(map(id, tested)) == sorted(map(id, rows))


def test_cross_validation(call: Call, labelled: Path, home: Path) -> None:
    result = call("cv", labelled, "--folds", "3")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.count("/3") == 3
    assert "(mean and deviation of 3 folds)" in result.stdout
    assert [Recipe.read(home / f"run-cv/{n}of3/recipe.json").data.fold for n in (1, 2, 3)] == [
        "1/3",
        "2/3",
        "3/3",
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fold": "6/5"}, "fold: 6/5 is no part of several"),
        ({"fold": "1/1"}, "fold: 1/1 is no part of several"),
        ({"fold": "1/5", "test": "x.csv"}, "leave out valid and test"),
        ({"fold": "half"}, "fold"),
    ],
)
def test_bad_folds_are_refused(change: dict[str, str], message: str) -> None:
    task, model = {"kind": "classify"}, {"kind": "classifier"}
    with pytest.raises(RecipeError, match=message):
        Recipe.parse({"task": task, "model": model, "data": {"train": "a.csv"} | change})


def test_a_text_without_rows_has_no_folds() -> None:
    content = {
        "task": {"kind": "language_model"},
        "model": {"kind": "gpt"},
        "data": {"train": "a.txt", "fold": "1/5"},
    }
    with pytest.raises(RecipeError, match="not dealt out in folds"):
        Recipe.parse(content)


def test_the_board_lists_runs_task_by_task(
    call: Call, classifier: Path, translator: Path, home: Path
) -> None:
    for run in (classifier, translator):
        (home / "runs" / "deep").mkdir(parents=True, exist_ok=True)
        (home / "runs" / "deep" / run.parent.name).symlink_to(run)
    (home / "runs" / "broken").mkdir()
    (home / "runs" / "broken" / "recipe.json").write_text("[", "utf-8")
    result = call("board", "runs")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.index("classify") < result.stdout.index("translate")
    assert "runs/broken/recipe.json" in result.stderr
    page = (home / "runs" / "board.html").read_text("utf-8")
    assert page.count("<table>") == 2
    assert page.count("<tr>") == 4
    listed = json.loads(call("board", "runs", "--json").stdout)
    assert {one["task"] for one in listed} == {"classify", "translate"}


def test_a_board_without_runs_is_refused(call: Call, home: Path) -> None:
    assert "nowhere: no such folder" in call("board", "nowhere").stderr
    (home / "empty").mkdir()
    result = call("board", "empty")
    assert (result.exit_code, "empty: holds no runs" in result.stderr) == (2, True)
