"""translate: two columns of text, the first to be turned into the second."""

from collections.abc import Mapping
from statistics import median
from typing import Any

from regard.check.finding import Finding, Severity, about
from regard.check.rows import Splits, absurdly_long, duplicated, empty, shared
from regard.fields.text import Text
from regard.files.columns import Column
from regard.files.row import Row
from regard.init.columns import Picked, Table, texts
from regard.init.match import Fit
from regard.init.plan import Plan, script
from regard.init.seq2seq import bleu, limit, max_length, pace, transformer
from regard.init.settings import Setting, tokenizer
from regard.tasks.task_data import TaskData

ASKEW, ASKEW_LENGTH = 5, 30
"""Times the usual ratio of source and target, and characters at least, from which a pair looks misaligned."""


def _pick(role: str, rest: Table) -> Picked:
    findings = texts(rest.texts)
    return (findings[0], "it holds text, and the order decides the direction") if findings else (None, "")


def _fit(table: Table, roles: Mapping[str, Column | None]) -> Fit:
    sides = [table.texts.get(column, ()) for column in roles.values() if column is not None]
    if not all(Text.resembles(side) > 0.5 for side in sides):
        return 0.0, ""
    scripts = [script(side) for side in sides]
    if len(set(scripts)) > 1:
        return 0.45, f"two columns of text in different scripts ({', '.join(scripts)})"
    return 0.4, f"two columns of text ({scripts[0]})"


def _sections(plan: Plan) -> Mapping[str, list[Setting]]:
    return {
        "task": _task(plan),
        "task.tokenizer": tokenizer(plan),
        "model": transformer(plan),
    }


def _task(plan: Plan) -> list[Setting]:
    source, target = plan.scripts["source"], plan.scripts["target"]
    joint = source == target
    return [
        Setting("kind", "translate", plan.guess.reason),
        Setting("joint", joint, f"one vocabulary for both sides: both are {source}" if joint else ""),
        limit(plan, max_length(plan, spare=3)),
        bleu(target),
    ]


def _examine(splits: Splits, config: Any) -> list[Finding]:
    return [
        *empty(splits, ["source", "target"]),
        *absurdly_long(splits, ["source", "target"]),
        *_askew(splits),
        *_copied(splits),
        *duplicated(splits["train"]),
        *shared(splits, "source"),
    ]


def _askew(splits: Splits) -> list[Finding]:
    """Pairs of which one side is far longer than it should be: often a shifted line or a wrong partner."""
    usual = median(map(_ratio, splits["train"])) if splits["train"] else 1
    findings = []
    for split, rows in splits.items():
        odd = [
            row
            for row in rows
            if all(row.cells.values())
            and max(map(len, row.cells.values())) >= ASKEW_LENGTH
            and not 1 / ASKEW < _ratio(row) / usual < ASKEW
        ]
        remark = f"whose sides differ in length {ASKEW} times as much as usual; are they partners?"
        findings += about("warning", "askew", split, odd, remark)
    return findings


def _ratio(row: Row) -> float:
    return (1 + len(row.cells["source"])) / (1 + len(row.cells["target"]))


def _copied(splits: Splits) -> list[Finding]:
    findings = []
    for split, rows in splits.items():
        same = [row for row in rows if row.cells["source"] == row.cells["target"] != ""]
        findings += about(
            "warning", "copied", split, same, "with source = target, from which copying is learnt"
        )
    return findings


def _too_long(split: str) -> tuple[Severity, str]:
    return "warning", "left out of training" if split == "train" else "of which the rest is not read"


TRANSLATE = TaskData(
    roles=("source", "target"),
    texts=("source", "target"),
    pick=_pick,
    fit=_fit,
    sections=_sections,
    pace=pace,
    examine=_examine,
    too_long=_too_long,
)
