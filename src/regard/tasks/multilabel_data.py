"""multilabel: a column of text, and a column with any number of labels in each cell."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from regard.check.finding import Finding
from regard.check.labels import rare, unseen
from regard.check.rows import Splits, absurdly_long, duplicated, empty, shared
from regard.errors import quoted
from regard.fields.labels import Labels
from regard.files.columns import Column
from regard.files.row import Row
from regard.init.columns import MAX_LABEL_CHARS, Columns, Picked, longest_text, texts
from regard.init.plan import Plan
from regard.init.settings import Setting
from regard.tasks.classify_data import pace, sections, too_long
from regard.tasks.task_data import TaskData

SEPARATORS = ("|", ";", ",")
COMBINED = 0.05
"""Of cells with a label, the share with more than one from which a column is one of several labels."""
MOST_LISTED = 8


def _separator(cells: Sequence[str]) -> str | None:
    """What separates labels: few, short and recurring parts that stand in more than one combination."""
    for separator in SEPARATORS:
        sets = [Labels(separator).split(cell) for cell in cells]
        parts = set(chain.from_iterable(sets))
        combined = sum(len(labels) > 1 for labels in sets) / max(1, sum(map(bool, sets)))
        few = 2 <= len(parts) <= max(2, min(200, len(cells) // 10))
        short = all(len(part) <= MAX_LABEL_CHARS for part in parts)
        if combined >= COMBINED and few and short and len(parts) < len({frozenset(own) for own in sets}):
            return separator
    return None


def _marked(columns: Columns) -> list[Column]:
    return [column for column, values in columns.items() if _separator(values)]


def _looks_like(columns: Columns) -> bool:
    marked = _marked(columns)
    return bool(marked and texts({name: values for name, values in columns.items() if name not in marked}))


def _pick(role: str, rest: Columns) -> Picked:
    if role == "text":
        return longest_text(rest)
    marked = _marked(rest)
    if len(marked) == 1:
        return marked[0], f"its cells hold labels with {_separator(rest[marked[0]])} between them"
    return None, ""


def _sections(plan: Plan) -> Mapping[str, list[Setting]]:
    separator = _separator([row.cells["label"] for row in plan.guess.sample]) or ","
    return sections(
        plan,
        "multilabel",
        "any number of labels per text",
        ("separator", separator, "stands between the labels of a text"),
        ("threshold", 0.5, "the probability from which a label is given"),
    )


def _examine(splits: Splits, config: Any) -> list[Finding]:
    train = splits["train"]
    counts = Counter(chain.from_iterable(_labels(row, config) for row in train))
    return [
        *unseen(splits, counts, of=lambda row: _labels(row, config)),
        *_told(train, counts, config),
        *empty(splits, ["text"]),
        *absurdly_long(splits, ["text"]),
        *duplicated(train),
        *shared(splits, "text"),
    ]


def _labels(row: Row, config: Any) -> tuple[str, ...]:
    return Labels(config.separator).split(row.cells["label"])


def _told(train: Sequence[Row], counts: Counter[str], config: Any) -> list[Finding]:
    if len(counts) < 2:
        message = f"train: fewer than two labels; is {config.separator!r} what stands between labels?"
        return [Finding("error", "one-label", message)]
    common = ", ".join(f"{quoted(label)} {n:,}" for label, n in counts.most_common(MOST_LISTED))
    rest = f" and {len(counts) - MOST_LISTED} more" if len(counts) > MOST_LISTED else ""
    bare = sum(not _labels(row, config) for row in train)
    message = (
        f"train: {len(counts)} labels, {counts.total() / len(train):.2f} a text, none for {bare:,} texts: "
        f"{common}{rest}"
    )
    return [Finding("note", "labels", message), *rare(counts)]


MULTILABEL = TaskData(
    roles=("text", "label"),
    texts=("text",),
    looks_like=_looks_like,
    pick=_pick,
    example="--task multilabel --text COLUMN --label COLUMN",
    sections=_sections,
    pace=pace,
    examine=_examine,
    too_long=too_long,
)
