"""Does it learn? Small tasks, whole way: files → regard.train → scores. Another seed at every run.

The thresholds lie far below what is usual and far above what a model with a broken part reaches.
"""

import time
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.api import Trained
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
