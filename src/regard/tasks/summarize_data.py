"""summarize: a column of documents, and one of their summaries, which are far shorter."""

from collections.abc import Mapping
from math import log2
from statistics import fmean
from typing import Any

from regard.check.finding import Finding, Severity, about
from regard.check.rows import Splits, duplicated, empty, shared
from regard.files.columns import Column
from regard.init.columns import Picked, Table, texts
from regard.init.match import Fit
from regard.init.plan import Plan, script
from regard.init.seq2seq import limit, max_length, pace, transformer
from regard.init.settings import Setting, tokenizer
from regard.tasks.task_data import TaskData

SHORTER = 3
"""Factor by which summaries are shorter than their documents, on the mean, if a translation is as likely."""
LONGEST = 512
"""Tokens of a document that a first recipe reads."""


def _pick(role: str, rest: Table) -> Picked:
    findings = sorted(texts(rest.texts), key=lambda column: fmean(map(len, rest.texts[column])))
    if not findings:
        return None, ""
    if role == "summary":
        return findings[0], "it holds the shorter texts"
    return findings[-1], "it holds the longer texts"


def _fit(table: Table, roles: Mapping[str, Column | None]) -> Fit:
    """Two texts of one script; the shorter the one, the less likely it is a translation."""
    findings = texts(table.texts)
    document, summary = (table.texts.get(roles[role] or 0, ()) for role in ("document", "summary"))
    if len(findings) != 2 or set(findings) != set(roles.values()) or script(document) != script(summary):
        return 0.0, ""
    times = fmean(map(len, document)) / max(1, fmean(map(len, summary)))
    score = 0.4 + 0.2 * max(-1, min(1, log2(max(times, 0.1) / SHORTER)))
    return score, f"two columns of text, one {times:.1f} times as long as the other"


def _sections(plan: Plan) -> Mapping[str, list[Setting]]:
    longest = min(LONGEST, max_length(plan, spare=1))
    return {
        "task": [
            Setting("kind", "summarize", plan.guess.reason),
            limit(plan, longest),
        ],
        "task.tokenizer": tokenizer(plan),
        "task.decode": [
            Setting("no_repeat", 3),
        ],
        "model": transformer(plan),
    }


def _examine(splits: Splits, config: Any) -> list[Finding]:
    return [
        *empty(splits, ["document", "summary"]),
        *_longer(splits),
        *duplicated(splits["train"]),
        *shared(splits, "document"),
    ]


def _longer(splits: Splits) -> list[Finding]:
    findings = []
    for split, rows in splits.items():
        odd = [row for row in rows if len(row.cells["summary"]) > len(row.cells["document"]) > 0]
        remark = "whose summary is longer than its document; are the columns the right way round?"
        findings += about("warning", "longer-summary", split, odd, remark)
    return findings


def _too_long(split: str) -> tuple[Severity, str]:
    fate = "of documents the rest is not read"
    return "warning", f"{fate}, summaries are left out" if split == "train" else fate


SUMMARIZE = TaskData(
    roles=("document", "summary"),
    texts=("document", "summary"),
    pick=_pick,
    fit=_fit,
    sections=_sections,
    pace=pace,
    examine=_examine,
    too_long=_too_long,
)
