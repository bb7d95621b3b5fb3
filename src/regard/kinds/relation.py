"""relation: sentences with two marked entities, and a column of relations; or SemEval's own files."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean

from pydantic import Field

from regard.data.marked import has_marks, read_marked
from regard.data.source import Row
from regard.errors import DataError
from regard.kinds.columns import Columns, Picked, labels
from regard.kinds.finding import SHOWN, Finding, Place, Severity, about
from regard.kinds.kind import Answer, Kind
from regard.kinds.plan import PIECE, Plan
from regard.kinds.rows import FEW, Splits, duplicated, empty, shared
from regard.kinds.settings import Pace, Setting, encoder, tokenizer
from regard.kinds.tag import Span
from regard.tasks import AnyTask, RelationConfig, TaskConfig


class Related(Answer):
    """Between two entities of a raw text."""

    probability: float
    e1: Span
    e2: Span


class Relation(Answer):
    probability: float | None = Field(None, description="of the relation between marked entities")
    probabilities: dict[str, float] | None = Field(None, description="of every relation")
    entities: list[Span] | None = Field(None, description="of a raw text: those that the tagger found")
    relations: list[Related] | None = Field(None, description="of a raw text: those between them")
    input_cut: bool = Field(False, description="the text was too long; what is near the entities was read")


def _is_marked(values: Sequence[str]) -> bool:
    """Mostly: what is not is for `check` to tell."""
    return bool(values) and fmean(map(has_marks, values)) > 0.5


def _looks_like(columns: Columns) -> bool:
    return len(columns) > 1 and any(map(_is_marked, columns.values()))


def _pick(role: str, rest: Columns) -> Picked:
    if role == "text":
        marked = [column for column, values in rest.items() if _is_marked(values)]
        return (marked[0], "its entities are marked") if marked else (None, "")
    found = labels(rest)
    return (found[0], "it holds few different short values") if len(found) == 1 else (None, "")


def _sections(plan: Plan) -> Mapping[str, list[Setting]]:
    longest = plan.guess.lengths["text"][1] / PIECE[plan.scripts["text"]]
    max_length = max(128, 2 ** math.ceil(math.log2(2 * longest + 1)))
    return {
        "task": [
            ("kind", "relation", "what two marked entities have to do with one another"),
            ("max_length", max_length, "pieces; of longer texts what is near the entities is read"),
            ("no_relation", "Other", "the label that says there is none; it is no part of the score"),
        ],
        "task.tokenizer": tokenizer(plan),
        "model": [
            ("kind", "relater", "an encoder, the states at both entities, the pooled sentence"),
            ("entities", True, "false reads the pooled sentence alone"),
            ("pooling", "attention", "its weights can be looked at; or mean, first"),
            ("dropout", 0.5, "more for less data"),
        ],
        "model.encoder": encoder(d_hidden=256, dropout=0.3),
    }


def _pace(plan: Plan) -> Pace:
    return Pace(epochs=20, warmup=100, lr=2e-3, patience=5, average=1)


def _fault(row: Row) -> str | None:
    """What is wrong with its marks."""
    try:
        read_marked(row.fields["text"], row.where)
    except DataError as fault:
        return str(fault).removeprefix(f"{row.where}: ").partition(";")[0]
    return None


def _is_usable(row: Row) -> bool:
    return bool(row.fields["label"] and row.fields["text"]) and _fault(row) is None


def _counts(train: Sequence[Row]) -> dict[str, int]:
    return dict(Counter(row.fields["label"] for row in train if row.fields["label"]).most_common())


def _examine(splits: Splits, config: TaskConfig) -> list[Finding]:
    assert isinstance(config, RelationConfig)
    counts = _counts(splits["train"])
    return [
        *_badly_marked(splits),
        *_labels(splits, counts),
        *_variety(counts, config.no_relation),
        *empty(splits, ["text"]),
        *duplicated(splits["train"]),
        *shared(splits, "text"),
    ]


def _badly_marked(splits: Splits) -> list[Finding]:
    found = []
    for split, rows in splits.items():
        faults = [Place(row.where, why) for row in rows if row.fields["text"] and (why := _fault(row))]
        if faults:
            n = f"{len(faults):,} row{'s' * (len(faults) > 1)}"
            told = f"{split}: {n} without two entities, marked once each as <e1>…</e1> and <e2>…</e2>"
            found.append(Finding("error", "bad-marks", told, len(faults), tuple(faults[:SHOWN])))
    return found


def _labels(splits: Splits, known: Mapping[str, int]) -> list[Finding]:
    found = []
    for split, rows in splits.items():
        blank = [row for row in rows if not row.fields["label"]]
        found += about("error", "empty-label", split, blank, "without a relation; give every text one")
        unseen = [row for row in rows if row.fields["label"] and row.fields["label"] not in known]
        names = ", ".join(sorted({repr(row.fields["label"]) for row in unseen})[:FEW])
        remark = f"with a relation that does not occur in train ({names})"
        found += about("error", "unseen-label", split, unseen, remark)
    return found


def _variety(counts: Mapping[str, int], none: str) -> list[Finding]:
    if len(counts) < 2:
        return [Finding("error", "one-label", "train: a relater needs at least two different relations")]
    if none not in counts:
        told = f"train: no relation is called {none!r} (task.no_relation), so that all count for the score"
        return [Finding("note", "no-relation", told)]
    if scarce := [label for label, n in counts.items() if n < FEW]:
        told = f"train: relations with fewer than {FEW} examples: {', '.join(map(repr, scarce[:FEW]))}"
        return [Finding("warning", "rare-label", told, len(scarce))]
    return []


def _too_long(split: str) -> tuple[Severity, str]:
    return "warning", "of which what is far from the entities is not read"


def _pieces(task: AnyTask, role: str, rows: Sequence[Row]) -> list[list[int]]:
    """Of the text without its marks, and the marks."""
    plain = [row.fields[role] if _fault(row) else read_marked(row.fields[role], "").text for row in rows]
    tokenizer = task.tokenizers[role]
    return [[*ids, *range(len(tokenizer), task.dims.source_vocab)] for ids in tokenizer.ids(plain)]


RELATION = Kind(
    name="relation",
    roles=("text", "label"),
    texts=("text",),
    looks_like=_looks_like,
    pick=_pick,
    example="--task relation --text COLUMN --label COLUMN",
    sections=_sections,
    pace=_pace,
    examine=_examine,
    too_long=_too_long,
    says="Texts with two marked entities in, relations out; or raw texts and a tagger that finds entities.",
    answer=Relation,
    formats=frozenset({"semeval"}),
    usable=_is_usable,
    counts=_counts,
    counted="relation: rows in training",
    pieces=_pieces,
    cut="what is far from the entities was not read",
    route="relate",
    pairs=True,
    sample="an <e1>entity</e1> and <e2>another</e2>",
)
