"""recommend: interactions of users with items, and perhaps what the items are called."""

from collections.abc import Mapping, Sequence
from typing import Any

from regard.check.finding import Finding
from regard.check.rows import Splits
from regard.files.columns import Column
from regard.init.columns import Picked, Table
from regard.init.match import NOT, Fit
from regard.init.plan import Plan
from regard.init.settings import Pace, Setting
from regard.tasks.task_data import TaskData


def _pick(role: str, rest: Table) -> Picked:
    return None, ""


def _fit(table: Table, roles: Mapping[str, Column | None]) -> Fit:
    return NOT


def _sections(plan: Plan) -> Mapping[str, Sequence[Setting]]:
    return {"task": [], "model": []}


def _pace(plan: Plan) -> Pace:
    return Pace(epochs=50, warmup=100, lr=3e-3, patience=5, average=1)


def _examine(splits: Splits, config: Any) -> list[Finding]:
    return []


RECOMMEND = TaskData(
    roles=(),
    texts=(),
    pick=_pick,
    fit=_fit,
    sections=_sections,
    pace=_pace,
    examine=_examine,
    too_long=None,
    may_lack=frozenset({"rating", "time"}),
)
