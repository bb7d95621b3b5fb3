"""Experiments: verdicts follow from intervals, pages stand in both languages, every claim has an entry."""

import json
import math
import random
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from regard.experiments import EXPERIMENTS, Outcome, Run
from regard.experiments.chart import draw
from regard.experiments.experiment import Chart, Check, Experiment, Text
from regard.experiments.interval import Interval, exponent
from regard.experiments.page import write

SAYS = Text("a part", "一部分")


def check(low: float, high: float, **bounds: float) -> Check:
    return Check(SAYS, Interval((low + high) / 2, low, high), **bounds)


def test_an_interval_covers_the_mean_as_often_as_it_says() -> None:
    """Of 2,000 samples of four normal numbers, 95 % within two standard errors of that share."""
    draws = random.Random(5)
    covered = 0
    for _ in range(2000):
        interval = Interval.of([draws.gauss(1.0, 3.0) for _ in range(4)])
        covered += interval.low < 1.0 < interval.high
    assert covered / 2000 == pytest.approx(0.95, abs=2 * math.sqrt(0.95 * 0.05 / 2000))


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_an_exponent_is_found_again(power: float) -> None:
    xs = [3.0, 10.0, 40.0, 95.0]
    assert exponent(xs, [7 * x**power for x in xs]) == pytest.approx(power)


@pytest.mark.parametrize(
    ("checks", "verdict"),
    [
        ([check(0.1, 0.3, above=0.0), check(1, 2, below=3)], "holds"),
        ([check(0.1, 0.3, above=0.0), check(-0.1, 0.3, above=0.0)], "holds in part"),
        ([check(-0.1, 0.3, above=0.0)], "does not hold"),
        ([check(1.5, 2.5, above=1.0, below=2.0)], "does not hold"),
        ([check(1.0, 1.0, above=1.0)], "does not hold"),
    ],
)
def test_a_verdict_follows_from_whole_intervals(checks: list[Check], verdict: str) -> None:
    assert Outcome(checks, []).verdict.en == verdict


def small(run: Run) -> Outcome:
    run.tick("half way")
    figures = [0.5 + 0.1 * seed for seed in run.seeds]
    series = {"a & b": [(8.0, Interval.of(figures)), (64.0, Interval.of([0.5]))]}
    chart = Chart(Text("a < b", "甲小于乙"), SAYS, SAYS, series, log_x=True)
    return Outcome([Check(SAYS, Interval.of(figures), above=0.0)], [chart, chart], [Text("so.", "如此。")])


SMALL = Experiment("small", SAYS, SAYS, SAYS, SAYS, small)
FACTS = {"seeds": 3, "thorough": False, "seconds": 1.0, "torch": "2"}


def test_a_page_says_claim_verdict_and_figures_in_both_languages(tmp_path: Path) -> None:
    write(tmp_path, SMALL, small(Run((1, 2, 3))), FACTS, ["small", "not run"])
    english, chinese = (tmp_path / name for name in ("small.md", "zh/small.md"))
    assert "**Verdict: holds.**" in english.read_text("utf-8")
    assert "**结论：成立。**" in chinese.read_text("utf-8")
    figures = json.loads((tmp_path / "small.json").read_text("utf-8"))
    assert figures["checks"][0]["holds"]
    assert figures["checks"][0]["figure"][0] == pytest.approx(0.7)
    for index, word in (("index.md", "holds"), ("zh/index.md", "成立")):
        lines = (tmp_path / index).read_text("utf-8").splitlines()
        assert [line for line in lines if line.startswith("| [")] == [
            line for line in lines if "(small.md): " in line and f"**{word}**" in line
        ]
    assert "../small.svg" in chinese.read_text("utf-8")


def test_a_chart_is_one_picture_with_every_point_and_interval() -> None:
    root = ElementTree.fromstring(draw(small(Run((1, 2, 3))).charts))
    space = "{http://www.w3.org/2000/svg}"
    assert len(root.findall(f".//{space}circle")) == 4
    assert "a & b" in [text.text for text in root.findall(f".//{space}text")]
    for circle in root.findall(f".//{space}circle"):
        assert 0 < float(circle.get("cx", "nan")) < 640
        assert 0 < float(circle.get("cy", "nan")) < 360


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_every_text_is_there_in_both_languages(experiment: Experiment) -> None:
    for text in (experiment.title, experiment.claim, experiment.setting, experiment.limits):
        assert text.en.isascii() or set(text.en) & set("√’…²é")
        assert any("一" <= letter <= "鿿" for letter in text.zh), text
