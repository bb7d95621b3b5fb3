"""language_model: a text file, or a column of texts with nothing beside it, to be continued."""

from collections.abc import Mapping
from typing import Any

from regard.check.finding import Finding
from regard.check.rows import Splits, duplicated, empty, shared
from regard.files.columns import Column
from regard.files.formats import file_format
from regard.init.columns import Picked, Table, longest_text, texts
from regard.init.guess import Guess
from regard.init.match import NOT, Fit
from regard.init.plan import Plan, Script
from regard.init.settings import Pace, Setting, tokenizer
from regard.tasks.task_data import TaskData

FEW_CHARACTERS = 5_000_000
"""Below which longer tokens than characters are too rare to learn from."""
SIZES = {
    "tiny": "4 layers, width 128, 4 heads",
    "mini": "6 layers, width 256, 8 heads",
    "small": "6 layers, width 384, 6 heads",
    "base": "GPT-2's: 12 layers, width 768, 12 heads",
}


def _pick(role: str, rest: Table) -> Picked:
    return longest_text(rest.texts)


def _fit(table: Table, roles: Mapping[str, Column | None]) -> Fit:
    return (0.3, "text with nothing beside it") if [*table.cells] == texts(table.texts) else NOT


def _is_small(guess: Guess, scripts: Mapping[str, Script]) -> bool:
    return guess.n_characters < FEW_CHARACTERS


def _sections(plan: Plan) -> Mapping[str, list[Setting]]:
    plain = file_format(plan.guess.train[0]) == "text"
    means = "a document is all of a file" if plain else "a document is a row of the table"
    return {
        "task": [
            Setting("kind", "language_model", plan.guess.reason),
            Setting("documents", "files" if plain else "lines", means),
            Setting("max_length", 128 if plan.by_character else 256),
        ],
        "task.tokenizer": _characters(plan) if plan.by_character else tokenizer(plan),
        "model": _model(plan),
    }


def _characters(plan: Plan) -> list[Setting]:
    return [
        Setting("kind", "char", f"{plan.guess.n_characters:,} characters: longer tokens would be too rare"),
    ]


def _preset(plan: Plan) -> str:
    n = plan.guess.n_characters
    if n < FEW_CHARACTERS:
        return "tiny"
    if n < 10 * FEW_CHARACTERS or not plan.machine.gpu:
        return "mini"
    return "small" if n < 100 * FEW_CHARACTERS else "base"


def _model(plan: Plan) -> list[Setting]:
    preset = _preset(plan)
    return [
        Setting("kind", "gpt"),
        Setting("preset", preset, f"{SIZES[preset]}, for {plan.guess.n_characters:,} characters"),
        Setting("position", "rotary", "relative, and without a last position"),
    ]


def _pace(plan: Plan) -> Pace:
    epochs = max(3, min(50, round(20_000_000 / max(1, plan.guess.n_characters))))
    return Pace(epochs=epochs, warmup=100, lr=1e-3, patience=5, average=1)


def _examine(splits: Splits, config: Any) -> list[Finding]:
    """Findings of documents; the parts of one long text have no ends to speak of."""
    if config.documents == "files":
        return []
    return [*empty(splits, ["text"]), *duplicated(splits["train"]), *shared(splits, "text")]


LANGUAGE_MODEL = TaskData(
    roles=("text",),
    texts=("text",),
    pick=_pick,
    fit=_fit,
    sections=_sections,
    pace=_pace,
    examine=_examine,
    too_long=None,
    held_out="the last tenth of the text, or every 20th row of a table, is held out",
    by_character=_is_small,
)
