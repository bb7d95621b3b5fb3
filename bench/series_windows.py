"""Many virtual windows, memory and time to the first step: `python bench/series_windows.py [N_WINDOWS]`.

Made series of 65,536 steps in one channel are written into a cache as training writes them, and opened again.
Then windows are drawn in the order of an epoch, collated, and an NLinear takes a step on each batch.
"""

import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from regard.data.batching import Order, Place
from regard.data.cache import write
from regard.data.example import Example
from regard.data.windows import Windows
from regard.fields.series import Series
from regard.fields.steps import Statistics
from regard.files.row import Row
from regard.models import NLinearConfig
from regard.tasks import Forecast, ForecastConfig

STEPS, LOOK_BACK, HORIZON, TOGETHER = 65_536, 336, 96, 128


class Made(Forecast):
    """A forecaster whose rows name the seed of a made series."""

    def encode(self, rows: Sequence[Row]) -> list[Example]:
        return [Example(row, self._arrays(int(row.cells["series"]))) for row in rows]

    def _arrays(self, seed: int) -> dict[str, np.ndarray]:
        noise = np.random.default_rng(seed).normal(size=(STEPS, 1)).astype(np.float32)
        steps_TC = noise + np.sin(np.arange(STEPS, dtype=np.float32) * (2 * np.pi / 24))[:, None]
        return {"steps": steps_TC, "opens": np.array([True]), "context": np.array([0])}


def megabytes() -> float:
    """Of memory in use now that no file stands for."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["RssAnon"].split()[0]) / 1024


def main(n_windows: int) -> None:
    torch.set_num_threads(1)
    n_series = -(-n_windows // (STEPS - LOOK_BACK - HORIZON + 1))
    field = replace(Series(), channels=("1",), measured=Statistics((0.0,), (1.2,)), longest=STEPS, season=24)
    task = Made(ForecastConfig(look_back=LOOK_BACK, horizon=HORIZON), replace(field, naive_error=(1.0,)))
    model = NLinearConfig().build(task.widths)
    optimizer = torch.optim.Adam(model.parameters())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "cache"

        def rows() -> Iterator[Row]:
            for seed in range(n_series):
                yield Row({"series": seed}, "made", seed + 1)

        begin = time.perf_counter()
        write(task, rows(), folder, name="made")
        print(f"written: {n_series:,} series, {time.perf_counter() - begin:.1f} s")
        before, begin = megabytes(), time.perf_counter()
        windows = Windows.open(task, folder)
        assert windows is not None
        opened = time.perf_counter() - begin
        order, place = Order(windows.sizes, TOGETHER * LOOK_BACK, 1), Place(0)
        for step in range(1, 101):
            batch = order.batch(place)
            assert batch is not None
            examples = task.collate([windows[i] for i in batch])
            loss = task.loss(model, examples).objective(examples.counts)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            place = order.after(place)
            if step in (1, 100):
                seconds = time.perf_counter() - begin
                print(
                    f"step {step}: {seconds:.2f} s, of which opening {opened:.2f}; "
                    f"{megabytes() - before:.0f} MB more"
                )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{len(windows):,} windows of {LOOK_BACK} + {HORIZON} steps; peak with mapped pages {peak:.0f} MB"
        )


if __name__ == "__main__":
    main(int(float(sys.argv[1])) if sys.argv[1:] else 100_000_000)
