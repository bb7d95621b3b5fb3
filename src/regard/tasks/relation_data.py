"""relation: sentences with two marked entities, and a column of relations; or SemEval's own files."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import reduce
from statistics import fmean
from typing import Any

from pydantic import Field

from regard.check.finding import SHOWN, Finding, Place, Severity
from regard.check.labels import counts, rare, unlabelled, unseen
from regard.check.rows import Splits, duplicated, empty, shared
from regard.errors import DataError, quoted
from regard.files.columns import Column
from regard.files.row import Row
from regard.init.columns import Picked, Table, only_label
from regard.init.match import NOT, Fit
from regard.init.plan import Plan
from regard.init.settings import Pace, Setting, bordered_tokenizer, encoder, without_spaces
from regard.tasks.prediction import Answer
from regard.tasks.tag import Span
from regard.tasks.task_data import TaskData
from regard.text.entity_marks import MARKS, has_marks, read_marked

NO_RELATION = (
    "Other",
    "no_relation",
    "no relation",
    "NA",
    "N/A",
    "none",
    "无关系",
    "无",
    "其他",
    "未知",
    "unknown",
)
"""Usual names of the label that says there is none, the likeliest first."""


class Related(Answer):
    """Between two entities of a raw text."""

    probability: float
    e1: Span
    e2: Span


class Relation(Answer):
    probability: float | None = Field(None, description="of the relation between marked entities")
    probabilities: dict[str, float] | None = Field(None, description="of every relation")
    entities: list[Span] | None = Field(None, description="of a raw text: those that the tagger found")
    relations: list[Related] | None = Field(None, description="of a raw text: those between them")
    input_cut: bool = Field(False, description="the text was too long; what is near the entities was read")


def _is_marked(values: Sequence[str]) -> bool:
    """Mostly: what is not is for `check` to tell."""
    return bool(values) and fmean(map(has_marks, values)) > 0.5


def _pick(role: str, rest: Table) -> Picked:
    if role == "label":
        return only_label(rest)
    marked = [column for column, values in rest.texts.items() if _is_marked(values)]
    return (marked[0], "its entities are marked") if marked else (None, "")


def _fit(table: Table, roles: Mapping[str, Column | None]) -> Fit:
    if not _is_marked(table.texts.get(roles["text"] or 0, ())):
        return NOT
    return 0.9, "texts with two marked entities, <e1>…</e1> and <e2>…</e2>"


def _sections(plan: Plan) -> Mapping[str, list[Setting]]:
    return {
        "task": [
            Setting("kind", "relation", plan.guess.reason),
            Setting("max_length", plan.room, plan.room_reason),
            _no_relation(plan),
        ],
        "task.tokenizer": bordered_tokenizer(plan),
        "model": [
            Setting("kind", "relater"),
            Setting("pooling", "attention"),
            Setting("dropout", 0.5),
        ],
        "model.encoder": encoder(d_hidden=256, dropout=0.3),
    }


def _read(role: str, text: str) -> str:
    """Replace each mark, which is one token, by a letter."""
    return reduce(lambda read, mark: read.replace(mark, "-"), MARKS, text) if role == "text" else text


def _no_relation(plan: Plan) -> Setting:
    """The label that says there is none, as the training data call it, in whatever case."""
    counted = Counter(row.cells["label"] for row in plan.guess.sample)
    spelled = {label.lower(): label for label in counted}
    name = next((spelled[name.lower()] for name in NO_RELATION if name.lower() in spelled), None)
    if name is None:
        return Setting("no_relation", NO_RELATION[0], "no label is called like that: all count")
    share = counted[name] / counted.total()
    return Setting("no_relation", name, f"the label of {share:.0%} of the rows; it is no part of the score")


def _pace(plan: Plan) -> Pace:
    return Pace(epochs=20, warmup=100, lr=2e-3, patience=5, average=1)


def _fault(row: Row) -> str | None:
    """Fault of its marks."""
    try:
        read_marked(row.cells["text"], row.where)
    except DataError as fault:
        return str(fault).removeprefix(f"{row.where}: ").partition(";")[0]
    return None


def _is_usable(row: Row) -> bool:
    return bool(row.cells["label"] and row.cells["text"]) and _fault(row) is None


def _examine(splits: Splits, config: Any) -> list[Finding]:
    counted = counts(splits["train"])
    return [
        *_badly_marked(splits),
        *unlabelled(splits, "relation"),
        *unseen(splits, counted, "relation"),
        *_variety(counted, config.no_relation),
        *empty(splits, ["text"]),
        *duplicated(splits["train"]),
        *shared(splits, "text"),
    ]


def _badly_marked(splits: Splits) -> list[Finding]:
    findings = []
    for split, rows in splits.items():
        faults = [Place(row.where, why) for row in rows if row.cells["text"] and (why := _fault(row))]
        if faults:
            n = f"{len(faults):,} row{'s' * (len(faults) > 1)}"
            message = f"{split}: {n} without two entities, marked once each as <e1>…</e1> and <e2>…</e2>"
            findings.append(Finding("error", "bad-marks", message, len(faults), tuple(faults[:SHOWN])))
    return findings


def _variety(counted: Mapping[str, int], none: str) -> list[Finding]:
    if len(counted) < 2:
        return [Finding("error", "one-label", "train: a relater needs at least two different relations")]
    if none not in counted:
        message = (
            f"train: no relation is called {quoted(none)} (task.no_relation), so that all count for the score"
        )
        return [Finding("note", "no-relation", message)]
    return rare(counted, "relation")


def _too_long(split: str) -> tuple[Severity, str]:
    return "warning", "of which what is far from the entities is not read"


def _tokens(task: Any, role: str, rows: Sequence[Row]) -> list[list[int]]:
    """Tokens of the text without its marks, and the marks."""
    plain = [row.cells[role] if _fault(row) else read_marked(row.cells[role], "").text for row in rows]
    tokenizer = task.tokenizers[role]
    return [[*ids, *range(len(tokenizer), task.widths.input["vocab"])] for ids in tokenizer.ids(plain)]


RELATION = TaskData(
    roles=("text", "label"),
    texts=("text",),
    pick=_pick,
    fit=_fit,
    sections=_sections,
    pace=_pace,
    examine=_examine,
    too_long=_too_long,
    formats=frozenset({"semeval"}),
    usable=_is_usable,
    counts=counts,
    counted="relation: rows in training",
    tokens=_tokens,
    by_character=without_spaces,
    read=_read,
)
