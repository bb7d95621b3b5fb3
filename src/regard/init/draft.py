"""The first recipe for somebody's files: what was decided, each with the reason for it."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

from rich.cells import cell_len

from regard.config import Config
from regard.errors import RecipeError
from regard.files.row import text_of
from regard.init.beginning import Beginning
from regard.init.guess import Guess, Titles
from regard.init.plan import Plan, script
from regard.init.settings import Pace, Setting
from regard.init.toml import toml
from regard.recipe import Recipe
from regard.tasks import TASKS
from regard.training.machine import Machine

COMMENT_COLUMN = 32
HEAD = (
    "# Written by `regard init`: what your files and this machine decide; docs/recipe.md has every setting."
)

Sections = Mapping[str, Sequence[Setting]]


def plan(guess: Guess, machine: Machine) -> Plan:
    """Plan what the data and the machine decide."""
    data = TASKS[guess.task].data
    scripts = {role: script([text_of(row.cells[role]) for row in guess.sample]) for role in guess.lengths}
    by_character = bool(scripts) and data.by_character(guess, scripts)
    return Plan(guess, scripts, machine, by_character, data.together)


def from_scratch(plan: Plan) -> Recipe:
    """The recipe of a model that begins at random."""
    data = TASKS[plan.guess.task].data
    return _parsed(_sections(plan, "runs/run", data.sections(plan), data.pace(plan)))


def draft(plan: Plan, run: str, beginning: Beginning | None = None) -> str:
    """The text of a recipe, which has been read back once, so that nobody gets one that cannot be read."""
    data = TASKS[plan.guess.task].data
    proposed, pace = data.sections(plan), data.pace(plan)
    if beginning is not None:
        proposed, pace = beginning.sections(proposed), beginning.pace(plan)
    sections = _sections(plan, run, proposed, pace)
    recipe = _parsed(sections)
    if beginning is not None:
        beginning.refuse_unfit(recipe)
    sections = _decided(sections, recipe)
    text = "\n".join([HEAD, *_lines(sections, recipe, _missing(plan.guess, data.held_out, data.tested)), ""])
    assert Recipe.parse(tomllib.loads(text)) == recipe, "what was left out changed something"
    return text


def _sections(plan: Plan, run: str, proposed: Sections, pace: Pace) -> Sections:
    return {
        "": [Setting("run", run, "the folder for everything about this run")],
        **{name: settings for name, settings in proposed.items() if name.startswith("task")},
        **_fields(plan.guess),
        "data": _data(plan.guess),
        **{name: settings for name, settings in proposed.items() if name.startswith("model")},
        "train": _train(plan, pace),
    }


def _parsed(sections: Sections) -> Recipe:
    given: dict[str, Any] = {}
    for name, settings in sections.items():
        table = reduce(lambda outer, part: outer.setdefault(part, {}), filter(None, name.split(".")), given)
        table |= {setting.name: setting.value for setting in settings}
    return Recipe.parse(given, "the recipe drafted")


def _decided(sections: Sections, recipe: Recipe) -> Sections:
    """Drop the settings that have no reason and would be as they are anyway."""
    for name, settings in sections.items():
        for setting in settings:
            rest = {**sections, name: [one for one in sections[name] if one != setting]}
            if not setting.reason and setting.name != "kind" and _is(rest, recipe):
                sections = rest
    return {name: settings for name, settings in sections.items() if settings}


def _is(sections: Sections, recipe: Recipe) -> bool:
    """True if sections make this recipe; without one of its settings there may be none."""
    try:
        return _parsed(sections) == recipe
    except RecipeError:
        return False


def _lines(sections: Sections, recipe: Recipe, missing: Mapping[str, str]) -> Iterator[str]:
    for name, settings in sections.items():
        if name:
            yield from ("", f"[{name}]")
        for setting in settings:
            line = f"{setting.name} = {toml(setting.value)}"
            comment = setting.reason or _description(recipe, name, setting.name)
            yield f"{line}{' ' * max(2, COMMENT_COLUMN - cell_len(line))}# {comment}" if comment else line
        if name == "data":
            yield from (f"# no {split} data: {remark}" for split, remark in missing.items())


def _description(recipe: Recipe, section: str, name: str) -> str:
    """Description of a setting by its own class."""
    owner: Any = recipe
    for part in filter(None, section.split(".")):
        owner = _part(recipe.task if part == "fields" else owner, part)
    return (type(owner).model_fields[name].description or "") if isinstance(owner, Config) else ""


def _part(owner: Any, name: str) -> Any:
    return owner[name] if isinstance(owner, Mapping) else getattr(owner, name)


def _fields(guess: Guess) -> Sections:
    """A table for every input that is no text."""
    return {
        f"fields.{role}": [
            *([Setting("kind", kind)] if kind != role or not guess.suggestions[role].settings else []),
            *(
                Setting(name, value, guess.suggestions[role].reasons.get(name, ""))
                for name, value in guess.suggestions[role].settings.items()
            ),
        ]
        for role, kind in guess.kinds.items()
    }


def _data(guess: Guess) -> list[Setting]:
    columns = {role: column for role, column in guess.columns.items() if column is not None}
    return [
        Setting("train", list(guess.train), f"{guess.amount}; paths start from the current folder"),
        *([Setting("valid", list(guess.valid), "decides which checkpoint is kept")] if guess.valid else []),
        *([Setting("test", list(guess.test), "scored once, at the end")] if guess.test else []),
        *([Setting("columns", columns, "by name, or by number from 1")] if columns else []),
        *(_titles(guess.titles) if guess.titles else []),
        Setting("encoding", guess.encoding),
    ]


def _titles(titles: Titles) -> list[Setting]:
    columns = [Setting("title_columns", dict(titles.columns))] if titles.columns else []
    return [Setting("titles", titles.file, "what items are called"), *columns]


def _missing(guess: Guess, held_out: str, tested: str) -> dict[str, str]:
    missing = {"valid": held_out, "test": tested}
    return {split: remark for split, remark in missing.items() if not getattr(guess, split)}


def _train(plan: Plan, pace: Pace) -> list[Setting]:
    steps = plan.steps_an_epoch
    tokens = f"about {max(1, round(plan.tokens_a_row)):,} a row; at most what leaves fifty steps an epoch"
    minutes = 240 if plan.machine.gpu else 120
    every = Setting("eval_every", max(100, min(2000, steps)), f"steps; an epoch is about {steps:,}")
    return [
        Setting("max_epochs", pace.epochs, f"for {plan.guess.amount}"),
        Setting("max_minutes", minutes, f"with {'a GPU' if plan.machine.gpu else 'no GPU'}"),
        Setting("patience", pace.patience),
        *([] if pace.batch_tokens else [every]),
        Setting("batch_tokens", pace.batch_tokens or plan.batch_tokens, pace.batch_reason or tokens),
        Setting("accumulate", plan.accumulate),
        Setting("optimizer", pace.optimizer),
        Setting("lr", float(f"{pace.lr:.1g}")),
        Setting("schedule", pace.schedule),
        Setting("layer_decay", pace.layer_decay),
        Setting("warmup", min(pace.warmup, max(1, pace.epochs * steps // 5))),
        Setting("average", pace.average),
    ]
