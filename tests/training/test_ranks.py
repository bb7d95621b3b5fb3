"""Several processes: the same training as one; they stop together and go on in any number."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from functools import lru_cache
from itertools import chain
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
import torch

from rank_job import KINDS, STEPS
from regard.training.ranks import Ranks, process_group
from small_runs import write_recipe

TESTS = Path(__file__).parents[1]
PATHS = os.pathsep.join(map(str, (TESTS, TESTS.parent / "src")))
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": PATHS, "GLOO_SOCKET_IFNAME": "lo"}
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--local-addr", "127.0.0.1")
"""They meet on the loopback: what the machine's own name leads to is not ours to test."""


def torchrun(processes: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    said = subprocess.run(
        [str(part) for part in (*TORCHRUN, "--standalone", "--nproc-per-node", processes, *arguments)],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert said.returncode == 0, said.stderr
    return said


@lru_cache
def trained(processes: int) -> Path:
    """The folder where every rank wrote what it saw."""
    folder = Path(mkdtemp())
    if processes == 1:
        subprocess.run([sys.executable, TESTS / "rank_job.py", folder], env=ENVIRONMENT, check=True)
    else:
        torchrun(processes, TESTS / "rank_job.py", folder)
    return folder


def seen(processes: int, dtype: str, accumulate: int, shard: bool) -> list[dict[str, Any]]:
    names = [f"{rank}-{dtype}-{accumulate}-{shard}.json" for rank in range(processes)]
    return [json.loads((trained(processes) / name).read_text()) for name in names]


def flat(numbers: list[list[float]]) -> torch.Tensor:
    return torch.tensor(list(chain.from_iterable(numbers)), dtype=torch.float64)


@pytest.mark.parametrize("processes", [2, 4])
def test_many_processes_are_one(processes: int) -> None:
    for dtype, accumulate, shard in KINDS:
        [alone] = seen(1, dtype, 1, False)
        together = seen(processes, dtype, accumulate, shard)
        assert len(alone["losses"]) == STEPS
        tolerance = {"float64": 1e-9, "float32": 1e-4}[dtype]
        for rank in together:
            assert rank["losses"] == together[0]["losses"]
            assert rank["losses"] == pytest.approx(alone["losses"], abs=tolerance)
            torch.testing.assert_close(flat(rank["gradients"]), flat(alone["gradients"]), rtol=0, atol=1e-6)


def test_a_batch_is_shared_without_rest() -> None:
    for n_rows in range(9):
        rows = list(range(n_rows))
        for world in (1, 2, 3, 5):
            parts = [Ranks(rank, world).share(rows) for rank in range(world)]
            assert list(chain.from_iterable(parts)) == rows
            assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_alone_without_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    with process_group(torch.device("cpu")) as ranks:
        assert (ranks.rank, ranks.world, ranks.first) == (0, 1, True)
        assert ranks.broadcast({"a": [1]}) == {"a": [1]}
        assert ranks.sum({"x": 2}) == ranks.max({"x": 2}) == {"x": 2}


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = write_recipe(tmp_path)
    text = path.read_text("utf-8").replace("max_steps = 4", "max_steps = 300\nsave_every = 5")
    path.write_text(text.replace("eval_every = 2", "eval_every = 150"), "utf-8")
    return path


def going_on(recipe: Path, processes: int, *options: str) -> str:
    """The same command again; what it said."""
    train = ("-m", "regard", "train", str(recipe), *options)
    if processes == 1:
        said = subprocess.run(
            [sys.executable, *train], env=ENVIRONMENT, capture_output=True, text=True, check=True
        )
    else:
        said = torchrun(processes, *train)
    assert (recipe.parent / "run" / "model" / "config.json").is_file()
    assert not (recipe.parent / "run" / "lock").exists()
    return said.stderr


def begun(recipe: Path, *launch: object) -> subprocess.Popen[str]:
    """A training of two processes that has saved something."""
    command = [*TORCHRUN, *launch, "-m", "regard", "train", recipe]
    process = subprocess.Popen(
        [str(part) for part in command],
        env=ENVIRONMENT,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    while not list((recipe.parent / "run" / "checkpoints").glob("step-0000001*")):
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.05)
    return process


ONE_NODE = ("--standalone", "--nproc-per-node", 2)


def test_rank_0_speaks_for_all(recipe: Path) -> None:
    said = torchrun(2, "-m", "regard", "train", recipe, "train.max_steps=4")
    assert said.stderr.count("finished at step 4") == 1
    assert said.stdout.count("now try:") == 1
    assert said.stderr.count("going on") == 0


def test_a_save_is_due_on_all_or_none(recipe: Path) -> None:
    """By clocks that differ."""
    timed = ("train.save_minutes=0.0007", "train.save_every=1000", "train.max_steps=60")
    assert "finished at step 60" in torchrun(2, "-m", "regard", "train", recipe, *timed).stderr


def test_a_killed_rank_ends_all_and_the_same_command_goes_on_with_fewer(recipe: Path) -> None:
    process = begun(recipe, *ONE_NODE)
    os.kill(json.loads((recipe.parent / "run" / "lock").read_text())["pid"], signal.SIGKILL)
    process.communicate(timeout=120)
    assert process.returncode != 0
    assert "resuming from step" in going_on(recipe, 1)


def test_a_signal_stops_all_and_the_same_command_goes_on_with_more(recipe: Path) -> None:
    process = begun(recipe, *ONE_NODE)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=120)
    assert said.count("interrupted; the same command goes on from here") == 1
    assert "resuming from step" in going_on(recipe, 3)


def losses(recipe: Path) -> list[float]:
    lines = map(json.loads, (recipe.parent / "run" / "metrics.jsonl").read_text().splitlines())
    return [line["loss"] for line in lines if line["event"] == "step"]


def test_a_sharded_training_goes_on_in_any_number(recipe: Path, tmp_path: Path) -> None:
    """Four processes begin, two go on, one ends: the losses are those of one that did it all."""
    text = recipe.read_text("utf-8").replace("save_every = 5", "save_every = 5\nshard = true\nlog_every = 1")
    recipe.write_text(text.replace("n_decoder_layers = 1", "n_decoder_layers = 1\ndropout = 0.0"), "utf-8")
    (tmp_path / "alone").mkdir()
    alone = tmp_path / "alone" / "recipe.toml"
    alone.write_text(recipe.read_text().replace(str(tmp_path / "run"), str(tmp_path / "alone" / "run")))
    going_on(alone, 1)
    process = begun(recipe, "--standalone", "--nproc-per-node", 4)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)
    folder = max((recipe.parent / "run" / "checkpoints").glob("step-*"))
    assert len(list((folder / "model").glob("*.safetensors"))) == 4
    assert not list(folder.rglob("*.metadata"))
    torchrun(2, "-m", "regard", "train", recipe, "train.max_steps=40", "--accept-changes")
    assert "resuming from step 40" in going_on(recipe, 1, "--accept-changes")
    assert losses(recipe) == pytest.approx(losses(alone), abs=1e-3)


def test_two_nodes_meet_one_dies_and_both_go_on(recipe: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    node = (
        "--nnodes",
        2,
        "--nproc-per-node",
        1,
        "--rdzv-backend",
        "c10d",
        "--rdzv-endpoint",
        f"127.0.0.1:{port}",
    )
    node = (*node, "--rdzv-conf", "join_timeout=60,close_timeout=5")
    command = [*TORCHRUN, *node, "-m", "regard", "train", recipe]
    other = subprocess.Popen(
        [str(part) for part in command], env=ENVIRONMENT, stderr=subprocess.DEVNULL, start_new_session=True
    )
    first = begun(recipe, *node)
    os.killpg(other.pid, signal.SIGKILL)
    other.wait()
    first.send_signal(signal.SIGTERM)
    first.communicate(timeout=120)
    assert "resuming from step" in going_on(recipe, 1)
