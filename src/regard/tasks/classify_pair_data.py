"""classify_pair: two columns of text, and a column of labels."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from regard.check.finding import Finding
from regard.check.labels import counts, is_labelled
from regard.check.rows import Splits
from regard.fields.label import Label
from regard.fields.text import Text
from regard.files.columns import Column
from regard.files.row import Row
from regard.init.columns import Picked, Table, only_label, texts
from regard.init.match import Fit
from regard.init.plan import Plan
from regard.init.settings import Setting
from regard.tasks.classify_data import examine, pace, sections, too_long
from regard.tasks.task_data import Lengths, TaskData

INPUTS = ("text", "second")
ALIKE = 2
"""Times that one text of a pair may be as long as the other, in the mean."""


def _pick(role: str, rest: Table) -> Picked:
    if role == "label":
        return only_label(rest)
    columns = texts(rest.texts)
    if role == "second" and len(columns) == 2:
        return columns[1], "it is the later of two columns of text"
    return (columns[0], "it holds the other text") if len(columns) == 1 else (None, "")


def _fit(table: Table, roles: Mapping[str, Column | None]) -> Fit:
    """Two texts of about the same length: a text beside a name is no pair."""
    pair = [table.texts.get(roles[role] or 0, ()) for role in INPUTS]
    label = table.texts.get(roles["label"] or 0, ())
    if len(texts(table.texts)) != 2 or not all(Text.resembles(cells) > 0.5 for cells in pair):
        return 0.0, ""
    shorter, longer = sorted(fmean(map(len, cells)) for cells in pair)
    if longer >= ALIKE * shorter or not Label.resembles(label):
        return 0.0, ""
    return 0.6, f"two columns of text of about the same length, and {len(set(label))} different labels"


def _sections(plan: Plan) -> Mapping[str, list[Setting]]:
    return sections(plan)


def _examine(splits: Splits, config: Any) -> list[Finding]:
    return examine(splits, *INPUTS)


def _length(lengths: Sequence[Lengths]) -> Lengths:
    """Length of both texts with the mark between them."""
    (both,) = lengths
    return both + 1


def _tokens(task: Any, role: str, rows: Sequence[Row]) -> list[list[int]]:
    """Tokens of both texts together, as they are read."""
    first, second = (task.tokenizers[role].ids([row.cells[name] for row in rows]) for name in INPUTS)
    return [[*one, *other] for one, other in zip(first, second, strict=True)]


CLASSIFY_PAIR = TaskData(
    roles=(*INPUTS, "label"),
    texts=INPUTS,
    pick=_pick,
    fit=_fit,
    sections=_sections,
    pace=pace,
    examine=_examine,
    too_long=too_long,
    usable=is_labelled,
    counts=counts,
    counted="label: rows in training",
    tokens=_tokens,
    length=_length,
    together=True,
)
