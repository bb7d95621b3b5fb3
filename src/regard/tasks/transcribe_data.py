"""transcribe: a column of recordings, and one of what is said in them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from regard.check.finding import Finding, about
from regard.check.rows import Splits, empty
from regard.fields.audio import Audio
from regard.fields.text import Text
from regard.files.columns import Column
from regard.files.row import Row
from regard.init.columns import Picked, Table, longest_text
from regard.init.match import NOT, Fit, Given, Match, Missing, find_roles
from regard.init.plan import Plan
from regard.init.settings import Pace, Setting
from regard.tasks.task_data import TaskData

SURE = 0.5
"""The share of cells that end like files of sound, from which a column holds recordings."""
FEW_WORDS, OFTEN = 200, 20
"""Different words at most that are units by themselves; times that each is said on average at least."""
LEARNT = 60_000
"""Recordings that a first training hears, the same ones many times."""
BATCH = 2048
"""States of 40 ms."""


@dataclass(frozen=True)
class SpeechData(TaskData):
    @property
    def possible_roles(self) -> frozenset[str]:
        return frozenset(self.roles)

    def recognise(self, table: Table, given: Given) -> Match | Missing:
        found = find_roles(table, self.roles, self.texts, self.may_lack, self.pick, given)
        if isinstance(found, Missing):
            return found
        return found.match(self.fit(table, found.roles), {"audio": "audio"})


def _pick(role: str, rest: Table) -> Picked:
    if role == "text":
        return longest_text(rest.without(_sounds(rest)).texts)
    found = _sounds(rest)
    return (found[0], "its cells are files of sound") if role == "audio" and found else (None, "")


def _sounds(table: Table) -> list[Column]:
    return [column for column, cells in table.cells.items() if Audio.resembles(cells) > SURE]


def _fit(table: Table, roles: Mapping[str, Column | None]) -> Fit:
    audio, text = (table.cells.get(roles[role] or 0, ()) for role in ("audio", "text"))
    if not (audio and text and Audio.resembles(audio) > SURE and all(isinstance(one, str) for one in text)):
        return NOT
    return 0.9, "recordings with what is said in them"


def _sections(plan: Plan) -> Mapping[str, list[Setting]]:
    return {
        "task": [Setting("kind", "transcribe", plan.guess.reason)],
        "task.tokenizer": _units(plan),
        "model": [Setting("kind", "transducer", "ctc learns faster and is less exact as a rule")],
        "model.encoder": [
            Setting("kind", "speech"),
            Setting("chunk", 8, "320 ms are heard at once where it is streamed"),
        ],
    }


def _units(plan: Plan) -> list[Setting]:
    texts = [str(row.cells["text"]).lower() for row in plan.guess.sample]
    words = [word for text in texts for word in text.split()]
    n_words = len(set(words))
    if n_words <= FEW_WORDS and len(words) >= OFTEN * n_words:
        return [
            Setting("kind", "word", f"only {n_words} different words are said"),
            Setting("lowercase", True),
        ]
    if plan.scripts["text"] == "Latin" and plan.guess.n_rows >= 20_000:
        return [
            Setting("kind", "bpe", f"tokens, for {plan.guess.amount}"),
            Setting("vocab_size", 1000),
            Setting("lowercase", True),
        ]
    return [Setting("kind", "char", f"characters, for {plan.guess.amount}"), Setting("lowercase", True)]


def _pace(plan: Plan) -> Pace:
    return Pace(
        epochs=max(10, min(100, round(LEARNT / plan.guess.n_rows))),
        warmup=300,
        lr=2e-3,
        patience=10,
        average=5,
        batch_tokens=BATCH,
        batch_reason=f"states of 40 ms: {BATCH * 0.04:.0f} s of sound",
    )


def _examine(splits: Splits, config: Any) -> list[Finding]:
    return [*empty(splits, ["text"]), *_too_fast(splits), *_unlike(splits)]


def _too_fast(splits: Splits) -> list[Finding]:
    """Transcripts that nobody can have spoken in so short a time, where rows say how long they last."""
    found = []
    for split, rows in splits.items():
        fast = [row for row in rows if _is_too_fast(row)]
        remark = "whose transcript is far too long for its recording: does it belong to it?"
        found += about("warning", "too-fast", split, fast, remark)
    return found


FASTEST = 40
"""Characters of a second in which nobody speaks."""


def _is_too_fast(row: Row) -> bool:
    cell = row.cells["audio"]
    if not isinstance(cell, Mapping) or cell.get("end") is None:
        return False
    seconds = float(cell["end"]) - float(cell.get("start", 0.0))
    return len(row.cells["text"]) > FASTEST * max(0.1, seconds)


def _unlike(splits: Splits) -> list[Finding]:
    """Characters of validation and test data that are never learnt."""
    known = set("".join(row.cells["text"] for row in splits.get("train", ())).lower())
    found = []
    for split, rows in splits.items():
        strange = [row for row in rows if set(row.cells["text"].lower()) - known]
        letters = sorted({one for row in strange for one in set(row.cells["text"].lower()) - known})
        remark = f"with characters that training data have not ({' '.join(letters[:20])})"
        found += about("warning", "unseen-characters", split, strange, remark) if split != "train" else []
    return found


def _text_of(task: Any, role: str, rows: Sequence[Row]) -> list[list[int]]:
    field: Text = task.text
    return field.tokenizer.ids([row.cells["text"] for row in rows])


TRANSCRIBE = SpeechData(
    roles=("audio", "text", "words"),
    texts=("text",),
    may_lack=frozenset({"words"}),
    pick=_pick,
    fit=_fit,
    sections=_sections,
    pace=_pace,
    examine=_examine,
    too_long=None,
    tokens=_text_of,
)
