"""Settings of a first recipe that several tasks share."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from regard.init.guess import Guess
from regard.init.plan import Plan, Script


class Setting(NamedTuple):
    """A setting that `init` decides; a recipe does not repeat what would be so anyway."""

    name: str
    value: object
    reason: str = ""
    """Reason of the decision; without one, the setting is explained by its own description."""


@dataclass(frozen=True)
class Pace:
    """Pace of a first training."""

    epochs: int
    warmup: int
    lr: float
    patience: int
    average: int
    optimizer: str = "adam"
    batch_tokens: int | None = None
    """Budget of a batch where the size of rows does not decide."""
    batch_reason: str = ""
    schedule: str = "inverse_sqrt"
    layer_decay: float = 1.0


def tokenizer(plan: Plan) -> list[Setting]:
    return [
        Setting("kind", "bpe"),
        Setting("vocab_size", plan.vocab_size, f"tokens at most, for {plan.guess.amount}"),
    ]


def without_spaces(guess: Guess, scripts: Mapping[str, Script]) -> bool:
    """True if words have no borders to be seen, by the text that parts of are marked or looked for in."""
    return list(scripts.values())[-1] in ("Chinese", "Japanese")


def bordered_tokenizer(plan: Plan) -> list[Setting]:
    """Tokenizer for texts whose parts are marked or looked for: no token may cross their borders.

    Between words that have no spaces, every character has to be one.
    """
    if not without_spaces(plan.guess, plan.scripts):
        return tokenizer(plan)
    script = list(plan.scripts.values())[-1]
    return [Setting("kind", "char", f"{script} has no spaces between words"), Setting("vocab_size", 8000)]


def encoder(d_hidden: int, dropout: float) -> list[Setting]:
    return [
        Setting("kind", "rnn", "to begin with a trained BERT instead: docs/finetune.md"),
        Setting("d_hidden", d_hidden),
        Setting("dropout", dropout),
    ]
