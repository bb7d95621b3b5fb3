"""The text of a recipe, section by section: a setting, its value, what it means."""

from collections.abc import Iterator, Mapping, Sequence

from rich.cells import cell_len

from regard.init.guess import Guess
from regard.init.plan import Plan
from regard.init.settings import Pace, Setting
from regard.init.toml import toml
from regard.tasks import TASKS

COMMENT_COLUMN = 32


def draft(plan: Plan, run: str) -> str:
    """The text of a recipe."""
    data = TASKS[plan.guess.task].data
    own = data.sections(plan)
    sections = {
        "": _run(run),
        **{name: settings for name, settings in own.items() if name.startswith(("task", "fields"))},
        "data": _data(plan.guess, data.held_out),
        **{name: settings for name, settings in own.items() if name.startswith("model")},
        "train": _train(plan, data.pace(plan)),
    }
    head = "# Written by `regard init`; every setting may be changed. Without a line, its default holds."
    return "\n".join([head, *_lines(sections), ""])


def _lines(sections: Mapping[str, Sequence[Setting]]) -> Iterator[str]:
    for name, settings in sections.items():
        if name:
            yield from ("", f"[{name}]")
        for key, value, comment in settings:
            setting = f"{key} = {toml(value)}"
            yield f"{setting}{' ' * max(2, COMMENT_COLUMN - cell_len(setting))}# {comment}"


def _run(run: str) -> list[Setting]:
    return [
        ("run", run, "the folder for everything about this run"),
        ("seed", 1, "same seed, same data, same machine: same model"),
    ]


def _data(guess: Guess, held_out: str) -> list[Setting]:
    columns = {role: column for role, column in guess.columns.items() if column is not None}
    return [
        (
            "train",
            list(guess.train),
            f"{guess.n_rows:,} {guess.counted}; paths start from the current folder",
        ),
        ("valid", list(guess.valid), "decides which checkpoint is kept")
        if guess.valid
        else ("# valid", [], f"none given: {held_out}"),
        ("test", list(guess.test), "scored once, at the end")
        if guess.test
        else ("# test", [], "scored at the end"),
        *([("columns", columns, "by name, or by number from 1")] if columns else []),
        ("encoding", guess.encoding, "of all files"),
    ]


def _train(plan: Plan, pace: Pace) -> list[Setting]:
    steps = plan.steps_an_epoch
    split = (
        [("accumulate", plan.accumulate, "parts of a batch, to fit the memory")]
        if plan.accumulate > 1
        else []
    )
    return [
        ("max_epochs", pace.epochs, "times through the data at most"),
        (
            "max_minutes",
            240 if plan.machine.gpu else 120,
            "stops here at the latest; the best so far is kept",
        ),
        ("patience", pace.patience, "validations without a better score before it stops"),
        ("eval_every", max(100, min(2000, steps)), f"steps between validations; an epoch is about {steps:,}"),
        ("batch_tokens", plan.batch_tokens, "pieces a batch: rows × longest side"),
        *split,
        ("optimizer", pace.optimizer, "adam, adamw or muon"),
        ("lr", float(f"{pace.lr:.1g}"), "the highest learning rate"),
        ("warmup", min(pace.warmup, max(1, pace.epochs * steps // 5)), "steps until it is reached"),
        ("schedule", "inverse_sqrt", "how it falls from there; or paper, cosine, linear, constant"),
        ("clip_norm", 1.0, "longest gradient"),
        ("average", pace.average, "also tries the average of the last checkpoints"),
        ("device", "auto", "the GPU if there is one; or cpu, cuda, mps"),
    ]
