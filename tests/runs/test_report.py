"""The report and the watcher: what they say is what the journal says, whatever the user's text holds."""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser
from typer.testing import CliRunner

import regard
from regard.cli import app
from regard.cli.watch import spark
from regard.errors import RunError
from regard.runs.lock import is_held, locked
from regard.runs.report import History, write_report
from regard.runs.report.curves import MOST_POINTS, Curve, draw, short, thinned, ticks
from regard.runs.report.page import page
from tiny import classifying, translating


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    recipe = translating(tmp_path_factory.mktemp("run"), max_steps=12, eval_every=4, save_every=3)
    regard.train(recipe, quiet=True)
    return Path(recipe.run)


def test_the_history_is_the_journal(run: Path) -> None:
    history = History.read(run)
    assert [x for x, _ in history.series("loss")] == list(range(1, 13))
    assert [x for x, _ in history.validated("bleu")] == [4, 8, 12]
    assert history.metric == "bleu"
    assert history.state == "finished: max_steps = 12"
    assert history.step == 12
    assert all(rate > 0 for _, rate in history.throughput)
    spent = history.spent
    assert sum(spent.values()) == pytest.approx(history.seconds, rel=1e-6)
    assert min(spent["learning"], spent["validating"], spent["saving"], spent["waiting for data"]) > 0
    samples = history.samples
    assert len(samples) == 3
    assert all(answers and answers[0][0] == 4 for _, answers in samples)


def test_tokens_between_lines_are_all_counted(tmp_path: Path) -> None:
    recipe = translating(tmp_path, max_steps=12, log_every=1)
    every = recipe.model_copy(update={"run": str(tmp_path / "every")})
    fifth = recipe.model_copy(
        update={
            "run": str(tmp_path / "fifth"),
            "train": recipe.train.model_copy(update={"log_every": 4}),
        }
    )
    tokens = []
    for one in (every, fifth):
        regard.train(one, quiet=True)
        tokens.append([entry["tokens"] for entry in History.read(Path(one.run)).steps])
    assert [sum(tokens[0][i : i + 4]) for i in (0, 4, 8)] == tokens[1]
    assert all(isinstance(count, int) for count in tokens[1])


def test_the_report_is_written_at_the_end_and_on_demand(run: Path, tmp_path: Path) -> None:
    text = (run / "report.html").read_text("utf-8")
    assert "http" not in re.sub(r"https?://www\\.w3\\.org/", "", text), "nothing is fetched"
    result = CliRunner().invoke(app, ["report", str(run), "--out", str(tmp_path / "page.html")])
    assert result.exit_code == 0
    assert (tmp_path / "page.html").read_text("utf-8") == text


def test_a_kill_before_the_report_leaves_nothing_missing(tmp_path: Path) -> None:
    """The model is saved first, so the same command finds a finished run and writes what came after."""
    recipe = classifying(tmp_path, max_steps=4)
    regard.train(recipe, quiet=True)
    folder = Path(recipe.run)
    (folder / "report.html").unlink()
    leftovers = [folder / ".report.html.partial", folder / "model" / ".metrics.json.partial"]
    for leftover in leftovers:
        leftover.write_text("half a file")
    regard.train(recipe, quiet=True)
    assert "validation" in (folder / "report.html").read_text("utf-8")
    assert not any(leftover.exists() for leftover in leftovers)


def test_a_score_stands_with_its_interval(tmp_path: Path) -> None:
    recipe = classifying(tmp_path, max_steps=3)
    low, high = regard.train(recipe, quiet=True).metrics["intervals"]["test"]["accuracy"]
    text = Path(recipe.run, "report.html").read_text("utf-8")
    assert f"<span>accuracy · test</span><span>95 %: {low:.2f} – {high:.2f}</span>" in text
    assert "<span>accuracy · valid</span></div>" in text


