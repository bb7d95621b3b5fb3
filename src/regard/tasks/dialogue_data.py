"""dialogue: conversations, each a list of turns; or contexts with their replies."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import Field

from regard.check.finding import Finding, Severity
from regard.check.rows import Splits, absurdly_long, duplicated, empty, shared
from regard.fields.turns import Turns
from regard.files.row import Row
from regard.init.columns import Columns, Picked, longest_text
from regard.init.plan import Plan
from regard.init.seq2seq import BLEU, max_length, pace, transformer
from regard.init.settings import Setting, tokenizer
from regard.tasks.prediction import Written
from regard.tasks.task_data import TaskData

TURNS = Turns()
READ = 3
"""Last turns of a context that a first recipe reads."""
LONGEST = 128
"""Pieces of a context that a first recipe reads."""


class Reply(Written):
    others: list["Reply"] = Field([], description="the rest of the n best")


def _looks_like(columns: Columns) -> bool:
    """By the mark between turns."""
    return any(values and all(TURNS.separator in value for value in values) for values in columns.values())


def _pick(role: str, rest: Columns) -> Picked:
    return longest_text(rest)


def _sections(plan: Plan) -> Mapping[str, list[Setting]]:
    script = plan.scripts["reply"]
    return {
        "task": [
            ("kind", "dialogue", "the turns of a conversation in, the next one out"),
            ("turns", READ, "last turns that are read"),
            ("max_length", min(LONGEST, max_length(plan, spare=1)), "pieces; of more the end is read"),
            ("separator", TURNS.separator, "between turns, where they are not a list"),
            ("label_smoothing", 0.1, "keeps the model from being too sure"),
            ("bleu_tokenize", BLEU[script], f"how sacrebleu cuts {script} text"),
        ],
        "task.tokenizer": tokenizer(plan),
        "task.decode": [
            ("sample", True, "draws; the likeliest reply, which a beam finds, says little"),
            ("temperature", 0.8, "below 1 makes the likely likelier"),
            ("top_p", 0.9, "only from the likeliest pieces that together are this likely"),
            ("max_length", 60, "pieces of a reply at most"),
            ("no_repeat", 3, "no three pieces come twice"),
        ],
        "model": transformer(plan, "rnn_seq2seq, gpt"),
    }


def _read(role: str, text: str) -> str:
    return "\n".join(text.split("\n")[-READ:]) if role == "context" else text


def _examine(splits: Splits, config: Any) -> list[Finding]:
    splits = {split: [_said(row) for row in rows] for split, rows in splits.items()}
    return [
        *empty(splits, ["context", "reply"]),
        *absurdly_long(splits, ["context", "reply"]),
        *duplicated(splits["train"]),
        *shared(splits, "context"),
    ]


def _said(row: Row) -> Row:
    """Without the other replies that fit, which stand in rows of their own."""
    return replace(row, cells={role: row.cells[role] for role in ("context", "reply")})


def _too_long(split: str) -> tuple[Severity, str]:
    fate = "of contexts the end is read"
    return "warning", f"{fate}, replies are left out" if split == "train" else fate


def _pieces(task: Any, role: str, rows: Sequence[Row]) -> list[list[int]]:
    """Of a context, the turns that are read."""
    if role == "context":
        return [ids[:-1] for ids in task.read(rows)]
    replies: list[list[int]] = task.target.ids([row.cells[role] for row in rows])
    return replies


DIALOGUE = TaskData(
    roles=("context", "reply"),
    texts=("context", "reply"),
    looks_like=_looks_like,
    pick=_pick,
    example="--task dialogue --context COLUMN",
    sections=_sections,
    pace=pace,
    examine=_examine,
    too_long=_too_long,
    may_lack=frozenset({"reply"}),
    read=_read,
    pieces=_pieces,
    held_out="every 20th context in training is held out, with its replies",
)
