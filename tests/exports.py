"""Every kind of model as ONNX graphs, compared text by text. A graph takes a minute of a core to make.

python tests/exports.py        # a part of `make soak`
"""

import argparse
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import torch

from interop.made import asked, histories, labeller, reader, recommender, texts, translator
from regard.interop.export import export
from regard.models import BERT4RecConfig, GRU4RecConfig, SASRecConfig
from tiny import ENCODERS, answerer, classifier, relater, rnn, tagger, transformer

SMALL = {"n_encoder_layers": 1, "n_decoder_layers": 1}
POSITIONS = ("sinusoidal", "learned", "rotary", "relative", "alibi", "none")
TRANSLATORS: dict[str, Any] = {
    **{f"transformer, {position}": transformer(position=position, **SMALL) for position in POSITIONS},
    "transformer, pre-norm, swiglu, eps": transformer(
        norm="pre", activation="swiglu", norm_eps=1e-3, **SMALL
    ),
    "transformer, gelu, one key head, no bias": transformer(
        activation="gelu", n_kv_heads=1, bias=False, **SMALL
    ),
    **{f"rnn, {cell}": rnn(cell=cell) for cell in ("rnn", "lstm", "gru")},
    **{f"rnn, {kind}": rnn(attention=kind) for kind in ("none", "dot", "scaled_dot", "general")},
    "rnn, luong": rnn(attention="general", order="luong"),
    "transformer, copying": transformer(copies=True, **SMALL),
    "rnn, copying": rnn(copies=True),
}
CLASSIFIERS: dict[str, Any] = {
    f"classifier, {kind}, {pooling}": classifier(
        kind, pooling, **({"max_positions": 300} if kind == "bert" else {})
    )
    for kind, pooling in (
        ("transformer", "first"),
        ("transformer", "attention"),
        ("rnn", "mean"),
        ("words", "mean"),
        ("bert", "pooler"),
    )
}
READERS: dict[str, tuple[str, Any]] = {
    f"{kind}, {encoder}{more}": (kind, made(encoder))
    for encoder in ENCODERS
    for kind, more, made in (
        ("classify_pair", "", classifier),
        ("multilabel", "", classifier),
        ("tag", ", crf", tagger),
        ("tag", "", partial(tagger, crf=False)),
        ("relation", "", relater),
        ("answer", "", answerer),
    )
}

ITEMS: Any = {"d_model": 8, "n_heads": 2, "d_ff": 11, "n_layers": 1, "max_positions": 13}
RECOMMENDERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "sasrec": (SASRecConfig(**ITEMS), {}),
    "sasrec, time gaps": (SASRecConfig(**ITEMS, time_gaps=True), {"remove_seen": False}),
    "gru4rec": (GRU4RecConfig(d_model=8, d_hidden=7), {}),
    "gru4rec, attention": (GRU4RecConfig(d_model=8, d_hidden=7, attention=True), {}),
    "bert4rec": (BERT4RecConfig(**ITEMS), {"objective": "masked"}),
}


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter).parse_args()
    torch.set_num_threads(1)
    kinds = {name: ("translate", config) for name, config in TRANSLATORS.items()}
    kinds |= {name: ("classify", config) for name, config in CLASSIFIERS.items()} | READERS
    kinds |= {name: ("recommend", config) for name, (config, _) in RECOMMENDERS.items()}
    for name, (kind, config) in kinds.items():
        began = time.perf_counter()
        if kind == "translate":
            task, model = translator(config, joint=config.copies, decode={"beam": 1})
        elif kind == "recommend":
            task, model = recommender(config, **RECOMMENDERS[name][1])
        else:
            task, model = labeller(config) if kind == "classify" else reader(kind, config)
        with tempfile.TemporaryDirectory() as folder:
            given = asked(kind) if name in READERS else histories() if name in RECOMMENDERS else texts()
            report = export(task, model, config, Path(folder) / "out", "onnx", given)
        assert report.identical == 1.0, name
        assert report.difference < 1e-4, name
        seconds = time.perf_counter() - began
        print(f"{name}: all alike, difference {report.difference:.0e} ({seconds:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
