"""RecBole's SASRec with cross-entropy on histories, one a line (`user item item ...`), leave-last-out.

Runs in an environment of its own (`pip install torch recbole==1.2.1`). Prints a line of JSON for every epoch,
and one at the end with the rank of every user's last item among the full catalogue, with seen items and
without.

RecBole 1.2.1 needs shims here: names that NumPy 2 removed, `ray`, which is imported and not used, and
`torch.load` of its own checkpoint, a pickle.
"""

import argparse
import gzip
import json
import logging
import sys
import time
import types
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

for name, kind in {"float_": np.float64, "bool8": np.bool_, "unicode_": np.str_, "complex_": complex}.items():
    setattr(np, name, kind)


class Absent(types.ModuleType):
    """A module of which anything may be imported, and nothing used."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(name)


for name in ("ray", "ray.tune"):
    sys.modules[name] = Absent(name)

import torch  # noqa: E402

_load = torch.load
torch.load = lambda *where, **how: _load(*where, **{"weights_only": False} | how)

from recbole.config import Config  # noqa: E402
from recbole.data import create_dataset, data_preparation  # noqa: E402
from recbole.model.sequential_recommender import SASRec  # noqa: E402
from recbole.trainer import Trainer  # noqa: E402
from recbole.utils import init_seed  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("sequences", type=Path)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--length", type=int, default=50)
    parser.add_argument("--hidden-dropout", type=float, default=0.5)
    parser.add_argument("--attention-dropout", type=float, default=0.5)
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--patience", type=int, default=5)
    parser.add_argument("--batches", type=int, help="time so many of an epoch's batches, and nothing else")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="no epoch begins after so many")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    write_atomic(options.sequences, options.folder / "peer")
    config = Config(model="SASRec", config_dict=settings(options))
    logging.disable()
    init_seed(options.seed, reproducibility=True)
    dataset = create_dataset(config)
    train, valid, test = data_preparation(config, dataset)
    model = SASRec(config, train.dataset)
    trainer = Trainer(config, model)
    if options.batches:
        trainer._train_epoch(Part(train, 1), 0)  # the first is slower
        began, cpu = time.perf_counter(), time.process_time()
        trainer._train_epoch(Part(train, options.batches), 0)
        pairs = options.batches * options.batch
        answer = {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - cpu}
        print(json.dumps(answer | {"pairs": pairs, "pairs_of_epoch": len(train.dataset)}), flush=True)
        return
    epochs = Epochs(trainer, time.monotonic() + 60 * options.minutes)
    with suppress(TimeoutError):
        trainer.fit(train, valid, verbose=False, saved=True, show_progress=False, callback_fn=epochs)
    model.load_state_dict(torch.load(trainer.saved_model_file)["state_dict"])
    print(json.dumps({"ranks": ranks(model.eval(), test)}), flush=True)


def settings(options: argparse.Namespace) -> dict[str, Any]:
    return {
        "data_path": str(options.folder),
        "dataset": "peer",
        "checkpoint_dir": str(options.folder),
        "USER_ID_FIELD": "user_id",
        "ITEM_ID_FIELD": "item_id",
        "TIME_FIELD": "timestamp",
        "load_col": {"inter": ["user_id", "item_id", "timestamp"]},
        "MAX_ITEM_LIST_LENGTH": options.length,
        "eval_args": {"split": {"LS": "valid_and_test"}, "order": "TO", "mode": "full", "group_by": "user"},
        "loss_type": "CE",
        "train_neg_sample_args": None,
        "hidden_dropout_prob": options.hidden_dropout,
        "attn_dropout_prob": options.attention_dropout,
        "train_batch_size": options.batch,
        "eval_batch_size": 1024,
        "epochs": options.epochs,
        "stopping_step": options.patience,
        "metrics": ["NDCG", "Hit"],
        "topk": [10],
        "valid_metric": "NDCG@10",
        "seed": options.seed,
        "use_gpu": False,
        "show_progress": False,
    }


def write_atomic(sequences: Path, folder: Path) -> None:
    """RecBole's own format; the place in a history stands for its time."""
    folder.mkdir(parents=True, exist_ok=True)
    with gzip.open(sequences, "rt") as lines, (folder / "peer.inter").open("w") as out:
        out.write("user_id:token\titem_id:token\ttimestamp:float\n")
        for line in lines:
            user, *items = line.split()
            out.writelines(f"{user}\t{item}\t{place}\n" for place, item in enumerate(items))


class Part:
    """The first batches of an epoch, as the trainer reads them."""

    def __init__(self, batches: Any, n: int) -> None:
        self.batches, self.n = batches, n

    def __getattr__(self, name: str) -> Any:
        return getattr(self.batches, name)

    def __len__(self) -> int:
        return self.n

    def __iter__(self) -> Any:
        return islice(self.batches, self.n)


class Epochs:
    """Prints how long each epoch took, of training alone, and how it validated; TimeoutError at the end."""

    def __init__(self, trainer: Trainer, end: float) -> None:
        self.seconds, self.cpu, self.end = 0.0, 0.0, end
        train = trainer._train_epoch

        def timed(*arguments: Any, **settings: Any) -> Any:
            began, cpu = time.perf_counter(), time.process_time()
            loss = train(*arguments, **settings)
            self.seconds, self.cpu = time.perf_counter() - began, time.process_time() - cpu
            return loss

        trainer._train_epoch = timed

    def __call__(self, epoch: int, score: float) -> None:
        line = {"epoch": epoch, "seconds": self.seconds, "cpu_seconds": self.cpu, "valid_ndcg": float(score)}
        print(json.dumps(line), flush=True)
        if time.monotonic() > self.end:
            raise TimeoutError


def ranks(model: SASRec, test: Any) -> dict[str, list[int]]:
    """By whether items of the history may be recommended again: each user's rank of the last item, from 1."""
    found: dict[str, list[int]] = {"all": [], "unseen": []}
    with torch.no_grad():
        for interaction, _, _, targets in test:
            scores = model.full_sort_predict(interaction).view(len(interaction), -1)
            scores[:, 0] = -torch.inf  # padding
            for name in found:
                if name == "unseen":
                    scores.scatter_(1, interaction["item_id_list"], -torch.inf)
                right = scores.gather(1, targets[:, None])
                found[name] += ((scores > right).sum(1) + 1).tolist()
    return found


if __name__ == "__main__":
    main()
