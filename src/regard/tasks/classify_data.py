"""classify: a column of text, and a column of labels."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from regard.check.finding import Finding, Severity, about
from regard.check.labels import counts, is_labelled, rare, unlabelled, unseen
from regard.check.rows import Splits, absurdly_long, duplicated, empty, shared
from regard.errors import quoted
from regard.fields import FIELDS
from regard.files.row import Row, text_of
from regard.init.columns import Columns, Picked, labels, longest_text, texts
from regard.init.plan import Plan
from regard.init.settings import Pace, Setting, encoder, tokenizer
from regard.models.encoders import ENCODERS
from regard.tasks.task_data import TaskData

LOPSIDED = 10
"""Times that the commonest label outnumbers the rarest before it is worth a word."""


def _looks_like(columns: Columns) -> bool:
    return bool(texts(columns) and labels(columns))


def _pick(role: str, rest: Columns) -> Picked:
    if role == "text":
        return longest_text(rest)
    found = labels(rest)
    if len(found) == 1:
        return found[0], f"it holds only {len(set(rest[found[0]]))} different short values"
    return None, ""


def _sections(plan: Plan) -> Mapping[str, list[Setting]]:
    if plan.guess.fields:
        return _other_sections(plan)
    return sections(plan, "classify", "one label per text")


def _other_sections(plan: Plan) -> Mapping[str, list[Setting]]:
    """Settings for an input that is no text: its own, and an encoder that reads it."""
    ((role, settings),) = plan.guess.fields.items()
    field = FIELDS[role].settings.model_fields
    encoder = next(kind for kind, encoder in ENCODERS.items() if encoder.reads == FIELDS[role].reads)
    return {
        "task": [
            ("kind", "classify", f"one label per {role}"),
            ("label_smoothing", 0.0, "above 0 keeps the model from being too sure"),
        ],
        f"fields.{role}": [
            (name, value, field[name].description or "as in your data") for name, value in settings.items()
        ],
        "model": [
            ("kind", "classifier", "an encoder, pooled to one vector"),
            ("pooling", "attention", "its weights can be looked at; or mean, first"),
            ("dropout", 0.3, "more for less data"),
        ],
        "model.encoder": [("kind", encoder, f"reads {FIELDS[role].reads}")],
    }


def sections(plan: Plan, kind: str, means: str, *others: Setting) -> Mapping[str, list[Setting]]:
    """Of whatever labels texts, with these settings of its own."""
    return {
        "task": [
            ("kind", kind, means),
            *others,
            ("max_length", plan.room, "pieces; longer texts are cut"),
            ("label_smoothing", 0.0, "above 0 keeps the model from being too sure"),
        ],
        "task.tokenizer": tokenizer(plan),
        "model": [
            ("kind", "classifier", "an encoder, pooled to one vector"),
            ("pooling", "attention", "its weights can be looked at; or mean, first"),
            ("dropout", 0.3, "more for less data"),
        ],
        "model.encoder": encoder(d_hidden=128, dropout=0.3),
    }


def pace(plan: Plan) -> Pace:
    return Pace(epochs=20, warmup=100, lr=1e-3, patience=5, average=1)


def _examine(splits: Splits, config: Any) -> list[Finding]:
    return examine(splits, *config.inputs, texts=[role for role in config.inputs if role not in config.asked])


def examine(splits: Splits, *inputs: str, texts: Sequence[str] | None = None) -> list[Finding]:
    train = splits["train"]
    known = counts(train)
    return [
        *unlabelled(splits),
        *unseen(splits, known),
        *_balance(known),
        *empty(splits, inputs),
        *absurdly_long(splits, inputs if texts is None else texts),
        *_contradicting(train, inputs),
        *duplicated(train),
        *shared(splits, *inputs),
    ]


def _balance(counted: Mapping[str, int]) -> list[Finding]:
    if len(counted) < 2:
        return [Finding("error", "one-label", "train: a classifier needs at least two different labels")]
    common, *_, rarest = counted
    if scarce := rare(counted):
        return scarce
    if counted[common] > LOPSIDED * counted[rarest]:
        times = counted[common] / counted[rarest]
        message = (
            f"train: {quoted(common)} is {times:.0f} times as common as {quoted(rarest)}; "
            "look at macro_f1, not accuracy"
        )
        return [Finding("warning", "imbalance", message)]
    return []


def _contradicting(train: Sequence[Row], inputs: Sequence[str]) -> list[Finding]:
    known: dict[tuple[str, ...], set[str]] = defaultdict(set)
    said = [(row, tuple(text_of(row.cells[role]) for role in inputs)) for row in train]
    for row, content in said:
        known[content].add(row.cells["label"])
    torn = [row for row, content in said if any(content) and len(known[content]) > 1]
    whose = (
        f"whose {' and '.join(inputs)} also {'occur' if len(inputs) > 1 else 'occurs'} under another label"
    )
    return about("warning", "contradictions", "train", torn, whose)


def too_long(split: str) -> tuple[Severity, str]:
    return "warning", "of which the rest is not read"


CLASSIFY = TaskData(
    roles=("text", "label"),
    texts=("text",),
    looks_like=_looks_like,
    pick=_pick,
    example="--task classify --text COLUMN --label COLUMN",
    sections=_sections,
    pace=pace,
    examine=_examine,
    too_long=too_long,
    usable=is_labelled,
    counts=counts,
    counted="label: rows in training",
)
