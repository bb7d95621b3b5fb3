"""classify_pair: two columns of text, and a column of labels."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from regard.check.finding import Finding
from regard.check.labels import counts, is_labelled
from regard.check.rows import Splits
from regard.files.row import Row
from regard.init.columns import Columns, Picked, labels, texts
from regard.init.plan import Plan
from regard.init.settings import Setting
from regard.tasks.classify_data import examine, pace, sections, too_long
from regard.tasks.task_data import Lengths, TaskData

INPUTS = ("text", "second")
ALIKE = 2
"""Times that one text of a pair may be as long as the other, in the mean."""


def _looks_like(columns: Columns) -> bool:
    """Two texts of about the same length: a text beside a name is no pair."""
    lengths = sorted(fmean(map(len, columns[column])) for column in texts(columns))
    return len(lengths) == 2 and ALIKE * lengths[0] > lengths[1] and len(labels(columns)) == 1


def _pick(role: str, rest: Columns) -> Picked:
    if role == "label":
        found = labels(rest)
        return (found[0], "it holds few different short values") if len(found) == 1 else (None, "")
    said = texts(rest)
    if role == "second" and len(said) == 2:
        return said[1], "it is the later of two columns of text"
    return (said[0], "it holds the other text") if len(said) == 1 else (None, "")


def _sections(plan: Plan) -> Mapping[str, list[Setting]]:
    return sections(plan, "classify_pair", "one label for two texts")


def _examine(splits: Splits, config: Any) -> list[Finding]:
    return examine(splits, *INPUTS)


def _length(lengths: Sequence[Lengths]) -> Lengths:
    """With the mark between the two."""
    (both,) = lengths
    return both + 1


def _pieces(task: Any, role: str, rows: Sequence[Row]) -> list[list[int]]:
    """Of both texts together, as they are read."""
    first, second = (task.tokenizers[role].ids([row.cells[name] for row in rows]) for name in INPUTS)
    return [[*one, *other] for one, other in zip(first, second, strict=True)]


CLASSIFY_PAIR = TaskData(
    roles=(*INPUTS, "label"),
    texts=INPUTS,
    looks_like=_looks_like,
    pick=_pick,
    example="--task classify_pair --text COLUMN --second COLUMN --label COLUMN",
    sections=_sections,
    pace=pace,
    examine=_examine,
    too_long=too_long,
    usable=is_labelled,
    counts=counts,
    counted="label: rows in training",
    pieces=_pieces,
    length=_length,
    together=True,
)
