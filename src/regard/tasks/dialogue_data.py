"""dialogue: conversations, each a list of turns; or contexts with their replies."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from regard.check.finding import Finding, Severity
from regard.check.rows import Splits, absurdly_long, duplicated, empty, shared
from regard.fields.turns import Turns
from regard.files.columns import Column
from regard.files.row import Row
from regard.init.columns import Picked, Table, longest_text
from regard.init.match import NOT, Fit
from regard.init.plan import Plan
from regard.init.seq2seq import bleu, limit, max_length, pace, transformer
from regard.init.settings import Setting, tokenizer
from regard.tasks.task_data import TaskData, whole_texts

TURNS = Turns()
READ = 3
"""Last turns of a context that a first recipe reads."""
LONGEST = 128
"""Tokens of a context that a first recipe reads."""


def _pick(role: str, rest: Table) -> Picked:
    return longest_text(rest.texts)


def _fit(table: Table, roles: Mapping[str, Column | None]) -> Fit:
    """Recognises conversations by the mark between turns, or by lists of turns."""
    context = table.cells.get(roles["context"] or 0, ())
    marks = (TURNS.separator, "\n")
    if context and all(isinstance(cell, list) or any(mark in cell for mark in marks) for cell in context):
        return 0.8, "conversations of several turns"
    return (0.3, "contexts beside their replies") if roles["reply"] else NOT


def _sections(plan: Plan) -> Mapping[str, list[Setting]]:
    return {
        "task": [
            Setting("kind", "dialogue", plan.guess.reason),
            Setting("turns", READ),
            limit(plan, min(LONGEST, max_length(plan, spare=1))),
            bleu(plan.scripts["reply"]),
        ],
        "task.tokenizer": tokenizer(plan),
        "task.decode": [
            Setting("sample", True, "the likeliest reply, which a beam finds, says little"),
            Setting("temperature", 0.8),
            Setting("top_p", 0.9),
            Setting("no_repeat", 3),
        ],
        "model": transformer(plan),
    }


def _read(role: str, text: str) -> str:
    return "\n".join(text.split("\n")[-READ:]) if role == "context" else text


def _examine(splits: Splits, config: Any) -> list[Finding]:
    splits = {split: [_one_reply(row) for row in rows] for split, rows in splits.items()}
    return [
        *empty(splits, ["context", "reply"]),
        *absurdly_long(splits, ["context", "reply"]),
        *duplicated(splits["train"]),
        *shared(splits, "context"),
    ]


def _one_reply(row: Row) -> Row:
    """The row without the other right replies, which stand in rows of their own."""
    return replace(row, cells={role: row.cells[role] for role in ("context", "reply")})


def _too_long(split: str) -> tuple[Severity, str]:
    fate = "of contexts the end is read"
    return "warning", f"{fate}, replies are left out" if split == "train" else fate


def _tokens(task: Any, role: str, rows: Sequence[Row]) -> list[list[int]]:
    """Token ids of replies, and of those turns of a context that are read."""
    if role == "context":
        parts = task.source.encode([task.value(row) for row in rows])
        return [task.input.framed(part.arrays)[:-1] for part in parts]
    return whole_texts(task, role, rows)


DIALOGUE = TaskData(
    roles=("context", "reply"),
    texts=("context", "reply"),
    pick=_pick,
    fit=_fit,
    sections=_sections,
    pace=pace,
    examine=_examine,
    too_long=_too_long,
    may_lack=frozenset({"reply"}),
    read=_read,
    tokens=_tokens,
    held_out="every 20th context in training is held out, with its replies",
)
