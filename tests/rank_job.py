"""One rank of a tiny training, started by torchrun: writes what it saw as JSON, one file a rank.

torchrun --nproc-per-node 2 tests/rank_job.py FOLDER DTYPE ACCUMULATE STEPS
"""

import json
import sys
from pathlib import Path

import torch

from regard.data.source import read_rows
from regard.tasks import Translate, TranslateConfig
from regard.training.config import TrainConfig
from regard.training.events import Step
from regard.training.loop import run, update
from regard.training.ranks import joined
from regard.training.state import Training
from tiny import mirrored, transformer


def main(folder: Path, dtype: torch.dtype, accumulate: int, steps: int) -> None:
    torch.set_num_threads(1)
    with joined(torch.device("cpu")) as ranks:
        data = folder / f"rank-{ranks.rank}"
        data.mkdir()
        rows = list(read_rows(mirrored(data, 31), {"source": None, "target": None}))
        config = TranslateConfig.model_validate(
            {"tokenizer": {"kind": "word", "vocab_size": 50, "min_frequency": 1}, "max_length": 8}
        )
        task = Translate.fit(config, rows)
        examples = task.encode(rows)
        torch.manual_seed(1)
        model = transformer(n_encoder_layers=1, n_decoder_layers=1).build(task.dims).to(dtype)
        plan = {"max_steps": steps, "eval_every": 10**6, "batch_tokens": 30, "lr": 0.01, "warmup": 3}
        training = Training(
            task,
            model,
            examples[:27],
            examples[27:],
            TrainConfig.model_validate(plan | {"accumulate": accumulate}),
            folder / "checkpoints",
            1,
            torch.device("cpu"),
            d_model=12,
            ranks=ranks,
        )
        update(training, training.batches(0)[0], 1, 0.0)
        gradients = [parameter.grad.flatten().tolist() for parameter in model.parameters()]
        training.optimizer.state.clear()
        losses = [event.loss for event in run(training) if isinstance(event, Step)]
        final = [parameter.detach().flatten().tolist() for parameter in model.parameters()]
        told = {"losses": losses, "gradients": gradients, "final": final if not ranks.first else []}
        (folder / f"{ranks.rank}.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]), getattr(torch, sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
