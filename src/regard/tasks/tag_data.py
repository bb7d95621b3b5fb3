"""tag: sentences with a tag for every word, as in CoNLL files; or a column of words and one of their tags."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import chain, pairwise, product
from typing import Any

from regard.check.finding import SHOWN, Finding, Place, Severity, about
from regard.check.labels import FEW
from regard.check.rows import Splits, duplicated, empty, shared
from regard.errors import quoted
from regard.fields.tags import words_of
from regard.files.columns import Column, named_like
from regard.files.read import word_where
from regard.files.row import Row
from regard.init.columns import Picked, Table
from regard.init.match import NOT, Fit
from regard.init.plan import Plan
from regard.init.settings import Pace, Setting, bordered_tokenizer, encoder, without_spaces
from regard.tasks.task_data import TaskData
from regard.text import tags

MOST_LISTED = 12
SEVERITY: dict[str, Severity] = {"refuse": "error", "skip": "warning", "mend": "note"}
"""Severity of tags that their scheme forbids."""


def _parted(table: Table) -> dict[Column, list[list[str]]]:
    """The columns that hold words or tags, cell by cell."""
    return {
        column: [words_of(cell) for cell in cells]
        for column, cells in table.cells.items()
        if all(isinstance(cell, str) or _is_list_of_strings(cell) for cell in cells)
    }


def _is_list_of_strings(cell: object) -> bool:
    return isinstance(cell, list) and all(isinstance(part, str) for part in cell)


def _aligned(columns: Mapping[Column, list[list[str]]]) -> tuple[Column, Column] | None:
    """A column of words and one of their tags: as many in every row, and tags that mark spans."""
    marking = [column for column, cells in columns.items() if tags.scheme(set(chain.from_iterable(cells)))]
    for text, own in product(columns, marking):
        pairs = zip(columns[text], columns[own], strict=True)
        if text != own and all(len(words) == len(names) for words, names in pairs):
            return text, own
    return None


def _pick(role: str, rest: Table) -> Picked:
    """Tags are looked for first, so that both columns are there then."""
    columns = _parted(rest)
    if role == "tags":
        found = _aligned(columns)
        return (found[1], "its parts mark spans") if found else (None, "")
    if not columns:
        return None, ""
    longest = max(columns, key=lambda column: sum(len(word) for cell in columns[column] for word in cell))
    return longest, "it holds the longest sentences"


def _fit(table: Table, roles: Mapping[str, Column | None]) -> Fit:
    columns = _parted(table)
    text, own = (columns.get(roles[role] or 0, []) for role in ("text", "tags"))
    if not own or [*map(len, text)] != [*map(len, own)]:
        return NOT
    if scheme := tags.scheme(set(chain.from_iterable(own))):
        return 0.9, f"as many {scheme} tags as words in every row"
    return (0.6, "as many tags as words in every row") if named_like("tags", [str(roles["tags"])]) else NOT


def _sections(plan: Plan) -> Mapping[str, list[Setting]]:
    return {
        "task": [
            Setting("kind", "tag", plan.guess.reason),
        ],
        "task.tokenizer": bordered_tokenizer(plan),
        "model": [
            Setting("kind", "tagger"),
            Setting("crf", True),
            Setting("dropout", 0.5),
        ],
        "model.encoder": encoder(d_hidden=256, dropout=0.5),
    }


def _read(role: str, text: str) -> str:
    """Drop the spaces between words that are characters."""
    words = text.split(" ")
    return "".join(words) if all(len(word) <= 1 for word in words) else text


def _pace(plan: Plan) -> Pace:
    return Pace(epochs=30, warmup=100, lr=2e-3, patience=8, average=1)


def _parts(row: Row) -> tuple[list[str], list[str]]:
    return words_of(row.cells["text"]) or [""], words_of(row.cells["tags"]) or [""]


def _is_paired(row: Row) -> bool:
    words, own = _parts(row)
    return len(words) == len(own) and all(words) and all(own)


def _counts(train: Sequence[Row]) -> dict[str, int]:
    return dict(Counter(tag for row in train if _is_paired(row) for tag in _parts(row)[1]).most_common())


def _examine(splits: Splits, config: Any) -> list[Finding]:
    counts = _counts(splits["train"])
    known = tags.completed(counts) if config.illegal == "mend" else set(counts)
    scheme = tags.scheme(known)
    return [
        *_unpaired(splits),
        *_unseen(splits, known),
        *_illegal(splits, scheme, config),
        *_variety(counts, known, scheme, splits["train"]),
        *empty(splits, ["text"]),
        *duplicated(splits["train"]),
        *shared(splits, "text"),
    ]


def _unpaired(splits: Splits) -> list[Finding]:
    found = []
    for split, rows in splits.items():
        odd = [row for row in rows if any(row.cells.values()) and not _is_paired(row)]
        remark = "without one tag for every word; give each its own, with one space between"
        found += about("error", "unpaired-tags", split, odd, remark)
    return found


def _unseen(splits: Splits, known: Set[str]) -> list[Finding]:
    findings = []
    for split, rows in splits.items():
        unseen = [row for row in rows if _is_paired(row) and set(_parts(row)[1]) - known]
        names = sorted({tag for row in unseen for tag in _parts(row)[1]} - known)
        remark = f"with a tag that does not occur in train ({', '.join(map(quoted, names[:FEW]))})"
        findings += about("error", "unseen-tag", split, unseen, remark)
    return findings


def _illegal(splits: Splits, scheme: str | None, config: Any) -> list[Finding]:
    if scheme is None:
        return []
    severity = SEVERITY[config.illegal]
    found = []
    for split, rows in splits.items():
        faults = list(_faults(scheme, rows))
        if faults:
            n = f"{len(faults):,} sentence{'s' * (len(faults) > 1)}"
            fates = {
                "refuse": "mend them, or set task.illegal to mend (as conlleval reads them) or skip",
                "skip": "left out" if split == "train" else "scored, but without a loss",
                "mend": "their spans begin where they are first seen",
            }
            then = fates[config.illegal]
            message = f"{split}: {n} with tags that {scheme} does not allow; {then}"
            found.append(Finding(severity, "illegal-tags", message, len(faults), tuple(faults[:SHOWN])))
    return found


def _faults(scheme: str, rows: Sequence[Row]) -> Iterator[Place]:
    """Place of the first fault of each sentence, and what follows what there."""
    for row in rows:
        words, own = _parts(row)
        at = tags.first_fault(scheme, own) if _is_paired(row) else None
        if at is not None:
            before, after = list(pairwise(("the beginning", *own, "the end")))[at]
            place = min(at, len(own) - 1)
            yield Place(word_where(row, place), f"{after} after {before} (at {words[place]!r})")


def _variety(
    counts: Mapping[str, int], known: Set[str], scheme: str | None, train: Sequence[Row]
) -> list[Finding]:
    if len(known) < 2:
        return [Finding("error", "one-tag", "train: a tagger needs at least two different tags")]
    if odd := tags.mixed_schemes(counts):
        names = ", ".join(map(quoted, odd[:FEW]))
        schemes = ", ".join(tags.SCHEMES)
        message = f"train: none of {schemes} has all of these tags, because of {names}; so they mark no spans"
        return [Finding("warning", "scheme", f"{message}, and every word is scored by itself", len(odd))]
    if scheme is None and (inside := tags.never_begun(counts)):
        names = ", ".join(map(quoted, inside[:FEW]))
        message = (
            f"train: no tag begins a span (B-…), so {names} mark none, and every word is scored by itself; "
            "if they are spans (IOB1), set task.illegal = mend"
        )
        return [Finding("warning", "scheme", message, len(inside))]
    if scheme is None:
        message = f"train: {len(counts)} tags that mark no spans; every word is scored by itself"
        return [Finding("note", "scheme", message)]
    spans = Counter(span.kind for row in train if _is_paired(row) for span in tags.spans(_parts(row)[1]))
    kinds = ", ".join(f"{kind or 'unnamed'} {n:,}" for kind, n in spans.most_common(MOST_LISTED))
    rest = f" and {len(spans) - MOST_LISTED} more" if len(spans) > MOST_LISTED else ""
    return [Finding("note", "scheme", f"train: {scheme} tags mark {spans.total():,} spans: {kinds}{rest}")]


def _too_long(split: str) -> tuple[Severity, str]:
    return "note", "read in overlapping windows"


def _tokens(task: Any, role: str, rows: Sequence[Row]) -> list[list[int]]:
    """Word by word, as a tagger reads them."""
    sentences = [words_of(row.cells[role]) or [""] for row in rows]
    found = iter(task.tokenizer.ids([word for words in sentences for word in words]))
    return [[token for _ in words for token in next(found)] for words in sentences]


TAG = TaskData(
    roles=("text", "tags"),
    texts=("text",),
    pick=_pick,
    fit=_fit,
    sections=_sections,
    pace=_pace,
    examine=_examine,
    too_long=_too_long,
    formats=frozenset({"conll"}),
    usable=_is_paired,
    counts=_counts,
    counted="tag: words in training",
    tokens=_tokens,
    by_character=without_spaces,
    read=_read,
)
