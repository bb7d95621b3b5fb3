"""Faults of labels: none, one that is not learnt, one that is rare."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from regard.check.finding import Finding, about
from regard.check.rows import Splits
from regard.errors import quoted
from regard.files.row import Row

FEW = 5
"""Examples of a label below which little can be learnt about it; labels named in a message at most."""


def is_labelled(row: Row) -> bool:
    return bool(row.cells["label"])


def only(row: Row) -> tuple[str, ...]:
    """The label of a row, if it has one."""
    return (row.cells["label"],) if is_labelled(row) else ()


def counts(train: Sequence[Row]) -> dict[str, int]:
    """The commonest first."""
    return dict(Counter(row.cells["label"] for row in train if is_labelled(row)).most_common())


def unlabelled(splits: Splits, called: str = "label") -> list[Finding]:
    findings = []
    for split, rows in splits.items():
        blank = [row for row in rows if not is_labelled(row)]
        findings += about("error", "empty-label", split, blank, f"without a {called}; give every text one")
    return findings


def unseen(
    splits: Splits,
    learnt: Mapping[str, int],
    called: str = "label",
    of: Callable[[Row], Sequence[str]] = only,
) -> list[Finding]:
    """Labels that no row of train has, which nothing can be learnt about."""
    findings = []
    for split, rows in splits.items():
        strange = [row for row in rows if any(label not in learnt for label in of(row))]
        names = {quoted(label) for row in strange for label in of(row) if label not in learnt}
        remark = f"with a {called} that does not occur in train ({', '.join(sorted(names)[:FEW])})"
        findings += about("error", "unseen-label", split, strange, remark)
    return findings


def rare(counted: Mapping[str, int], called: str = "label") -> list[Finding]:
    scarce = [label for label, n in counted.items() if n < FEW]
    if not scarce:
        return []
    message = f"train: {called}s with fewer than {FEW} examples: {', '.join(map(quoted, scarce[:FEW]))}"
    return [Finding("warning", "rare-label", message, len(scarce))]
