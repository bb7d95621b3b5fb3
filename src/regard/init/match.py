"""Search for a task's roles among columns: by what is given, then names, then values."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from regard.files.columns import Column, named_like
from regard.init.columns import Picked, Table, labels

Given = Mapping[str, Column]
"""Columns of roles that the user says."""
Fit = tuple[float, str]
"""Rating from 0 to less than 1 of how special such columns are, and what was seen; NOT if they
are not.
"""
NOT: Fit = (-1.0, "")


@dataclass(frozen=True)
class Match:
    """Match of a table with a task."""

    roles: Mapping[str, Column | None]
    """Column of each role; None for a role that the format itself knows."""
    score: float
    """One for every role that is given or named; behind the point, how special the values are. Negative where
    it is no such table, so that the task has to be asked for.
    """
    reason: str = ""
    """Reason why it is this task."""
    reasons: tuple[str, ...] = ()
    """Why each column has its role."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Role → kind of data, of inputs that are no texts."""
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Role → settings of its field that the columns decide."""


class Found(NamedTuple):
    """Columns for all roles."""

    roles: dict[str, Column | None]
    reasons: tuple[str, ...]
    n_named: int
    """Number of roles that are given or named."""

    def match(self, fit: Fit, fields: Mapping[str, str] | None = None) -> Match:
        score, reason = fit
        return Match(
            self.roles, self.n_named + score if score >= 0 else score, reason, self.reasons, fields or {}
        )


class Missing(NamedTuple):
    """A role that no column has; why, where several could."""

    role: str
    why: str = ""


def find_roles(
    table: Table,
    roles: tuple[str, ...],
    texts: tuple[str, ...],
    may_lack: frozenset[str],
    pick: Callable[[str, Table], Picked],
    given: Given,
) -> Found | Missing:
    """Looks for each role's column."""
    chosen: dict[str, Column | None] = dict.fromkeys(roles)
    reasons = []
    for role in chosen:
        column = given.get(role)
        free = [name for name in table.names if name not in chosen.values()]
        chosen[role] = column or named_like(role, free)
        if chosen[role] is not None:
            why = "as given" if column else "by its name"
            reasons.append(f"The {role} is {table.called(chosen[role])}, {why}.")
    n_named = len(reasons)
    for role in sorted(chosen):  # label before text, source before target
        if chosen[role] is not None:
            continue
        if role in may_lack:
            reasons.append(f"No column is named like a {role}.")
            continue
        rest = table.without(chosen.values())
        picked, why = pick(role, rest)
        is_label = role in texts and len(table.cells) > 1 and labels(rest.texts)
        if picked is None and not why and len(rest.cells) == len(rest.texts) == 1 and not is_label:
            picked, why = next(iter(rest.texts)), "it is the only one left"
        if picked is None:
            return Missing(role, why)
        chosen[role] = picked
        reasons.append(f"The {role} is {table.called(picked)}: {why}.")
    return Found(chosen, tuple(reasons), n_named)
