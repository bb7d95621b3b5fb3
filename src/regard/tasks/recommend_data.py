"""recommend: interactions of users with items, and perhaps what the items are called."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.check.finding import SHOWN, Finding, Place, about
from regard.check.rows import Splits
from regard.errors import DataError, quoted
from regard.fields.field import Suggestion
from regard.fields.items import Items
from regard.files.columns import Column, named_like
from regard.files.formats import file_format
from regard.files.interactions import Grouping, Histories
from regard.files.read import INTERACTION, histories
from regard.files.row import Row
from regard.files.stamps import is_date
from regard.init.columns import LONGEST_ID, Picked, Table
from regard.init.guess import Guess
from regard.init.match import NOT, Fit, Given, Match, Missing
from regard.init.plan import Plan
from regard.init.settings import Pace, Setting
from regard.tasks.task_data import TaskData

NAMED, LIKELY, SEQUENCES = 0.95, 0.6, 0.7
"""How special a table is whose user and item are named, one that looks like `u.data`, and lines of ids."""
CORE = 5
"""Interactions that users and items have in the usual benchmark, where enough is left of the data."""
ENOUGH_LEFT = 0.5
LONGEST_HISTORY = 200
DAY = 86_400
LEFT: Picked = (None, "")
MANY_ITEMS = 50_000
"""Above this a softmax over the catalogue takes longer than all the rest of a step."""


@dataclass(frozen=True)
class InteractionData(TaskData):
    """Records of who chose what; or a history a line, of plain text."""

    @property
    def possible_roles(self) -> frozenset[str]:
        return frozenset(INTERACTION)

    def recognise(self, table: Table, given: Given) -> Match | Missing:
        fields = {"items": "items"}
        if file_format(table.files[0]) == "text":
            lines = next(iter(table.texts.values()), ())
            score, reason = (SEQUENCES, _mean_length(lines)) if _are_sequences(lines) else NOT
            return Match({"items": None}, score, reason, fields=fields)
        roles, reasons = dict[str, Column | None](), []
        for role in INTERACTION:
            free = [name for name in table.names if name not in roles.values()]
            if column := given.get(role) or named_like(role, free):
                roles[role] = column
                why = "as given" if role in given else "by its name"
                reasons.append(f"The {role} is {table.called(column)}, {why}.")
        n_known = len(roles)
        for role in ("time", "user", "item", "rating"):
            if role not in roles:
                column, why = self.pick(role, table.without(roles.values()))
                if column is not None:
                    roles[role] = column
                    reasons.append(f"The {role} is {table.called(column)}: {why}.")
                elif role in ("user", "item"):
                    return Missing(role)
        roles = {role: roles[role] for role in INTERACTION if role in roles}
        if "time" not in roles:
            reasons.append("No column holds times, so the order of the rows is that of the choices.")
        score, reason = self.fit(table, roles)
        return Match(roles, n_known + score if score >= 0 else score, reason, tuple(reasons), fields)

    def suggestions(self, guess: Guess, decided: Mapping[str, Mapping[str, Any]]) -> dict[str, Suggestion]:
        """How histories are made, by what each way leaves of the files."""
        settings: dict[str, Any] = {}
        reasons: dict[str, str] = {}
        if "items" in guess.columns:
            firsts = [row.cells["items"][0] for row in guess.sample if row.cells["items"]]
            if len(set(firsts)) < len(firsts):
                settings["lines"] = "items"
                reasons["lines"] = "first words come again, so none of them is the name of a user"
        whole = _histories(guess, settings)
        core = {"min_user": CORE, "min_item": CORE}
        with suppress(DataError):
            all_of_it, left = whole.effect, _histories(guess, settings | core).effect
            if ENOUGH_LEFT * all_of_it.n_kept <= left.n_kept < all_of_it.n_kept:
                settings |= core
                reasons["min_user"] = (
                    f"the 5-core keeps {left.n_kept:,} of {all_of_it.n_kept:,} interactions, of "
                    f"{left.n_users:,} of {all_of_it.n_users:,} users"
                )
                reasons["min_item"] = f"and {left.n_items:,} of {all_of_it.n_items:,} items"
        per_row = round(float(_lengths(whole).mean())) if "items" in guess.columns else 1
        return {"items": Suggestion(settings, max(1, per_row), reasons)}


def _are_sequences(lines: Sequence[str]) -> bool:
    """Whether lines are nothing but numbers, several in most."""
    parts = [line.split() for line in lines if line.strip()]
    several = sum(len(line) > 1 for line in parts)
    return several > 0.5 * len(parts) and all(part.isdigit() for line in parts for part in line)


def _mean_length(lines: Sequence[str]) -> str:
    return f"lines of {fmean(len(line.split()) for line in lines):.0f} numbers on average"


def _pick(role: str, rest: Table) -> Picked:
    """Without names: a column of times, then of ids the first for the user and the next for the item; a
    rating is a number of few values.
    """
    if role == "time":
        return next(
            ((name, "it holds times") for name, cells in rest.texts.items() if _are_times(cells)), LEFT
        )
    if role == "rating":
        rated = (name for name, cells in rest.texts.items() if _are_ratings(cells))
        return next(((name, "it holds a few different numbers") for name in rated), LEFT)
    ids = (name for name, cells in rest.texts.items() if _are_ids(cells))
    return next(((name, "it is the first column of ids that is left") for name in ids), LEFT)


def _are_times(cells: Sequence[str]) -> bool:
    """Dates, or seconds or milliseconds since 1970 that have no year before 1990."""
    numbers = [float(cell) for cell in cells if cell.strip().isdigit()]
    if len(numbers) == len(cells) > 0:
        return min(numbers) > 6e8 and len(set(numbers)) > 1
    return bool(cells) and all(map(is_date, cells[:100]))


def _are_ids(cells: Sequence[str]) -> bool:
    """Short words or numbers; numbers with a fraction are measurements."""
    return all(0 < len(cell) <= LONGEST_ID and " " not in cell and not _is_fraction(cell) for cell in cells)


def _is_fraction(cell: str) -> bool:
    try:
        return not float(cell).is_integer()
    except (ValueError, OverflowError):
        return False


def _are_ratings(cells: Sequence[str]) -> bool:
    try:
        return len({float(cell) for cell in cells}) <= 101
    except ValueError:
        return False


def _fit(table: Table, roles: Mapping[str, Column | None]) -> Fit:
    cells = [table.cells[roles[role] or 0] for role in ("user", "item")]
    users, items = (len(set(map(str, values))) for values in cells)
    is_named = all(named_like(role, table.names) == roles[role] for role in ("user", "item"))
    comes_again = users < len(cells[0]) and items < len(cells[1])
    if not comes_again or not (is_named or "time" in roles):
        return NOT
    why = f"choices of {items:,} items by {users:,} users in {len(cells[0]):,} sampled rows"
    return (NAMED if is_named else LIKELY), why


def _histories(guess: Guess, settings: Mapping[str, Any]) -> Histories:
    columns = {role: column for role, column in guess.columns.items() if role != "items"}
    return histories(guess.train, columns, Grouping(**settings), encoding=guess.encoding)


def _lengths(found: Histories) -> NDArray[np.integer]:
    return np.diff(found.ends_H, prepend=0)


def _sections(plan: Plan) -> Mapping[str, Sequence[Setting]]:
    found = _histories(plan.guess, plan.guess.suggestions["items"].settings)
    usual, n_items = int(np.quantile(_lengths(found), 0.95)), found.effect.n_items
    task = [Setting("kind", "recommend", plan.guess.reason)]
    length = min(LONGEST_HISTORY, max(10, usual))
    task.append(Setting("max_length", length, f"items read of a history; 95 % have at most {usual:,}"))
    if found.time_N is not None:
        how = 'or "time": train before a moment and test after it, as in use; docs/recommend.md'
        task.append(Setting("split", "last", f"the last item of each history is for the test; {how}"))
    if n_items > MANY_ITEMS:
        why = f"{n_items:,} items are too many for the whole softmax"
        task.append(Setting("loss", {"kind": "sampled_softmax"}, why))
    return {"task": task, "model": [Setting("kind", "sasrec"), Setting("dropout", 0.4)]}


def _pace(plan: Plan) -> Pace:
    return Pace(epochs=50, warmup=100, lr=3e-3, patience=8, average=1)


def _examine(splits: Splits, config: Any) -> list[Finding]:
    train = splits["train"]
    return [*_short(splits), *_stamps(train), *_alike(train)]


def _short(splits: Splits) -> list[Finding]:
    alone = [row for row in splits["train"] if len(row.cells["items"]) < 2]
    remark = "with a single item to learn from, left out of training"
    return about("warning", "single-item", "train", alone, remark)


def _stamps(train: Sequence[Row]) -> list[Finding]:
    """Times that do not tell the order, or cannot be true."""
    timed = [row for row in train if "times" in row.cells]
    if not timed:
        said = "train: no column of times; the order of the rows is taken for that of the choices"
        return [Finding("note", "no-times", said)]
    n_equal = sum(int((np.diff(row.cells["times"]) == 0).sum()) for row in timed)
    n_all = sum(len(row.cells["items"]) for row in timed)
    findings = []
    if n_equal:
        said = f"train: {n_equal:,} of {n_all:,} interactions have the same time as the one before them; "
        said += "the order of the rows decides"
        findings.append(Finding("warning" if n_equal > n_all / 2 else "note", "equal-times", said, n_equal))
    tomorrow = time.time() + DAY
    future = [row for row in timed if row.cells["times"][-1] > tomorrow]
    return findings + about("warning", "future", "train", future, "with a time that is yet to come")


def _alike(train: Sequence[Row]) -> list[Finding]:
    """Ids that another program has written as numbers: 1.0 is not 1."""
    counts = Counter(item for row in train for item in row.cells["items"])
    pointed = [item for item in counts if item.endswith(".0") and item[:-2].isdigit()]
    twice = [item for item in pointed if item[:-2] in counts]
    if not twice:
        return []
    places = tuple(Place(quoted(item), f"beside {quoted(item[:-2])}") for item in twice[:SHOWN])
    said = f"train: {len(twice):,} items are written in two ways, as 7.0 and 7, and count as two; write one"
    return [Finding("warning", "two-spellings", said, len(twice), places)]


def strange(items: Items, scored: Mapping[str, Sequence[Any]]) -> list[str]:
    """How many items have no title, and how much of what is scored training cannot know."""
    untitled = [name for name in items.names if name not in items.described]
    found = []
    if items.described and untitled:
        first = ", ".join(map(quoted, untitled[:SHOWN]))
        found.append(f"{len(untitled):,} of {len(items.names):,} items have no title: {first} …")
    for split, examples in scored.items():
        cold = sum(int(one.arrays["target"][0]) < 0 for one in examples)
        strangers = sum(items.is_empty({"items": one.arrays["items"]}) for one in examples)
        if cold:
            found.append(
                f"{split}: {cold:,} of {len(examples):,} right items are cold, not in the training data; "
                "they count as misses"
            )
        if strangers:
            found.append(f"{split}: {strangers:,} of {len(examples):,} histories hold no known item")
    return found


RECOMMEND = InteractionData(
    roles=INTERACTION,
    texts=(),
    pick=_pick,
    fit=_fit,
    sections=_sections,
    pace=_pace,
    examine=_examine,
    too_long=None,
    may_lack=frozenset(),
    held_out="the last item but one of each history is held out",
    tested="the last item of each history is held out",
)
