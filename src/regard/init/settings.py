"""Settings of a first recipe that several kinds of task share."""

from collections.abc import Mapping
from dataclasses import dataclass

from regard.init.guess import Guess
from regard.init.plan import Plan, Script

Setting = tuple[str, object, str]
"""A name, its value, what it means."""


@dataclass(frozen=True)
class Pace:
    """How a first training goes."""

    epochs: int
    warmup: int
    lr: float
    patience: int
    average: int
    optimizer: str = "adam"


def tokenizer(plan: Plan) -> list[Setting]:
    return [
        ("kind", "bpe", "pieces learnt from your text; or unigram, wordpiece, char, word"),
        ("vocab_size", plan.vocab_size, "pieces at most"),
        ("lowercase", False, "true makes A and a the same"),
        ("min_frequency", 2, "what occurs less often is spelt in smaller pieces"),
    ]


def without_spaces(guess: Guess, scripts: Mapping[str, Script]) -> bool:
    """Whether words have no borders to be seen, by the text that parts of are marked or looked for in."""
    return list(scripts.values())[-1] in ("Chinese", "Japanese")


def bordered_tokenizer(plan: Plan) -> list[Setting]:
    """Where parts of a text are marked or looked for, no piece may cross their borders.

    Between words that have no spaces, every character has to be one.
    """
    if not without_spaces(plan.guess, plan.scripts):
        return tokenizer(plan)
    return [
        ("kind", "char", "every character; or bpe, unigram, wordpiece, word"),
        ("vocab_size", 8000, "pieces at most"),
        ("min_frequency", 2, "what occurs less often is unknown"),
    ]


def encoder(d_hidden: int, dropout: float, others: str = "transformer, words") -> list[Setting]:
    return [
        ("kind", "rnn", f"or {others}; to begin with a trained BERT instead: docs/finetune.md"),
        ("cell", "lstm", "or gru, rnn"),
        ("d_embed", 128, "width of a piece"),
        ("d_hidden", d_hidden, "width of a state, both directions together"),
        ("n_layers", 1, "stacked"),
        ("dropout", dropout, "more for less data"),
    ]
