"""Reads a recipe's data to the end and reports everything that is wrong with it at once.

Nothing is written. Findings are data; `regard check` prints them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from regard.check import tokens
from regard.check.cost import Estimate, measured, too_big
from regard.check.finding import Finding, Place
from regard.check.reading import read_all
from regard.check.tokens import Histogram
from regard.data.layout import scored
from regard.data.splits import HELD_OUT
from regard.errors import DataError
from regard.files.row import Row
from regard.interop.pretrained import load_pretrained, resolve
from regard.models.encoders import EncoderSettings
from regard.recipe import Recipe
from regard.runs.corpus import CHOOSE, Corpus, fitted
from regard.runs.prepare import assemble, least_memory, pick_device
from regard.tasks import TASKS, AnyTask
from regard.training.config import TrainConfig

__all__ = ["Estimate", "Finding", "Histogram", "Place", "Report", "examine"]

READ = {"lines": "documents", "paragraphs": "documents", "files": "parts"}
"""Unit that is counted, by what a document is; files are read in parts."""


@dataclass(frozen=True)
class Report:
    rows: dict[str, int]
    """Number of rows by split."""
    findings: tuple[Finding, ...]
    """Errors first."""
    labels: dict[str, int]
    """Labels in training with their counts, the commonest first; none where the task has none."""
    counted: str = ""
    """Heading of these counts."""
    read: str = "rows"
    """Unit that `rows` counts: of plain text, documents or parts."""
    vocabulary: dict[str, int] = field(default_factory=dict)
    """Tokens learnt, by role; what follows is empty when none could be learnt."""
    lengths: dict[str, Histogram] = field(default_factory=dict)
    """Tokens a row in training, by role."""
    unknown: dict[str, dict[str, float]] = field(default_factory=dict)
    """Split → role → share of tokens that are unknown."""
    spelt: dict[str, dict[str, float]] = field(default_factory=dict)
    """The same for tokens that are single bytes of rare characters."""
    estimate: Estimate | None = None

    @property
    def trainable(self) -> bool:
        return not any(finding.severity == "error" for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        return {"trainable": self.trainable} | asdict(self)


def _by_column(recipe: Recipe, splits: Mapping[str, Sequence[Row]]) -> list[Finding]:
    """Findings of the fields of the inputs, each in its own column."""
    return [finding for role, one in recipe.task.asked.items() for finding in one.check(role, splits)]


def _held_out(finding: Finding) -> Finding:
    """Explain what train has only in a row that is held out."""
    if finding.kind not in ("unseen-label", "unseen-tag") or not finding.message.startswith("valid: "):
        return finding
    return replace(finding, message=f"{finding.message}, {CHOOSE}")


def examine(recipe: Recipe, base: Path = Path()) -> Report:
    """Look at every row of every split, learn the vocabulary, and train for a few seconds to measure.

    Of more than a million rows a million are looked at.
    """
    pretrained = load_pretrained(recipe, base)
    recipe = resolve(recipe, pretrained)
    data = TASKS[recipe.task.kind].data
    splits, shares, findings = read_all(recipe, base)
    own_findings = [*data.examine(splits, recipe.task), *_by_column(recipe, splits)]
    findings += map(_held_out, own_findings) if recipe.data.valid is None else own_findings
    if not splits["valid"] and splits["train"]:
        few = f"train: too few {recipe.hold_out.wholes} to hold one of {HELD_OUT} out for validation"
        findings.append(Finding("error", "no validation", f"{few}; add some, or give data.valid"))
    report = Report(
        rows={split: round(len(rows) / shares[split]) for split, rows in splits.items()},
        findings=(),
        labels=data.counts(splits["train"]),
        counted=data.counted,
        read=_unit(recipe),
    )
    usable = [row for row in splits["train"] if data.usable(row)]
    try:
        corpus = Corpus(recipe, base)
        vocabulary = None if pretrained is None else pretrained.vocabulary
        task = fitted(recipe, usable, vocabulary, corpus.described())
        findings += _of_encoder(recipe, task)
        if all(finding.severity != "error" for finding in findings):
            scored_rows = {
                split: scored(task, rows, split) for split, rows in splits.items() if split != "train"
            }
            findings += [Finding("note", "read", sentence) for sentence in corpus.notes(task, scored_rows)]
        cut = tokens.cut(data, task, splits)
        findings += tokens.examine(cut, data, recipe.task, None if pretrained is None else pretrained.folder)
        for split, rows in splits.items():
            findings += data.examine_tokens(task, split, rows)
        report = replace(
            report,
            vocabulary={role: len(tokenizer) for role, tokenizer in task.tokenizers.items()},
            lengths={role: tokens.histogram(lengths) for role, lengths in cut[0].lengths.items()}
            if data.too_long
            else {},
            unknown={one.split: one.unknown for one in cut},
            spelt={one.split: one.spelt for one in cut},
            estimate=_estimate(recipe, task, usable, shares["train"], base, findings),
        )
    except DataError as fault:
        if all(finding.severity != "error" for finding in findings):
            findings.append(Finding("error", "untrainable", str(fault)))
    order = ("error", "warning", "note")
    return replace(report, findings=tuple(sorted(findings, key=lambda one: order.index(one.severity))))


def _of_encoder(recipe: Recipe, task: AnyTask) -> list[Finding]:
    """Remarks of the encoder on inputs of this width."""
    encoder: Any = getattr(recipe.model, "encoder", None)
    if not isinstance(encoder, EncoderSettings):
        return []
    return [Finding("warning", "encoder", remark) for remark in encoder.remarks(task.widths.input)]


def _unit(recipe: Recipe) -> str:
    document = recipe.task.document
    if recipe.task.grouping is not None:
        return "histories"
    return "rows" if document is None else READ[document]


def _estimate(
    recipe: Recipe,
    task: AnyTask,
    train: Sequence[Row],
    share: float,
    base: Path,
    findings: list[Finding],
) -> Estimate | None:
    """Estimate the cost; None, and a finding, if the model is too big to be tried or has no steps."""
    tight = too_big(least_memory(recipe, task))
    if not tight:
        name = ", ".join(recipe.data.train)
        examples = task.layout.of(task, train)
        if not examples:
            raise DataError(f"{name}: no usable training examples")
        examples.refuse_unfit(name)
        device = pick_device(recipe.train.device)
        training = assemble(recipe, task, examples, [], base / recipe.run, device)
        if not training.learns_by_steps:
            message = "train: the model counts, in one pass; there are no steps to time"
            findings.append(Finding("note", "counted", message))
            return None
        estimate = measured(training, share)
        if isinstance(estimate, Estimate):
            findings += too_big(estimate.memory) + _endless_warmup(recipe.train, estimate.steps_per_epoch)
            return estimate
        tight = [estimate]
    findings += tight
    return None


def _endless_warmup(plan: TrainConfig, steps_per_epoch: int) -> list[Finding]:
    by_epochs = plan.max_epochs and plan.max_epochs * steps_per_epoch
    total = min((limit for limit in (plan.max_steps, by_epochs) if limit), default=None)
    if total is None or plan.warmup < total:
        return []
    message = f"train.warmup = {plan.warmup:,} steps of a training of {total:,}: train.lr is never reached"
    return [Finding("warning", "warmup", f"{message}; lower it")]
