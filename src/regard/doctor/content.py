"""What is in the rows: empty, copied and repeated ones, sentences shared between splits, labels."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from statistics import median

from regard.data.source import Row
from regard.doctor.finding import Finding, about

Splits = Mapping[str, Sequence[Row]]

FEW = 5
"""Examples of a label below which little can be learnt about it."""
LOPSIDED = 10
"""Times that the commonest label outnumbers the rarest before it is worth a word."""
ABSURD, ABSURD_LENGTH = 20, 500
"""Times the usual length, and characters at least, from which a text looks like a mistake."""
ASKEW, ASKEW_LENGTH = 5, 30
"""Times the usual ratio of source and target, and characters at least, from which a pair looks misaligned."""


def examine(task: str, splits: Splits) -> list[Finding]:
    """Everything that can be said without a vocabulary."""
    train = splits["train"]
    if task == "classify":
        return [
            *unlabelled(splits),
            *unseen_labels(splits),
            *balance(label_counts(train)),
            *empty(splits, ["text"]),
            *absurdly_long(splits, ["text"]),
            *contradicting(train),
            *duplicated(train),
            *shared(splits, "text"),
        ]
    return [
        *empty(splits, ["source", "target"]),
        *absurdly_long(splits, ["source", "target"]),
        *askew(splits),
        *copied(splits),
        *duplicated(train),
        *shared(splits, "source"),
    ]


def empty(splits: Splits, roles: Sequence[str]) -> list[Finding]:
    found = []
    for split, rows in splits.items():
        blank = [row for row in rows if not all(row.fields[role] for role in roles)]
        remark = f"with an empty {' or '.join(roles)}, "
        remark += "left out of training" if split == "train" else "scored all the same"
        found += about("warning", "empty", split, blank, remark)
    return found


def absurdly_long(splits: Splits, roles: Sequence[str]) -> list[Finding]:
    found = []
    for role in roles:
        usual = median(len(row.fields[role]) for row in splits["train"]) if splits["train"] else 0
        limit = max(ABSURD_LENGTH, ABSURD * usual)
        for split, rows in splits.items():
            long = [row for row in rows if len(row.fields[role]) > limit]
            remark = f"with a {role} of over {limit:,.0f} characters, where {usual:.0f} are usual"
            found += about("warning", "absurd-length", split, long, remark)
    return found


def askew(splits: Splits) -> list[Finding]:
    """Pairs of which one side is far longer than it should be: often a shifted line or a wrong partner."""
    usual = median(map(_ratio, splits["train"])) if splits["train"] else 1
    found = []
    for split, rows in splits.items():
        odd = [
            row
            for row in rows
            if all(row.fields.values())
            and max(map(len, row.fields.values())) >= ASKEW_LENGTH
            and not 1 / ASKEW < _ratio(row) / usual < ASKEW
        ]
        remark = f"whose sides differ in length {ASKEW} times as much as usual; are they partners?"
        found += about("warning", "askew", split, odd, remark)
    return found


def _ratio(row: Row) -> float:
    return (1 + len(row.fields["source"])) / (1 + len(row.fields["target"]))


def copied(splits: Splits) -> list[Finding]:
    found = []
    for split, rows in splits.items():
        same = [row for row in rows if row.fields["source"] == row.fields["target"] != ""]
        found += about("warning", "copied", split, same, "with source = target, from which copying is learnt")
    return found


def duplicated(train: Sequence[Row]) -> list[Finding]:
    seen: set[tuple[str, ...]] = set()
    again = []
    for row in train:
        content = tuple(row.fields.values())
        if content in seen and any(content):
            again.append(row)
        seen.add(content)
    return about("warning", "duplicates", "train", again, "that repeat an earlier one and so count double")


def contradicting(train: Sequence[Row]) -> list[Finding]:
    labels: dict[str, set[str]] = defaultdict(set)
    for row in train:
        labels[row.fields["text"]].add(row.fields["label"])
    torn = [row for row in train if row.fields["text"] and len(labels[row.fields["text"]]) > 1]
    return about("warning", "contradictions", "train", torn, "whose text also occurs under another label")


def shared(splits: Splits, role: str) -> list[Finding]:
    """Rows whose input also stands in an earlier split: nothing was learnt about new sentences there."""
    found = []
    names = list(splits)
    for at, split in enumerate(names):
        for earlier in names[:at]:
            known = {row.fields[role] for row in splits[earlier]} - {""}
            seen = [row for row in splits[split] if row.fields[role] in known]
            share = len(seen) / max(1, len(splits[split]))
            remark = f"({share:.1%}) whose {role} is also in {earlier}, so that scores flatter the model"
            found += about("warning", "shared", split, seen, remark)
    return found


def label_counts(train: Sequence[Row]) -> dict[str, int]:
    """The commonest first."""
    return dict(Counter(row.fields["label"] for row in train if row.fields["label"]).most_common())


def unlabelled(splits: Splits) -> list[Finding]:
    found = []
    for split, rows in splits.items():
        blank = [row for row in rows if not row.fields["label"]]
        found += about("error", "empty-label", split, blank, "without a label; give every text one")
    return found


def unseen_labels(splits: Splits) -> list[Finding]:
    known = label_counts(splits["train"])
    found = []
    for split, rows in splits.items():
        unseen = [row for row in rows if row.fields["label"] and row.fields["label"] not in known]
        names = ", ".join(sorted({repr(row.fields["label"]) for row in unseen})[:FEW])
        remark = f"with a label that does not occur in train ({names})"
        found += about("error", "unseen-label", split, unseen, remark)
    return found


def balance(counts: Mapping[str, int]) -> list[Finding]:
    if len(counts) < 2:
        return [Finding("error", "one-label", "train: a classifier needs at least two different labels")]
    common, *_, rare = counts
    scarce = [label for label, n in counts.items() if n < FEW]
    if scarce:
        message = f"train: labels with fewer than {FEW} examples: {', '.join(map(repr, scarce[:FEW]))}"
        return [Finding("warning", "rare-label", message, len(scarce))]
    if counts[common] > LOPSIDED * counts[rare]:
        times = counts[common] / counts[rare]
        message = (
            f"train: {common!r} is {times:.0f} times as common as {rare!r}; look at macro_f1, not accuracy"
        )
        return [Finding("warning", "imbalance", message)]
    return []
