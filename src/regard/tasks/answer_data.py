"""answer: questions with their contexts, and what of these answers them; SQuAD's files, or columns."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import product
from statistics import fmean
from typing import Any

import numpy as np

from regard.check.finding import Finding, Severity, about
from regard.check.rows import Splits, duplicated, empty, shared
from regard.errors import DataError
from regard.fields.span import answer_places, first_answer
from regard.fields.windows import BETWEEN, tokens_at
from regard.files import squad
from regard.files.captions import is_coco
from regard.files.columns import Column
from regard.files.row import Row
from regard.init.columns import Columns, Picked, Table, longest_text, texts
from regard.init.match import Fit
from regard.init.plan import Plan
from regard.init.settings import Pace, Setting, bordered_tokenizer, encoder, without_spaces
from regard.tasks.task_data import Lengths, TaskData

FAR_LONGER = 2
"""Times that a context is longer than what answers from it, on average."""


def _columns(table: Table) -> dict[Column, Sequence[str]]:
    """The columns of texts, and those of SQuAD's answers as the first of each."""
    lists = {column: cells for column, cells in table.cells.items() if all(map(squad.has_lists, cells))}
    return {**table.texts, **{column: [_first(cell) for cell in cells] for column, cells in lists.items()}}


def _first(answers: Mapping[str, Any]) -> str:
    found = answers["text"]
    return str(found[0]) if isinstance(found, list) and found else ""


def _roles(columns: Columns) -> tuple[Column, Column, Column] | None:
    """Question, context and answer, if every answer stands in its context; a number may do so by chance."""
    asked = texts(columns)
    for context, answer in product(asked, columns):
        questions = [column for column in asked if column not in (context, answer)]
        if context != answer and questions and _answers(columns[context], columns[answer]):
            return questions[0], context, answer
    return None


def _answers(contexts: Sequence[str], answers_there: Sequence[str]) -> bool:
    if not all(answer in context for context, answer in zip(contexts, answers_there, strict=True)):
        return False
    pairs = [(context, answer) for context, answer in zip(contexts, answers_there, strict=True) if answer]
    if not pairs:
        return False
    in_words = fmean(any(map(str.isalpha, answer)) for _, answer in pairs) > 0.5
    sizes = [fmean(map(len, column)) for column in zip(*pairs, strict=True)]
    return in_words and sizes[0] > FAR_LONGER * sizes[1]


def _pick(role: str, rest: Table) -> Picked:
    """The answer is looked for first, so that all columns are there then."""
    found = _roles(_columns(rest))
    if found is not None:
        reasons = ("it is none of the others", "it holds all answers", "all of it stands in another column")
        at = squad.ROLES.index(role)
        return found[at], reasons[at]
    return longest_text(rest.texts) if role == "context" else (None, "")


def _fit(table: Table, roles: Mapping[str, Column | None]) -> Fit:
    columns = _columns(table)
    context, answer = (columns.get(roles[role] or 0, ()) for role in ("context", "answer"))
    if len(context) == len(answer) and _answers(context, answer):
        return 0.8, "questions, and answers that all stand in their contexts"
    return 0.0, ""


def _sections(plan: Plan) -> Mapping[str, list[Setting]]:
    return {
        "task": [
            Setting("kind", "answer", plan.guess.reason),
        ],
        "task.tokenizer": bordered_tokenizer(plan),
        "model": [
            Setting("kind", "answerer"),
            Setting("dropout", 0.3),
        ],
        "model.encoder": encoder(d_hidden=256, dropout=0.3),
    }


def _pace(plan: Plan) -> Pace:
    return Pace(epochs=20, warmup=100, lr=1e-3, patience=5, average=1)


def _examine(splits: Splits, config: Any) -> list[Finding]:
    return [
        *_elsewhere(splits),
        *_unanswered(splits["train"]),
        *empty(splits, ["question", "context"]),
        *duplicated(splits["train"]),
        *shared(splits, "context"),
    ]


def _is_found(row: Row) -> bool:
    try:
        answer_places(row)
    except DataError:
        return False
    return True


def _elsewhere(splits: Splits) -> list[Finding]:
    found = []
    for split, rows in splits.items():
        lost = [row for row in rows if not _is_found(row)]
        remark = "whose answer does not stand in its context; write it as it stands there"
        found += about("error", "answer-elsewhere", split, lost, remark)
    return found


def _unanswered(train: Sequence[Row]) -> list[Finding]:
    none = [row for row in train if not first_answer(row)]
    if train and len(none) == len(train):
        return [Finding("error", "no-answers", "train: no question has an answer; give some that do")]
    share = f"({len(none) / max(1, len(train)):.1%})"
    remark = f"{share} without an answer: the model learns to say that a context has none"
    return about("note", "unanswerable", "train", none, remark)


def _examine_tokens(task: Any, split: str, rows: Sequence[Row]) -> list[Finding]:
    return [*_long_answers(task, split, rows), *_inside_tokens(task, split, rows)]


def _inside_tokens(task: Any, split: str, rows: Sequence[Row]) -> list[Finding]:
    """Findings of answers that no run of whole tokens is."""
    encode = lru_cache(maxsize=1)(task.tokenizer.encode)  # questions about one context follow one another
    inside = []
    for row in rows:
        places = answer_places(row) if _is_found(row) else None
        offsets = encode(row.cells["context"]).offsets if places else ()
        tokens = tokens_at(offsets, places[0]) if places else None
        if places and tokens and (offsets[tokens[0]][0], offsets[tokens[1]][1]) != places[0]:
            inside.append(row)
    share = f"({len(inside) / max(1, len(rows)):.1%})"
    remark = f"{share} whose answer begins or ends inside a token, never to be given exactly"
    return about("warning", "inside-tokens", split, inside, f"{remark}; task.tokenizer.kind = char helps")


def _long_answers(task: Any, split: str, rows: Sequence[Row]) -> list[Finding]:
    """Findings of answers that no span of at most max_answer tokens can be."""
    most = task.config.max_answer
    found = task.tokenizer.ids([first_answer(row) for row in rows])
    long = [row for row, ids in zip(rows, found, strict=True) if len(ids) > most]
    share = f"({len(long) / max(1, len(rows)):.1%})"
    remark = f"{share} whose answer has more than task.max_answer = {most} tokens, never to be given whole"
    return about("warning", "long-answer", split, long, f"{remark}; raise that")


def _length(sides: Sequence[Lengths]) -> Lengths:
    """They are read together."""
    both: Lengths = np.sum(sides, axis=0) + BETWEEN
    return both


def _too_long(split: str) -> tuple[Severity, str]:
    return "note", "read in overlapping windows"


ANSWER = TaskData(
    roles=squad.ROLES,
    texts=("question", "context"),
    pick=_pick,
    fit=_fit,
    sections=_sections,
    pace=_pace,
    examine=_examine,
    too_long=_too_long,
    formats=frozenset({"squad"}),
    holds=lambda file: not is_coco(file),
    usable=_is_found,
    examine_tokens=_examine_tokens,
    length=_length,
    by_character=without_spaces,
    together=True,
    held_out="every 20th context is held out, with all its questions",
)
