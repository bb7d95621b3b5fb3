"""What safety costs: a checkpoint every 500 steps, and the guard against numbers that are not finite.

    python bench/overhead.py --data DIR [--steps 1000]

DIR holds Multi30k's `train` and `val` files. The tiny Transformer of recipes/multi30k_tiny.toml is
trained for so many steps. The checkpoints' share is what the run itself notes about its time. The guard is
timed inside the same steps: its work (are loss and gradient finite, is it a spike) beside the whole update.
"""

import argparse
import json
import math
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from regard.recipe import Recipe
from regard.runs.prepare import prepare
from regard.training import loop
from regard.training.events import Evaluated, Saved, Step

HERE = Path(__file__).resolve().parents[1]


class Clock:
    """Stands for a function and adds up how long it takes."""

    def __init__(self, function: Any) -> None:
        self.function, self.seconds, self.calls = function, 0.0, 0

    def __call__(self, *given: Any) -> Any:
        began = time.perf_counter()
        try:
            return self.function(*given)
        finally:
            self.seconds += time.perf_counter() - began
            self.calls += 1


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        train, valid = (
            json.dumps([str(options.data / f"{split}.{side}.gz") for side in ("en", "de")])
            for split in ("train", "val")
        )
        recipe = Recipe.read(
            HERE / "recipes/multi30k_tiny.toml",
            [
                f"run={folder}/run",
                f"data.train={train}",
                f"data.valid={valid}",
                f"data.test={valid}",
                f"train.max_steps={options.steps}",
                "train.save_every=500",
                f"train.eval_every={options.steps}",
                "train.average=1",
                "train.spike=10",
            ],
        )
        saves: list[float] = []
        updates = 0.0
        with prepare(recipe) as run:
            finite, spike = Clock(math.isfinite), Clock(run.training.is_spike)
            run.training.is_spike = spike  # type: ignore[method-assign]
            loop.math = SimpleNamespace(isfinite=finite)  # type: ignore[attr-defined]
            started = time.perf_counter()
            for event in loop.run(run.training):
                if isinstance(event, Step):
                    updates += event.took
                if isinstance(event, Saved):
                    saves.append(event.took)
                if isinstance(event, Evaluated):
                    break
            trained = updates + sum(saves)
        print(f"{options.steps} steps, {time.perf_counter() - started:.0f} s with one validation")
        print(f"checkpoints: {len(saves)} in {sum(saves):.2f} s, {sum(saves) / trained:.2%} of the training")
        guard = finite.seconds + spike.seconds
        print(f"guard: {guard:.3f} s in {spike.calls} updates of {updates:.0f} s, {guard / updates:.3%}")


if __name__ == "__main__":
    main()
