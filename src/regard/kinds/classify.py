"""classify: a column of text, and a column of labels."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from regard.data.source import Row
from regard.kinds.columns import Columns, Picked, labels, longest_text, texts
from regard.kinds.finding import Finding, Severity, about
from regard.kinds.kind import Answer, Kind
from regard.kinds.plan import PIECE, Plan
from regard.kinds.rows import FEW, Splits, absurdly_long, duplicated, empty, shared
from regard.kinds.settings import Pace, Setting, encoder, tokenizer
from regard.tasks import TaskConfig

LOPSIDED = 10
"""Times that the commonest label outnumbers the rarest before it is worth a word."""


class Label(Answer):
    probability: float
    probabilities: dict[str, float]
    input_cut: bool = False


def _looks_like(columns: Columns) -> bool:
    return bool(texts(columns) and labels(columns))


def _pick(role: str, rest: Columns) -> Picked:
    if role == "text":
        return longest_text(rest)
    found = labels(rest)
    if len(found) == 1:
        return found[0], f"it holds only {len(set(rest[found[0]]))} different short values"
    return None, ""


def _sections(plan: Plan) -> Mapping[str, list[Setting]]:
    longest = plan.guess.lengths["text"][1] / PIECE[plan.scripts["text"]]
    max_length = max(128, 2 ** math.ceil(math.log2(2 * longest + 1)))
    return {
        "task": [
            ("kind", "classify", "one label per text"),
            ("max_length", max_length, "pieces; longer texts are cut"),
            ("label_smoothing", 0.0, "above 0 keeps the model from being too sure"),
        ],
        "task.tokenizer": tokenizer(plan),
        "model": [
            ("kind", "classifier", "an encoder, pooled to one vector"),
            ("pooling", "attention", "its weights can be looked at; or mean, first"),
            ("dropout", 0.3, "more for less data"),
        ],
        "model.encoder": encoder(d_hidden=128, dropout=0.3),
    }


def _pace(plan: Plan) -> Pace:
    return Pace(epochs=20, warmup=100, lr=1e-3, patience=5, average=1)


def _examine(splits: Splits, config: TaskConfig) -> list[Finding]:
    train = splits["train"]
    return [
        *_unlabelled(splits),
        *_unseen_labels(splits),
        *_balance(_counts(train)),
        *empty(splits, ["text"]),
        *absurdly_long(splits, ["text"]),
        *_contradicting(train),
        *duplicated(train),
        *shared(splits, "text"),
    ]


def _is_labelled(row: Row) -> bool:
    return row.fields["label"] != ""


def _counts(train: Sequence[Row]) -> dict[str, int]:
    return dict(Counter(row.fields["label"] for row in train if _is_labelled(row)).most_common())


def _unlabelled(splits: Splits) -> list[Finding]:
    found = []
    for split, rows in splits.items():
        blank = [row for row in rows if not _is_labelled(row)]
        found += about("error", "empty-label", split, blank, "without a label; give every text one")
    return found


def _unseen_labels(splits: Splits) -> list[Finding]:
    known = _counts(splits["train"])
    found = []
    for split, rows in splits.items():
        unseen = [row for row in rows if _is_labelled(row) and row.fields["label"] not in known]
        names = ", ".join(sorted({repr(row.fields["label"]) for row in unseen})[:FEW])
        remark = f"with a label that does not occur in train ({names})"
        found += about("error", "unseen-label", split, unseen, remark)
    return found


def _balance(counts: Mapping[str, int]) -> list[Finding]:
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


def _contradicting(train: Sequence[Row]) -> list[Finding]:
    known: dict[str, set[str]] = defaultdict(set)
    for row in train:
        known[row.fields["text"]].add(row.fields["label"])
    torn = [row for row in train if row.fields["text"] and len(known[row.fields["text"]]) > 1]
    return about("warning", "contradictions", "train", torn, "whose text also occurs under another label")


def _too_long(split: str) -> tuple[Severity, str]:
    return "warning", "of which the rest is not read"


CLASSIFY = Kind(
    name="classify",
    roles=("text", "label"),
    texts=("text",),
    looks_like=_looks_like,
    pick=_pick,
    example="--task classify --text COLUMN --label COLUMN",
    sections=_sections,
    pace=_pace,
    examine=_examine,
    too_long=_too_long,
    says="Texts in, labels with their probabilities out.",
    answer=Label,
    usable=_is_labelled,
    counts=_counts,
    counted="label: rows in training",
)
