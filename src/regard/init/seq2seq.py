"""First recipes of tasks whose model reads a text and writes another: sizes, pace, the answer."""

import math

from regard.init.plan import CHARACTERS_OF_A_TOKEN, Plan, Script
from regard.init.settings import Pace, Setting

SIZES = {
    "tiny": (128, "4+4 layers, width 128, 4 heads"),
    "small": (256, "3+3 layers, width 256, 4 heads"),
    "base": (512, "6+6 layers, width 512, 8 heads"),
}

BLEU: dict[Script, str] = {
    "Chinese": "zh",
    "Japanese": "char",
    "Korean": "char",
    "Latin": "13a",
    "other": "13a",
}
"""Tokenization of sacrebleu for each script."""


def max_length(plan: Plan, spare: int) -> int:
    """A power of two, several times what nearly all texts have."""
    longest = max(
        plan.guess.lengths[role][1] / CHARACTERS_OF_A_TOKEN[script] for role, script in plan.scripts.items()
    )
    return max(128, 1 << math.ceil(math.log2(spare * longest + 1)))


def limit(plan: Plan, tokens: int) -> Setting:
    """The setting that bounds a side."""
    role = max(plan.scripts, key=lambda role: plan.guess.lengths[role][1])
    tail = plan.guess.lengths[role][1]
    return Setting("max_length", tokens, f"95 % of the {role} cells have at most {tail:,} characters")


def bleu(script: Script) -> Setting:
    return Setting("bleu_tokenize", BLEU[script], f"how sacrebleu splits {script} text into words")


def transformer(plan: Plan) -> list[Setting]:
    dropout = 0.1 if plan.guess.n_rows >= 1_000_000 else 0.3 if plan.preset == "tiny" else 0.2
    amount = plan.guess.amount
    return [
        Setting("kind", "transformer"),
        Setting("preset", plan.preset, f"{SIZES[plan.preset][1]}, for {amount}"),
        Setting("dropout", dropout, f"for {amount}"),
        Setting("norm", "pre", "learns faster and more safely than the paper's post"),
    ]


def pace(plan: Plan) -> Pace:
    warmup = max(100, min(2000, 3 * plan.steps_an_epoch))
    return Pace(
        epochs=max(10, min(200, round(2_000_000 / plan.guess.n_rows))),
        warmup=warmup,
        lr=min(3e-3, (SIZES[plan.preset][0] * warmup) ** -0.5),
        patience=10,
        average=5,
    )
