"""regard experiment: lists, runs, writes pages, and refuses in one sentence."""

from pathlib import Path

import pytest

from regard.experiments import EXPERIMENTS, Outcome, Run
from regard.experiments.experiment import Chart, Check, Experiment, Text
from regard.experiments.interval import Interval
from small_runs import Call

SAYS = Text("a part", "一部分")


def small(run: Run) -> Outcome:
    run.tick("half way")
    figure = Interval.of([0.5 + 0.1 * seed for seed in run.seeds])
    chart = Chart(SAYS, SAYS, SAYS, {"a line": [(8.0, figure), (64.0, figure)]})
    return Outcome([Check(SAYS, figure, above=0.0)], [chart])


SMALL = Experiment("small", SAYS, SAYS, SAYS, SAYS, small)


def test_the_verb_lists_runs_and_refuses(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(f"{name} " in call("experiment").stdout for name in EXPERIMENTS)
    unknown = call("experiment", "prise")
    assert (unknown.exit_code, unknown.stderr.count("\n")) == (2, 1)
    assert "prise: no such experiment; did you mean price?" in unknown.stderr
    monkeypatch.setitem(EXPERIMENTS, "small", SMALL)
    done = call("experiment", "small", "--out", str(tmp_path / "book"), "--seeds", "4")
    assert done.exit_code == 0, done.stderr
    assert "verdict: holds" in done.stdout
    assert (tmp_path / "book/zh/small.md").is_file()
    (tmp_path / "file").write_text("")
    refused = call("experiment", "small", "--out", str(tmp_path / "file"))
    assert refused.exit_code == 2
    assert "is a file; name a folder" in refused.stderr
