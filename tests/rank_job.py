"""One rank of several tiny trainings, started by torchrun or alone: writes what it saw as JSON.

torchrun --nproc-per-node 2 tests/rank_job.py FOLDER
"""

import json
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import torch

from regard.data.cache import Examples
from regard.files.read import read_rows
from regard.tasks import Translate, TranslateConfig
from regard.training.config import TrainConfig
from regard.training.events import Step
from regard.training.loop import run, update
from regard.training.ranks import Ranks, full_tensor, process_group
from regard.training.state import Training
from tiny import mirrored, transformer

STEPS = 50
KINDS = (
    *product(("float64", "float32"), (1, 3), (False,)),
    ("float64", 3, True),
    ("float32", 1, True),
)
"""Precision, parts of a batch, and whether the model is sharded."""


def training(folder: Path, ranks: Ranks, dtype: str, accumulate: int, shard: bool) -> Training:
    folder.mkdir(parents=True, exist_ok=True)
    rows = list(read_rows(mirrored(folder, 31), {"source": None, "target": None}))
    config = TranslateConfig.model_validate(
        {"tokenizer": {"kind": "word", "vocab_size": 50, "min_frequency": 1}, "max_length": 8}
    )
    task = Translate.fit(config, rows)
    torch.manual_seed(1)
    model = transformer(n_encoder_layers=1, n_decoder_layers=1).build(task.widths).to(getattr(torch, dtype))
    plan = {"max_steps": STEPS, "eval_every": 10**6, "batch_tokens": 30, "lr": 0.01, "warmup": 3}
    return Training(
        task,
        model,
        Examples.of(task, rows[:27]),
        task.encode(rows[27:]),
        TrainConfig.model_validate(plan | {"accumulate": accumulate, "shard": shard}),
        folder.parent / f"checkpoints-{dtype}-{accumulate}-{shard}",
        1,
        torch.device("cpu"),
        d_model=12,
        ranks=replace(ranks, shard=shard),
    )


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    with process_group(torch.device("cpu")) as ranks:
        for kind in KINDS:
            first = training(folder / str(ranks.rank), ranks, *kind)
            update(first, first.rank_batch(first.order.window(0, 0)[0]), 1, 0.0)
            gradients = [
                full_tensor(parameter.grad).flatten().tolist() for parameter in first.model.parameters()
            ]
            complete = training(folder / str(ranks.rank), ranks, *kind)
            losses = [event.loss for event in run(complete) if isinstance(event, Step)]
            name = "-".join(map(str, (ranks.rank, *kind)))
            (folder / f"{name}.json").write_text(json.dumps({"losses": losses, "gradients": gradients}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
