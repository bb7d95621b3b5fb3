"""Does it learn? Small tasks, whole way: files → regard.train → scores. Another seed at every run.

The thresholds lie far below what is usual and far above what a model with a broken part reaches.
"""

import random
import time
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.api.trained import Trained
from regard.errors import RecipeError
from tiny import PLANTED, mirrored, named, planted

SEED = time.time_ns() // 1_000_000 % 100_000
"""Printed by pytest when a test fails; write it here to see the failure again."""


def learnt(folder: Path, task: dict[str, Any], model: dict[str, Any], n_lines: int, **train: Any) -> Trained:
    print(f"seed = {SEED}")
    write = {"classify": planted, "tag": named}.get(task["kind"], mirrored)
    data = {
        split: write(folder, n, split, longest=4, seed=SEED)
        for split, n in (("train", n_lines), ("valid", 40), ("test", 80))
    }
    plan = {"batch_tokens": 400, "warmup": 50, "eval_every": 1000, "device": "cpu"} | train
    tokenizer = {"kind": "word", "vocab_size": 50, "min_frequency": 1}
    recipe = {"run": str(folder / "run"), "seed": SEED, "data": data, "model": model, "train": plan}
    return regard.train(regard.Recipe.parse(recipe | {"task": task | {"tokenizer": tokenizer}}), quiet=True)


TRANSLATE = {"kind": "translate", "label_smoothing": 0.0, "decode": {"beam": 2}}


def test_a_transformer_learns_to_reverse(tmp_path: Path) -> None:
    model = {"kind": "transformer", "d_model": 32, "n_heads": 4, "d_ff": 64, "dropout": 0.0}
    layers = {"n_encoder_layers": 1, "n_decoder_layers": 1}
    trained = learnt(tmp_path, TRANSLATE, model | layers, 1500, max_steps=500, lr=5e-3)
    assert trained.metrics["scores"]["test"]["bleu"] > 60


def test_a_recurrent_translator_learns_to_reverse(tmp_path: Path) -> None:
    model = {"kind": "rnn_seq2seq", "d_embed": 32, "d_hidden": 32, "dropout": 0.0}
    trained = learnt(tmp_path, TRANSLATE, model, 1000, max_steps=300, lr=5e-3)
    assert trained.metrics["scores"]["test"]["bleu"] > 90


@pytest.mark.parametrize("encoder", ["words", "rnn"])
def test_a_classifier_finds_the_planted_word(tmp_path: Path, encoder: str) -> None:
    model = {"kind": "classifier", "encoder": {"kind": encoder, "d_embed": 16}}
    trained = learnt(tmp_path, {"kind": "classify"}, model, 600, max_steps=120, lr=1e-2, warmup=10)
    assert trained.metrics["scores"]["test"]["accuracy"] > 90
    if encoder == "words":  # its weights are about the words themselves, so they must point at the reason
        texts = [line.partition(",")[0] for line in (tmp_path / "test.csv").read_text().splitlines()]
        with_reason = [text for text in texts if PLANTED & set(text.split()) and " " in text][:20]
        found = [trained.explain(text).strongest(1)[0][1] for text in with_reason]
        assert sum(word in PLANTED for word in found) > 0.8 * len(with_reason) > 0


@pytest.mark.parametrize("crf", [True, False], ids=["crf", "alone"])
def test_a_tagger_finds_the_planted_spans(tmp_path: Path, crf: bool) -> None:
    """Whether a planted word begins a span or goes on with one depends on the word before it."""
    encoder = {"kind": "rnn", "d_embed": 16, "d_hidden": 32, "dropout": 0.1}
    model = {"kind": "tagger", "crf": crf, "dropout": 0.1, "encoder": encoder}
    trained = learnt(tmp_path, {"kind": "tag"}, model, 600, max_steps=250, lr=1e-2, warmup=10)
    assert trained.metrics["scores"]["test"]["f1"] > 90


def test_a_tagger_counts_the_planted_spans(tmp_path: Path) -> None:
    trained = learnt(tmp_path, {"kind": "tag"}, {"kind": "hmm"}, 600, max_steps=9, batch_tokens="auto")
    assert trained.metrics["scores"]["test"]["f1"] > 90
    assert (trained.metrics["step"], trained.metrics["stopped_by"]) == (0, "all was counted")
    again = learnt(tmp_path, {"kind": "tag"}, {"kind": "hmm"}, 600, max_steps=9, batch_tokens="auto")
    assert again.metrics == trained.metrics
    maps = trained.explain("amber ember cedar")
    assert {"marginals", "transitions"} <= set(maps.sites)
    with pytest.raises(
        RecipeError, match=r"train\.shard: an HMM is learnt by " r"counting and cannot be sharded"
    ):
        learnt(tmp_path, {"kind": "tag"}, {"kind": "hmm"}, 600, max_steps=9, shard=True)


@pytest.mark.parametrize("kind", ["transformer", "rnn_seq2seq"])
def test_a_name_that_was_never_written_is_copied(tmp_path: Path, kind: str) -> None:
    """Some names come in training, but never as the answer: to be said they must be pointed at."""
    print(f"seed = {SEED}")
    rng = random.Random(SEED)
    names = ["".join(letters) for letters in product("bdgklmnprst", "aeiou", "bdglmnrst")]
    rng.shuffle(names)
    known, never = names[:460], names[460:]

    def asked(answer: str) -> tuple[str, str]:
        said = ["who", rng.choice(names), "knows", answer, "well"]
        return " ".join(said[rng.randint(0, 1) :]), answer

    for split, answers in (("train", known * 3), ("valid", known[:40])):
        rows = [asked(answer) for answer in answers]
        (tmp_path / f"{split}.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in rows))
    sizes = {
        "transformer": {"preset": "tiny", "n_encoder_layers": 1, "n_decoder_layers": 1},
        "rnn_seq2seq": {"d_embed": 32, "d_hidden": 32},
    }
    recipe = {
        "run": str(tmp_path / "run"),
        "seed": SEED,
        "task": TRANSLATE | {"joint": True, "tokenizer": {"kind": "word", "min_frequency": 1}},
        "data": {split: str(tmp_path / f"{split}.tsv") for split in ("train", "valid")},
        "model": {"kind": kind, "dropout": 0.0, "copies": True} | sizes[kind],
        "train": {"max_steps": 200, "lr": 3e-3, "warmup": 20, "batch_tokens": 400, "eval_every": 1000},
    }
    trained = regard.train(regard.Recipe.parse(recipe), quiet=True)
    sources, answers = zip(*(asked(name) for name in never), strict=True)
    found = [written.text for written in trained.predict(list(sources))]
    assert sum(map(str.__eq__, found, answers)) > 0.8 * len(never)
    assert "copying.look" in trained.explain(sources[0]).sites
