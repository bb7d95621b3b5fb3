"""Cells that their field cannot make a value of: files that cannot be opened, numbers that are none."""

from collections.abc import Mapping, Sequence
from typing import Any

from regard.check.finding import SHOWN, Finding, Place
from regard.errors import DataError
from regard.files.row import Row


def unreadable(splits: Mapping[str, Sequence[Row]], fields: Mapping[str, Any]) -> list[Finding]:
    """Errors about the cells of these fields, which are all made values once."""
    findings = []
    for split, rows in splits.items():
        faults = [fault for row in rows for role in fields if (fault := _fault(fields[role], row, role))]
        if faults:
            n = f"{len(faults):,} row{'s' * (len(faults) > 1)}"
            places = tuple(Place(where, message) for where, message in faults[:SHOWN])
            message = f"{split}: {n} that cannot be read; the first: {faults[0][1]}"
            findings.append(Finding("error", "unreadable", message, len(faults), places))
    return findings


def _fault(field: Any, row: Row, role: str) -> tuple[str, str] | None:
    try:
        field.parse(row.cells[role], row.where)
    except DataError as fault:
        return row.where, str(fault)
    return None