def test_hostile_text_stays_text(run: Path, tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>{{recipe}}\x1b[31m"
    (tmp_path / "recipe.json").write_text((run / "recipe.json").read_text())
    entry = {
        "event": "evaluated", "step": 3, "metrics": {"loss": 1.0, "bleu": 2.0}, "best": True, "seconds": 1.0,
        "took": 0.1, "samples": [{"input": evil, "expected": evil, "answer": evil}],
    }  # fmt: skip
    (tmp_path / "metrics.jsonl").write_text(json.dumps(entry) + "\n")
    text = page(History.read(tmp_path))
    assert "<script>alert" not in text
    assert "{{recipe}}" in text
    assert "\x1b" not in text


def test_a_run_without_anything_yet_has_a_report(run: Path, tmp_path: Path) -> None:
    (tmp_path / "recipe.json").write_text((run / "recipe.json").read_text())
    assert write_report(tmp_path).stat().st_size > 1000
    assert History.read(tmp_path).state == "stopped"
    with pytest.raises(RunError, match="not a run folder"):
        write_report(tmp_path / "none")


def test_a_classifier_has_one_too(tmp_path: Path) -> None:
    recipe = classifying(tmp_path, max_steps=3)
    regard.train(recipe, quiet=True)
    history = History.read(Path(recipe.run))
    assert history.metric == "accuracy"
    assert history.unit == "examples"
    assert history.samples[0][0]["expected"] in ("yes", "no")


def test_the_lock_tells_whether_somebody_is_training(tmp_path: Path) -> None:
    assert not is_held(tmp_path)
    with locked(tmp_path):
        assert is_held(tmp_path)
    (tmp_path / "lock").write_text("{}")
    assert not is_held(tmp_path), "a file that a crash left behind is no trainer"


def test_watching_a_finished_run_says_so_and_leaves(run: Path) -> None:
    result = CliRunner().invoke(app, ["watch", str(run)])
    assert result.exit_code == 0
    assert "finished: max_steps = 12" in result.stdout
    assert "step 12" in result.stdout
    assert "bleu" in result.stdout


def test_watching_tells_the_last_step_though_no_line_of_steps_does(run: Path, tmp_path: Path) -> None:
    (tmp_path / "recipe.json").write_text((run / "recipe.json").read_text())
    lines = (run / "metrics.jsonl").read_text().splitlines()
    kept = [line for line in lines if (e := json.loads(line))["event"] != "step" or e["step"] < 12]
    (tmp_path / "metrics.jsonl").write_text("\n".join(kept) + "\n")
    assert "\nstep 12 · " in CliRunner().invoke(app, ["watch", str(tmp_path)]).stdout


def test_watching_what_was_stopped_says_how_to_go_on(run: Path, tmp_path: Path) -> None:
    (tmp_path / "recipe.json").write_text((run / "recipe.json").read_text())
    lines = (run / "metrics.jsonl").read_text().splitlines()
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines[:6]) + "\n{cut off")
    result = CliRunner().invoke(app, ["watch", str(tmp_path), "--once"])
    assert "the same regard train command goes on" in result.stdout
    assert CliRunner().invoke(app, ["watch", str(tmp_path / "none")]).exit_code == 2


@pytest.mark.parametrize(("low", "high"), [(0, 1), (3.2, 3.3), (-5, 5000), (0.0, 3e-4), (7, 7), (0, 0)])
def test_ticks_are_few_round_and_enclose(low: float, high: float) -> None:
    found = ticks(low, high)
    assert 2 <= len(found) <= 8
    assert found[0] <= low <= high <= found[-1]
    gaps = {round(b - a, 12) for a, b in pairwise(found)}
    assert len(gaps) == 1


def test_numbers_are_short() -> None:
    assert [short(x) for x in (0, 12000, 2.5e6, 0.003, 1e-6, 37.25)] == [
        "0", "12k", "2.5M", "0.003", "1e-06", "37.25",
    ]  # fmt: skip


def test_many_points_become_few_with_the_same_mean() -> None:
    points = [(float(x), float(x % 7)) for x in range(10_000)]
    thin = thinned(points)
    assert len(thin) <= MOST_POINTS
    assert sum(y for _, y in thin) / len(thin) == pytest.approx(3.0, abs=0.01)
    assert thinned([]) == []


def test_a_chart_is_well_formed() -> None:
    svg = draw([Curve("a & b", [(0, 1.0), (10, 2.0)]), Curve("none", [])], "a <label>")
    root = ElementTree.fromstring(svg)
    assert root.tag == "svg"
    assert draw([Curve("none", [])], "empty") == '<p class="none">—</p>'


def test_sparks() -> None:
    assert spark([0.0, 1.0], 10) == "▁█"
    assert spark([1.0, 1.0, 1.0], 10) == "▁▁▁"
    assert len(spark([float(n) for n in range(1000)], 50)) == 50
    assert spark([], 10) == ""


def test_the_page_opens_without_faults(run: Path, browser: Browser) -> None:
    faults: list[Any] = []
    tab = browser.new_page(viewport={"width": 390, "height": 844}, locale="zh-CN")
    tab.on("pageerror", lambda fault: faults.append(fault))
    tab.on(
        "request", lambda request: faults.append(request.url) if not request.url.startswith("file:") else None
    )
    tab.goto((run / "report.html").as_uri())
    assert tab.locator("figure svg").count() == 5
    assert tab.get_by_text("时间去向").is_visible()
    assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "nothing sticks out"
    assert faults == []
    tab.close()
