"""One rank of several tiny trainings, started by torchrun or alone: writes what it saw as JSON.

torchrun --nproc-per-node 2 tests/rank_job.py FOLDER
"""

import json
import sys
from itertools import product
from pathlib import Path

import torch

from regard.data.source import read_rows
from regard.tasks import Translate, TranslateConfig
from regard.training.config import TrainConfig
from regard.training.events import Step
from regard.training.loop import run, update
from regard.training.ranks import Ranks, joined
from regard.training.state import Training
from tiny import mirrored, transformer

STEPS = 50
KINDS = tuple(product(("float64", "float32"), (1, 3)))
"""Precision, and parts of a batch."""


def training(folder: Path, ranks: Ranks, dtype: str, accumulate: int) -> Training:
    folder.mkdir(parents=True, exist_ok=True)
    rows = list(read_rows(mirrored(folder, 31), {"source": None, "target": None}))
    config = TranslateConfig.model_validate(
        {"tokenizer": {"kind": "word", "vocab_size": 50, "min_frequency": 1}, "max_length": 8}
    )
    task = Translate.fit(config, rows)
    examples = task.encode(rows)
    torch.manual_seed(1)
    model = transformer(n_encoder_layers=1, n_decoder_layers=1).build(task.dims).to(getattr(torch, dtype))
    plan = {"max_steps": STEPS, "eval_every": 10**6, "batch_tokens": 30, "lr": 0.01, "warmup": 3}
    return Training(
        task,
        model,
        examples[:27],
        examples[27:],
        TrainConfig.model_validate(plan | {"accumulate": accumulate}),
        folder.parent / f"checkpoints-{dtype}-{accumulate}",
        1,
        torch.device("cpu"),
        d_model=12,
        ranks=ranks,
    )


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    with joined(torch.device("cpu")) as ranks:
        for dtype, accumulate in KINDS:
            first = training(folder / str(ranks.rank), ranks, dtype, accumulate)
            update(first, first.batches(0)[0], 1, 0.0)
            gradients = [parameter.grad.flatten().tolist() for parameter in first.model.parameters()]
            whole = training(folder / str(ranks.rank), ranks, dtype, accumulate)
            losses = [event.loss for event in run(whole) if isinstance(event, Step)]
            path = folder / f"{ranks.rank}-{dtype}-{accumulate}.json"
            path.write_text(json.dumps({"losses": losses, "gradients": gradients}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
