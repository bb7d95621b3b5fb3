"""JoeyNMT trained by its own `train` entry; only a clock is added, between its steps.

Its batches are its own too: random order, filled up to 4,096 tokens counting padding. It reads pieces as
whitespace-separated words, so its tokens are the other tools' tokens. Its Transformer also drops attention
weights and the inside of the feed-forward; both are switched off here, which only makes it faster.
"""

import logging
import tempfile
from pathlib import Path
from typing import Any

import joeynmt.training
from joeynmt.batch import Batch
from joeynmt.helpers import make_model_dir
from joeynmt.transformer_layers import MultiHeadedAttention, PositionwiseFeedForward
from model import (
    ADAM_BETAS,
    BATCH_TOKENS,
    CLIP_NORM,
    D_DECODER,
    D_EMBED,
    D_ENCODER,
    D_FF,
    D_MODEL,
    DROPOUT,
    LABEL_SMOOTHING,
    N_HEADS,
    N_LAYERS,
    NOAM_WARMUP,
)
from stopwatch import Stopwatch, arguments

NEVER = 10**9


def transformer() -> dict[str, Any]:
    stack = {
        "type": "transformer",
        "num_layers": N_LAYERS,
        "num_heads": N_HEADS,
        "embeddings": {"embedding_dim": D_MODEL, "scale": True, "dropout": DROPOUT},
        "hidden_size": D_MODEL,
        "ff_size": D_FF,
        "dropout": DROPOUT,
        "layer_norm": "post",
        "activation": "relu",
    }
    return {
        "initializer": "xavier_uniform",
        "embed_initializer": "xavier_uniform",
        "tied_embeddings": True,
        "tied_softmax": True,
        "encoder": stack,
        "decoder": stack,
    }


def rnn() -> dict[str, Any]:
    shared = {
        "type": "recurrent",
        "rnn_type": "gru",
        "embeddings": {"embedding_dim": D_EMBED, "dropout": DROPOUT},
        "num_layers": 1,
        "dropout": DROPOUT,
    }
    return {
        "tied_embeddings": True,
        "encoder": {**shared, "hidden_size": D_ENCODER, "bidirectional": True},
        "decoder": {
            **shared,
            "hidden_size": D_DECODER,
            "hidden_dropout": DROPOUT,
            "attention": "bahdanau",
            "input_feeding": True,
            "init_hidden": "bridge",
        },
    }


def config(corpus: Path, model: dict[str, Any], model_dir: Path) -> dict[str, Any]:
    side = {"level": "word", "voc_file": str(corpus / "vocabulary.txt")}
    return {
        "name": "train_speed",
        "model_dir": str(model_dir),
        "use_cuda": False,
        "fp16": False,
        "num_workers": 0,
        "data": {
            "train": str(corpus / "train"),
            "dev": str(corpus / "train"),
            "src": {"lang": "en", **side},
            "trg": {"lang": "de", **side},
        },
        "testing": {},
        "training": {
            "optimizer": "adam",
            "adam_betas": list(ADAM_BETAS),
            "scheduling": "noam",
            "learning_rate_warmup": NOAM_WARMUP,
            "clip_grad_norm": CLIP_NORM,
            "label_smoothing": LABEL_SMOOTHING,
            "normalization": "tokens",
            "batch_type": "token",
            "batch_size": BATCH_TOKENS,
            "epochs": NEVER,
            "logging_freq": NEVER,
            "validation_freq": NEVER,
        },
        "model": model,
    }


def clocked(watch: Stopwatch, name: str) -> type[joeynmt.training.TrainManager]:
    """JoeyNMT's own manager, stopped the way a user would: by an interrupt, which it expects."""

    class Clocked(joeynmt.training.TrainManager):
        previous: tuple[int, float] | None = None

        def _train_step(self, batch: Batch) -> tuple[float, int]:
            if self.previous and not watch.step(*self.previous):
                raise KeyboardInterrupt
            loss, correct = super()._train_step(batch)
            self.previous = (batch.ntokens, loss)
            return loss, correct

        def _save_checkpoint(self, new_best: bool, score: float) -> None:
            """The run is over: instead of being kept, it answers."""
            watch.report(name, self.model, "joeynmt", "numpy")

        def train_and_validate(self, train_data: Any, valid_data: Any) -> None:
            for module in self.model.modules():
                if isinstance(module, MultiHeadedAttention):
                    module.dropout.p = 0.0
                if isinstance(module, PositionwiseFeedForward):
                    module.pwff_layer[2].p = 0.0
            super().train_and_validate(train_data, valid_data)

    return Clocked


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--model", choices=("transformer", "rnn"), default="transformer")
    options = parser.parse_args()
    logging.disable(logging.INFO)
    watch = Stopwatch(options.warmup, options.seconds)
    name = "joeynmt" if options.model == "transformer" else "joeynmt_rnn"
    joeynmt.training.TrainManager = clocked(watch, name)
    model = {"transformer": transformer, "rnn": rnn}[options.model]()
    with tempfile.TemporaryDirectory() as folder:
        model_dir = Path(folder) / "model"
        make_model_dir(model_dir)
        joeynmt.training.train(0, None, config(options.corpus, model, model_dir), skip_test=True)


if __name__ == "__main__":
    main()
