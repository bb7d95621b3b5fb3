"""Two models on the same rows, side by side: what `regard eval RUN_A RUN_B` prints."""

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from regard.cli import console
from regard.errors import RunError
from regard.text.sanitize import printable

if TYPE_CHECKING:
    from regard import Evaluation, Trained
    from regard.metrics.resample import Difference

SURE = "[…] holds 95 % of the scores that other data of the same kind would give: 2,000 draws of the rows"
CHANCE = "p: how often the two differ as much when they exchange answers at random, in 2,000 trials"


def refuse_strangers(models: "dict[str, Trained]") -> None:
    (run, first), (name, second) = models.items()
    if second.task.kind != first.task.kind:
        raise RunError(
            f"{name}: its task is {second.task.kind}, that of {run} is {first.task.kind}; "
            "only runs of the same task are compared"
        )


def compare(files: list[str], evaluations: "dict[str, Evaluation]", *, as_json: bool) -> None:
    one, other = evaluations.values()
    differences = one.against(other)
    if as_json:
        apart = {
            name: {"difference": of.value, "interval": of.interval, "p": of.p}
            for name, of in differences.items()
        }
        runs = {name: as_json_of(evaluation) for name, evaluation in evaluations.items()}
        console.write_json({"files": files, "runs": runs, "differences": apart})
        return
    console.line(f"{', '.join(files)}: {one.n_examples:,} rows")
    console.table(_table(evaluations, differences))
    console.line(SURE, "dim")
    console.line(CHANCE, "dim")


def as_json_of(evaluation: "Evaluation") -> dict[str, Any]:
    """Scores of a model as JSON."""
    scored = {
        "rows": evaluation.n_examples,
        "scores": evaluation.metrics,
        "intervals": evaluation.intervals,
        "signatures": evaluation.signatures,
    }
    return scored | ({"by_kind": evaluation.by_kind} if evaluation.by_kind else {})


def _table(evaluations: "dict[str, Evaluation]", differences: "dict[str, Difference]") -> Table:
    """A row for each metric: `accuracy  81.20 [79.40, 83.00]  80.10 […]  +1.10 [-0.60, +2.80]  0.2134`."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("")
    for name in (*evaluations, "difference", "p"):
        table.add_column(Text(printable(name)), justify="right")
    for metric, apart in differences.items():
        scores = [
            console.score(metric, evaluation.metrics[metric], evaluation.intervals[metric])
            for evaluation in evaluations.values()
        ]
        table.add_row(
            metric, *scores, console.score(metric, apart.value, apart.interval, "+"), f"{apart.p:.4f}"
        )
    return table
