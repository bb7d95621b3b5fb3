"""A first recipe that begins with a trained model: `regard init FILES --from FOLDER`, or `--from auto`.

Sizes and vocabulary are then the folder's, and training takes smaller and fewer steps.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from regard.errors import RegardError, RunError
from regard.init.plan import Plan
from regard.init.settings import Pace, Setting
from regard.interop.pretrained import load_pretrained, resolve
from regard.models import EncodingConfig, GPTConfig
from regard.models.meta import max_positions
from regard.recipe import Recipe
from regard.runs.store import read_json

PLACES = "REGARD_MODELS"
"""The environment variable with folders of trained models, or folders that hold several."""
USUAL = "models"
MOST_LOOKED_AT = 1_000
MEASURED = "on sst2, 88.9 % of test sentences were right beginning with MiniLM, 80.8 % from scratch"
WIDE = 512
"""States of an encoder from which it takes still smaller steps."""
AROUND = 4
"""Positions for the marks that tasks put around and between texts."""
DROPPED = {"preset", "position", "embeddings", "dropout"}
"""Settings of a model that are the folder's, or other ones where it begins."""
REPLACED = {"task.tokenizer", "model.encoder", "model.ngrams"}
"""Tables that the folder makes needless."""

Sections = Mapping[str, Sequence[Setting]]


def can_begin(recipe: Recipe) -> bool:
    """True if the recipe's model may begin with a trained one: of texts, with an encoder or a GPT."""
    reads = {field.reads for field in recipe.task.asked.values()} - {"", "tokens"}
    return isinstance(recipe.model, EncodingConfig | GPTConfig) and not reads


def nearby(recipe: Recipe) -> list[str]:
    """Folders of trained models that the recipe's model can begin with."""
    wanted = "gpt2" if isinstance(recipe.model, GPTConfig) else "bert"
    found = (folder for folder in _folders() if _kind(folder) == wanted)
    return list(dict.fromkeys(str(folder) for folder in found)) if can_begin(recipe) else []


def _folders() -> Iterator[Path]:
    """Folders with a config.json in the places where models are looked for, a few levels of them."""
    for place in filter(None, [*os.environ.get(PLACES, "").split(os.pathsep), USUAL]):
        yield Path(place)
        with suppress(OSError):
            yield from sorted(Path(place).iterdir())[:MOST_LOOKED_AT]


def _kind(folder: Path) -> str:
    """`bert` or `gpt2`; nothing where no such model is."""
    config = folder / "config.json"
    if not config.is_file():
        return ""
    try:
        content = read_json(config)
    except RegardError:
        return ""
    kind = content.get("model_type", "bert" if "encoder" in content else "")
    return kind if isinstance(kind, str) else ""


def chosen(recipe: Recipe, folder: str) -> str:
    """The folder to begin with; `auto` is the only one that is near. RunError where it cannot be."""
    if not can_begin(recipe):
        raise RunError(
            f"--from {folder}: a {recipe.model.kind} of the task {recipe.task.kind} cannot begin with a "
            "trained model; leave --from out"
        )
    if folder != "auto":
        return folder
    found = nearby(recipe)
    if not found:
        raise RunError(
            f"--from auto: no trained model that fits is in {USUAL}/ or in the folders that {PLACES} names; "
            "give its folder: --from FOLDER"
        )
    if len(found) > 1:
        raise RunError(f"--from auto: {found[0]} and {found[1]} both fit; give one: --from {found[0]}")
    return found[0]


class Beginning:
    """A trained model in a folder, and what a recipe that begins with it says."""

    def __init__(self, recipe: Recipe, folder: str) -> None:
        """Read the folder; RegardError if the recipe's model cannot begin with what it holds."""
        self.folder = chosen(recipe, folder)
        model = recipe.model.model_copy(update={"init_from": self.folder})
        pretrained = load_pretrained(recipe.model_copy(update={"model": model}))
        assert pretrained is not None
        self.pretrained = pretrained
        self.is_decoder = isinstance(recipe.model, GPTConfig)
        self.settings = frozenset(type(recipe.model).model_fields)
        self.longest = recipe.task.max_length

    @property
    def room(self) -> int | None:
        """Tokens that the model reads at once, less what tasks put around them; None if any number."""
        positions = max_positions(self.pretrained.config)
        limits = [getattr(self.pretrained, "max_length", None), positions and positions - AROUND]
        return min((max(4, limit) for limit in limits if limit is not None), default=None)

    def sections(self, sections: Sections) -> dict[str, Sequence[Setting]]:
        """Sections of a recipe from scratch, changed to begin with the model."""
        kept = {name: settings for name, settings in sections.items() if name not in REPLACED}
        kept["task"] = [*sections["task"]]
        if self.room is not None and self.longest > self.room:
            short = Setting("max_length", self.room, "as many tokens as the trained model reads at once")
            kept["task"] = [one for one in sections["task"] if one.name != "max_length"] + [short]
        model = [setting for setting in sections["model"] if setting.name not in DROPPED]
        changes = [
            Setting("init_from", self.folder, "a trained model, whose sizes and vocabulary are used"),
            Setting("freeze", 0, "the embeddings stay as they are"),
            Setting("dropout", 0.1),
        ]
        kept["model"] = [*model, *(setting for setting in changes if setting.name in self.settings)]
        return kept

    def pace(self, plan: Plan) -> Pace:
        """Few epochs, and small steps that shrink."""
        rows, config = plan.guess.n_rows, self.pretrained.config
        is_wide = isinstance(config, GPTConfig) or config.d_out > WIDE
        return Pace(
            epochs=3 if rows >= 20_000 else 5 if rows >= 2_000 else 10,
            warmup=60,
            lr=5e-5 if is_wide else 2e-4,
            patience=3,
            average=1,
            optimizer="adamw",
            batch_tokens=2048 if self.is_decoder else 1024,
            batch_reason="small batches suit a trained model",
            schedule="linear",
            layer_decay=1.0 if self.is_decoder else 0.9,
        )

    def refuse_unfit(self, recipe: Recipe) -> None:
        """Raise RecipeError if training would refuse the recipe."""
        resolve(recipe, self.pretrained)
