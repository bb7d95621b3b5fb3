"""classify: a column of text, and a column of labels."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from regard.check.finding import Finding, Severity, about
from regard.check.labels import counts, is_labelled, rare, unlabelled, unseen
from regard.check.rows import Splits, absurdly_long, duplicated, empty, shared
from regard.errors import quoted
from regard.fields import FIELDS
from regard.fields.label import Label
from regard.fields.text import Text
from regard.files.columns import Column
from regard.files.row import Row, content_of
from regard.init.columns import Picked, Table, longest_text, only_label
from regard.init.match import NOT, Fit, Given, Match, Missing, find_roles
from regard.init.plan import Plan
from regard.init.settings import Pace, Setting, encoder, tokenizer
from regard.models.encoders import ENCODERS, EncoderSettings
from regard.tasks.task_data import TaskData

NGRAMS = "added to what attention says; with many rare labels logistic regression may still be ahead"
LOPSIDED = 10
"""Times that the commonest label outnumbers the rarest before it is worth a word."""


@dataclass(frozen=True)
class LabelledData(TaskData):
    """Data of a task whose input may be of any kind: its role is then called after the kind."""

    @property
    def possible_roles(self) -> frozenset[str]:
        return frozenset(self.roles) | {kind for kind, field in FIELDS.items() if field.reads}

    def recognise(self, table: Table, given: Given) -> Match | Missing:
        kind = _kind_of_input(table, given)
        if kind is None:
            return super().recognise(table, given)
        match = find_roles(
            table, (kind, "label"), (), self.may_lack, partial(_pick_of, kind, self.pick), given
        )
        if isinstance(match, Missing):
            return match
        score, why = self.fit(table, match.roles)
        return match.match(
            (score, why.replace("texts", kind if kind.endswith("s") else f"{kind}s", 1)), {kind: kind}
        )


def _kind_of_input(table: Table, given: Given) -> str | None:
    """The kind of data that some column is of, if it is no text: as given, or by its cells."""
    kinds = {kind: field for kind, field in FIELDS.items() if field.reads not in ("", Text.reads)}
    if named := next((kind for kind in kinds if kind in given), None):
        return named
    if "text" in given:
        return None
    alike = {
        kind: max(map(field.resembles, table.cells.values()), default=0) for kind, field in kinds.items()
    }
    best = max(alike, key=lambda kind: alike[kind], default=None)
    return best if best is not None and alike[best] > 0.5 else None


def _pick_of(kind: str, pick: Callable[[str, Table], Picked], role: str, rest: Table) -> Picked:
    """The column that looks most like this kind of data; a label as among texts."""
    if role != kind:
        return pick(role, rest)
    alike = {column: FIELDS[kind].resembles(cells) for column, cells in rest.cells.items()}
    best = max(alike, key=lambda column: alike[column])
    return (best, f"{alike[best]:.0%} of its cells look like one") if alike[best] > 0.5 else (None, "")


def _pick(role: str, rest: Table) -> Picked:
    return longest_text(rest.texts) if role == "text" else only_label(rest)


def _fit(table: Table, roles: Mapping[str, Column | None]) -> Fit:
    if roles["label"] not in table.texts:
        return NOT
    label = table.texts[roles["label"] or 0]
    why = f"texts with {len(set(label)):,} different labels"
    return (0.5, why) if Label.resembles(label) else (0.2, why)


def _sections(plan: Plan) -> Mapping[str, list[Setting]]:
    return sections(plan)


def sections(plan: Plan, *others: Setting) -> Mapping[str, list[Setting]]:
    """The sections of a task that labels an input; `others` are more settings of the task."""
    task = [Setting("kind", plan.guess.task, plan.guess.reason), *others]
    model = [Setting("kind", "classifier"), Setting("pooling", "attention"), Setting("dropout", 0.3)]
    if plan.guess.kinds:
        name, encoder_class = _reader(plan)
        first = [Setting(*each) for each in encoder_class.first(round(plan.tokens_a_row)).items()]
        kind = Setting("kind", name, f"reads {encoder_class.reads}")
        return {"task": task, "model": model, "model.encoder": [kind, *first]}
    return {
        "task": [*task, Setting("max_length", plan.room, plan.room_reason)],
        "task.tokenizer": tokenizer(plan),
        "model": model,
        "model.ngrams": [Setting("characters", 5, NGRAMS)],
        "model.encoder": encoder(d_hidden=128, dropout=0.3),
    }


def pace(plan: Plan) -> Pace:
    usual: dict[str, Any] = {"epochs": 20, "warmup": 100, "lr": 1e-3, "patience": 5, "average": 1}
    return Pace(**usual | (dict(_reader(plan)[1].pace) if plan.guess.kinds else {}))


def _reader(plan: Plan) -> tuple[str, type[EncoderSettings]]:
    """The first encoder that reads such an input."""
    (read,) = {FIELDS[one].reads for one in plan.guess.kinds.values()}
    return next((name, encoder) for name, encoder in ENCODERS.items() if encoder.reads == read)


def _examine(splits: Splits, config: Any) -> list[Finding]:
    return examine(splits, *config.inputs, texts=[role for role in config.inputs if role not in config.asked])


def examine(splits: Splits, *inputs: str, texts: Sequence[str] | None = None) -> list[Finding]:
    train = splits["train"]
    counted = counts(train)
    return [
        *unlabelled(splits),
        *unseen(splits, counted),
        *_balance(counted),
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
    labels_of: dict[tuple[str, ...], set[str]] = defaultdict(set)
    contents = [(row, tuple(content_of(row.cells[role]) for role in inputs)) for row in train]
    for row, content in contents:
        labels_of[content].add(row.cells["label"])
    torn = [row for row, content in contents if any(content) and len(labels_of[content]) > 1]
    whose = (
        f"whose {' and '.join(inputs)} also {'occur' if len(inputs) > 1 else 'occurs'} under another label"
    )
    return about("warning", "contradictions", "train", torn, whose)


def too_long(split: str) -> tuple[Severity, str]:
    return "warning", "of which the rest is not read"


CLASSIFY = LabelledData(
    roles=("text", "label"),
    texts=("text",),
    pick=_pick,
    fit=_fit,
    sections=_sections,
    pace=pace,
    examine=_examine,
    too_long=too_long,
    usable=is_labelled,
    counts=counts,
    counted="label: rows in training",
)
