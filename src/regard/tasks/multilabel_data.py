"""multilabel: a column of text, and a column with any number of labels in each cell."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from statistics import fmean
from typing import Any

from regard.check.finding import Finding
from regard.check.labels import rare, unseen
from regard.check.rows import Splits, absurdly_long, duplicated, empty, shared
from regard.errors import quoted
from regard.fields.labels import Labels, separator
from regard.files.columns import Column
from regard.files.row import Row
from regard.init.columns import Picked, Table, longest_text
from regard.init.match import NOT, Fit
from regard.init.plan import Plan
from regard.init.settings import Setting
from regard.tasks.classify_data import LabelledData, pace, sections, too_long

MOST_LISTED = 8


def _pick(role: str, rest: Table) -> Picked:
    if role == "text":
        return longest_text(rest.texts)
    marked = [column for column, cells in rest.cells.items() if Labels.resembles(cells)]
    if len(marked) == 1:
        return marked[0], _why(rest.cells[marked[0]])
    return None, ""


def _fit(table: Table, roles: Mapping[str, Column | None]) -> Fit:
    cells = table.cells.get(roles["label"] or 0, ())
    return (0.7, f"texts with labels; {_why(cells)}") if Labels.resembles(cells) else NOT


def _why(cells: Sequence[Any]) -> str:
    several = fmean(len(Labels(separator(cells) or ",").split(cell)) > 1 for cell in cells)
    return f"{several:.0%} of the cells have several"


def _sections(plan: Plan) -> Mapping[str, list[Setting]]:
    settings, _, reasons = Labels.suggest([row.cells["label"] for row in plan.guess.sample])
    return sections(plan, *(Setting(name, value, reasons[name]) for name, value in settings.items()))


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


MULTILABEL = LabelledData(
    roles=("text", "label"),
    texts=("text",),
    pick=_pick,
    fit=_fit,
    sections=_sections,
    pace=pace,
    examine=_examine,
    too_long=too_long,
)
