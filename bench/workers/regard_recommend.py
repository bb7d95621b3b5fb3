"""regard's SASRec on histories, one a line (`user item item ...`): the time of one epoch of training."""

import argparse
import json
import tempfile
import time
from itertools import islice
from pathlib import Path

import torch

from regard.data.histories import WindowedHistories
from regard.data.last_items import LastOf
from regard.files.interactions import Grouping
from regard.files.read import INTERACTION, histories
from regard.files.row import Row
from regard.layers.sampled import SampledSoftmaxConfig, SoftmaxConfig
from regard.models import SASRecConfig
from regard.tasks import Recommend, RecommendConfig
from regard.training.config import TrainConfig
from regard.training.events import Step
from regard.training.loop import Training, run
from regard.training.machine import keep_freed_memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sequences", help="a text file, plain or .gz")
    parser.add_argument("--length", type=int, default=50)
    parser.add_argument("--dropout", type=float, default=0.5)
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--steps", type=int, help="of an epoch; all of it by default")
    parser.add_argument("--negatives", type=int, help="sampled softmax with so many; the whole by default")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    loss = SampledSoftmaxConfig(negatives=options.negatives) if options.negatives else SoftmaxConfig()
    rows = training_rows(options.sequences)
    task = Recommend.fit(RecommendConfig(max_length=options.length, loss=loss), rows)
    whole = sum(max(0, len(row.cells["items"]) - 1) for row in rows)
    examples = WindowedHistories.of(task, rows)
    keep_freed_memory()  # as in every training of regard
    plan = TrainConfig(
        max_steps=10**9, eval_every=10**9, batch_tokens=options.batch, lr=1e-3, device="cpu", log_every=1
    )
    torch.manual_seed(1)
    config = SASRecConfig(dropout=options.dropout)
    model = config.build(task.widths)
    with tempfile.TemporaryDirectory() as folder:
        training = Training(
            task, model, examples, [], plan, Path(folder), 1, torch.device("cpu"), d_model=config.d_model
        )
        steps = (event for event in run(training) if isinstance(event, Step))
        first = next(steps)  # the first is slower
        began, cpu, pairs = time.perf_counter(), time.process_time(), 0
        for event in islice(steps, options.steps):
            pairs += event.tokens
            if first.tokens + pairs >= whole:
                break
        answer = {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - cpu}
    print(json.dumps(answer | {"pairs": pairs, "pairs_of_epoch": whole}), flush=True)


def training_rows(path: str) -> list[Row]:
    """Histories without their last two items, which validation and test are for."""
    grouped = histories([path], dict.fromkeys(INTERACTION), Grouping())
    held_out: list[Row] = []
    return list(LastOf().split(len(grouped), grouped.rows(path), held_out))


if __name__ == "__main__":
    main()
