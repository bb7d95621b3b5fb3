"""Faults of rows of any kind: empty, overlong and repeated ones, some shared between splits."""

from collections.abc import Mapping, Sequence
from statistics import median

from regard.check.finding import Finding, about
from regard.files.row import Row, content_of, text_of

Splits = Mapping[str, Sequence[Row]]

ABSURD, ABSURD_LENGTH = 20, 500
"""Times the usual length, and characters at least, from which a text looks like a mistake."""


def empty(splits: Splits, roles: Sequence[str]) -> list[Finding]:
    findings = []
    for split, rows in splits.items():
        blank = [row for row in rows if not all(text_of(row.cells[role]).strip() for role in roles)]
        remark = f"with an empty {' or '.join(roles)}, "
        remark += "left out of training" if split == "train" else "scored all the same"
        findings += about("warning", "empty", split, blank, remark)
    return findings


def absurdly_long(splits: Splits, roles: Sequence[str]) -> list[Finding]:
    findings = []
    for role in roles:
        usual = median(len(text_of(row.cells[role])) for row in splits["train"]) if splits["train"] else 0
        limit = max(ABSURD_LENGTH, ABSURD * usual)
        for split, rows in splits.items():
            long = [row for row in rows if len(text_of(row.cells[role])) > limit]
            remark = f"with a {role} of over {limit:,.0f} characters, where {usual:.0f} are usual"
            findings += about("warning", "absurd-length", split, long, remark)
    return findings


def duplicated(train: Sequence[Row]) -> list[Finding]:
    seen: set[tuple[str, ...]] = set()
    again = []
    for row in train:
        content = tuple(map(content_of, row.cells.values()))
        if content in seen and any(content):
            again.append(row)
        seen.add(content)
    return about("warning", "duplicates", "train", again, "repeating an earlier one and so counting double")


def shared(splits: Splits, *roles: str) -> list[Finding]:
    """Rows whose whole input also stands in an earlier split: nothing new is asked there."""
    findings = []
    names = list(splits)
    for at, split in enumerate(names):
        for earlier in names[:at]:
            earlier_rows = {_said(row, roles) for row in splits[earlier]} - {("",) * len(roles)}
            seen = [row for row in splits[split] if _said(row, roles) in earlier_rows]
            share = len(seen) / max(1, len(splits[split]))
            whose = f"whose {' and '.join(roles)} {'are' if len(roles) > 1 else 'is'} also in {earlier}"
            remark = f"({share:.1%}) {whose}, so that scores flatter the model"
            findings += about("warning", "shared", split, seen, remark)
    return findings


def _said(row: Row, roles: Sequence[str]) -> tuple[str, ...]:
    return tuple(content_of(row.cells[role]) for role in roles)
