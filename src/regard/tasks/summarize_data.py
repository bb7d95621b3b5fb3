"""summarize: a column of documents, and one of their summaries, which are far shorter."""

from collections.abc import Mapping
from statistics import fmean
from typing import Any

from pydantic import Field

from regard.check.finding import Finding, Severity, about
from regard.check.rows import Splits, duplicated, empty, shared
from regard.files.columns import Column
from regard.init.columns import Columns, Picked, texts
from regard.init.plan import Plan
from regard.init.seq2seq import max_length, pace, transformer
from regard.init.settings import Setting, tokenizer
from regard.tasks.prediction import Written
from regard.tasks.task_data import TaskData

SHORTER = 4
"""Times that a summary is shorter than its document, on the mean, to be told from a translation."""
LONGEST = 512
"""Pieces of a document that a first recipe reads."""


class Summary(Written):
    others: list["Summary"] = Field([], description="the rest of the n best")


def _length(columns: Columns, column: Column) -> float:
    return fmean(map(len, columns[column]))


def _looks_like(columns: Columns) -> bool:
    found = [_length(columns, column) for column in texts(columns)]
    return len(found) == 2 and max(found) > SHORTER * min(found)


def _pick(role: str, rest: Columns) -> Picked:
    found = sorted(texts(rest), key=lambda column: _length(rest, column))
    if not found:
        return None, ""
    if role == "summary":
        return found[0], "it holds the shorter texts"
    return found[-1], "it holds the longer texts"


def _sections(plan: Plan) -> Mapping[str, list[Setting]]:
    longest = min(LONGEST, max_length(plan, spare=1))
    return {
        "task": [
            ("kind", "summarize", "a document in, a shorter text out"),
            ("joint", True, "documents and summaries share one vocabulary"),
            ("max_length", longest, "pieces; of longer documents the rest is not read"),
            ("label_smoothing", 0.1, "keeps the model from being too sure"),
        ],
        "task.tokenizer": tokenizer(plan),
        "task.decode": [
            ("beam", 4, "hypotheses kept while searching; 1 is fastest"),
            ("length_penalty", 1.0, "higher gives longer summaries"),
            ("no_repeat", 3, "no three pieces come twice"),
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
    found = []
    for split, rows in splits.items():
        odd = [row for row in rows if len(row.cells["summary"]) > len(row.cells["document"]) > 0]
        remark = "whose summary is longer than its document; are the columns the right way round?"
        found += about("warning", "longer-summary", split, odd, remark)
    return found


def _too_long(split: str) -> tuple[Severity, str]:
    fate = "of documents the rest is not read"
    return "warning", f"{fate}, summaries are left out" if split == "train" else fate


SUMMARIZE = TaskData(
    roles=("document", "summary"),
    texts=("document", "summary"),
    looks_like=_looks_like,
    pick=_pick,
    example="--task summarize --document COLUMN --summary COLUMN",
    sections=_sections,
    pace=pace,
    examine=_examine,
    too_long=_too_long,
)
