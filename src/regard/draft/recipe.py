"""The text of a recipe, section by section: a setting, its value, what it means."""

import math
from collections.abc import Iterator, Mapping, Sequence

from rich.cells import cell_len

from regard.data.sniff import Guess
from regard.draft.plan import PIECE, Plan, Script
from regard.draft.toml import toml

Setting = tuple[str, object, str]

COMMENT_COLUMN = 32
BLEU: dict[Script, str] = {
    "Chinese": "zh",
    "Japanese": "char",
    "Korean": "char",
    "Latin": "13a",
    "other": "13a",
}


def draft(plan: Plan, run: str, encoding: str = "utf-8") -> str:
    """The text of a recipe."""
    translate = plan.guess.task == "translate"
    sections = {
        "": _run(run),
        "task": _translate(plan) if translate else _classify(plan),
        "task.tokenizer": _tokenizer(plan),
        "task.decode": _decode() if translate else [],
        "data": _data(plan.guess, encoding),
        "model": _transformer(plan) if translate else _classifier(),
        "model.encoder": [] if translate else _encoder(),
        "train": _train(plan),
    }
    head = "# Written by `regard init`; every setting may be changed. Without a line, its default holds."
    return "\n".join([head, *_lines({name: settings for name, settings in sections.items() if settings}), ""])


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


def _translate(plan: Plan) -> list[Setting]:
    source, target = plan.scripts["source"], plan.scripts["target"]
    joint = source == target
    why = (
        "both sides share one vocabulary: same script" if joint else "a vocabulary a side: different scripts"
    )
    longest = max(plan.guess.lengths[role][1] / PIECE[script] for role, script in plan.scripts.items())
    return [
        ("kind", "translate", "a text in, a text out"),
        ("joint", joint, why),
        (
            "max_length",
            max(128, 2 ** math.ceil(math.log2(3 * longest + 1))),
            "pieces; longer pairs are left out",
        ),
        ("label_smoothing", 0.1, "keeps the model from being too sure"),
        ("bleu_tokenize", BLEU[target], f"how sacrebleu cuts {target} text; none if it is cut already"),
    ]


def _classify(plan: Plan) -> list[Setting]:
    longest = plan.guess.lengths["text"][1] / PIECE[plan.scripts["text"]]
    return [
        ("kind", "classify", "one label per text"),
        ("max_length", max(128, 2 ** math.ceil(math.log2(2 * longest + 1))), "pieces; longer texts are cut"),
        ("label_smoothing", 0.0, "above 0 keeps the model from being too sure"),
    ]


def _tokenizer(plan: Plan) -> list[Setting]:
    return [
        ("kind", "bpe", "pieces learnt from your text; or unigram, wordpiece, char, word"),
        ("vocab_size", plan.vocab_size, "pieces at most"),
        ("lowercase", False, "true makes A and a the same"),
        ("min_frequency", 2, "what occurs less often is spelt in smaller pieces"),
    ]


def _decode() -> list[Setting]:
    return [
        ("beam", 4, "hypotheses kept while searching; 1 is fastest"),
        ("length_penalty", 1.0, "higher gives longer translations"),
    ]


def _data(guess: Guess, encoding: str) -> list[Setting]:
    columns = {role: column for role, column in guess.columns.items() if column is not None}
    held_out = "none given: every 20th training row is held out"
    return [
        ("train", list(guess.train), f"{guess.n_rows:,} rows; paths start from the current folder"),
        ("valid", list(guess.valid), "decides which checkpoint is kept")
        if guess.valid
        else ("# valid", [], held_out),
        ("test", list(guess.test), "scored once, at the end")
        if guess.test
        else ("# test", [], "scored at the end"),
        *([("columns", columns, "by name, or by number from 1")] if columns else []),
        ("encoding", encoding, "of all files"),
    ]


def _transformer(plan: Plan) -> list[Setting]:
    sizes = {
        "tiny": "4+4 layers, width 128, 4 heads",
        "small": "3+3 layers, width 256, 4 heads",
        "base": "6+6 layers, width 512, 8 heads",
    }[plan.preset]
    return [
        ("kind", "transformer", "or rnn_seq2seq"),
        ("preset", plan.preset, f"{sizes}; also: tiny, small, base, big"),
        (
            "dropout",
            0.1 if plan.guess.n_rows >= 1_000_000 else 0.3 if plan.preset == "tiny" else 0.2,
            "more for less data",
        ),
        ("norm", "pre", "learns faster and more safely; post is the paper's"),
        ("position", "sinusoidal", "or learned, rotary, relative, alibi"),
    ]


def _classifier() -> list[Setting]:
    return [
        ("kind", "classifier", "an encoder, pooled to one vector"),
        ("pooling", "attention", "its weights can be looked at; or mean, first"),
        ("dropout", 0.3, "more for less data"),
    ]


def _encoder() -> list[Setting]:
    return [
        ("kind", "rnn", "or transformer, words"),
        ("cell", "lstm", "or gru, rnn"),
        ("d_embed", 128, "width of a piece"),
        ("d_hidden", 128, "width of a state, both directions together"),
        ("n_layers", 1, "stacked"),
        ("dropout", 0.3, "more for less data"),
    ]


def _train(plan: Plan) -> list[Setting]:
    translate = plan.guess.task == "translate"
    epochs = max(10, min(200, round(2_000_000 / plan.guess.n_rows))) if translate else 20
    steps = plan.steps_an_epoch
    warmup = max(100, min(2000, 3 * steps)) if translate else 100
    width = {"tiny": 128, "small": 256, "base": 512}[plan.preset]
    lr = min(3e-3, (width * warmup) ** -0.5) if translate else 1e-3
    split = (
        [("accumulate", plan.accumulate, "parts of a batch, to fit the memory")]
        if plan.accumulate > 1
        else []
    )
    return [
        ("max_epochs", epochs, "times through the data at most"),
        (
            "max_minutes",
            240 if plan.machine.gpu else 120,
            "stops here at the latest; the best so far is kept",
        ),
        ("patience", 10 if translate else 5, "validations without a better score before it stops"),
        ("eval_every", max(100, min(2000, steps)), f"steps between validations; an epoch is about {steps:,}"),
        ("batch_tokens", plan.batch_tokens, "pieces a batch: rows × longest side"),
        *split,
        ("optimizer", "adam", "or adamw, muon"),
        ("lr", float(f"{lr:.1g}"), "the highest learning rate"),
        ("warmup", warmup, "steps until it is reached"),
        ("schedule", "inverse_sqrt", "how it falls from there; or paper, cosine, linear, constant"),
        ("clip_norm", 1.0, "longest gradient"),
        ("average", 5 if translate else 1, "also tries the average of the last checkpoints"),
        ("device", "auto", "the GPU if there is one; or cpu, cuda, mps"),
    ]
