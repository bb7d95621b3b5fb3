"""A ViT here and in transformers: training images a second, reading of files, and what looking costs.

    python bench/vit_speed.py --pictures FOLDER [--rounds 9] [--seconds 3] [--append bench/RESULTS.md]

FOLDER holds a folder of pictures for each class. Both models have the same shape (patches of 4 × 4, width
192, 6 layers, 3 heads, a class token), learn from the same batches, augmented by regard, and are moved by
torch's fused AdamW with the same precision of products. In every round each takes its turn, in an order that
changes, for about so many seconds; what is compared is processor time of one thread, so that other work on
the machine disturbs both alike. The verdict is the median of the ratios of the rounds.
"""

import argparse
import random
import shlex
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from torch.nn import functional as F
from transformers import ViTConfig as TheirConfig
from transformers import ViTForImageClassification

from regard.attention.tap import Trace, sites, tapped
from regard.data.example import Example
from regard.explain.rollout import rollout
from regard.fields.image import ImageSettings
from regard.fields.label import Label
from regard.files.row import Row
from regard.models import ClassifierConfig
from regard.tasks import Classify, ClassifyConfig
from regard.training.machine import has_bfloat16
from regard.training.precision import autocast

BENCH = Path(__file__).resolve().parent
sys.path[:0] = [str(BENCH)]

from train_speed import machine  # noqa: E402

CPU = torch.device("cpu")
BATCH = 128
SHAPE: dict[str, Any] = {"patch": 4, "d_model": 192, "n_heads": 3, "d_ff": 768, "n_layers": 6}
ADAMW: dict[str, Any] = {"lr": 1e-3, "betas": (0.9, 0.98), "eps": 1e-9, "weight_decay": 0.05}
Turn = Callable[[], int]
"""One step; how many pictures it was."""


def rows_of(folder: Path, n: int) -> list[Row]:
    """So many pictures of all classes, in random order."""
    classes = sorted(path for path in folder.iterdir() if path.is_dir())
    paths = [
        (path, one.name) for one in classes for path in islice(sorted(one.iterdir()), n // len(classes) + 1)
    ]
    random.Random(1).shuffle(paths)
    return [Row({"image": str(path), "label": name}, str(path), 0) for path, name in paths[:n]]


def batches(task: Classify, examples: list[Example]) -> Iterator[Any]:
    """Augmented batches, without end."""
    rng = np.random.default_rng(1)
    while True:
        chosen = [examples[at] for at in rng.integers(0, len(examples), BATCH)]
        yield task.collate([task.draw(example, rng, examples) for example in chosen])


def ours(task: Classify, examples: list[Example], bfloat16: bool) -> tuple[Turn, torch.nn.Module]:
    encoder: Any = {"kind": "vit", "class_tokens": 1, **SHAPE}
    model = ClassifierConfig(encoder=encoder, pooling="first", dropout=0.0).build(task.widths).train()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True, **ADAMW)
    stream = batches(task, examples)

    def step() -> int:
        batch = next(stream)
        with autocast(CPU, bfloat16=bfloat16):
            (part,) = task.loss(model, batch).parts.values()
        (part.sum / BATCH).backward()
        optimizer.step()
        optimizer.zero_grad()
        return BATCH

    return step, model


def theirs(task: Classify, examples: list[Example], bfloat16: bool) -> Turn:
    n_rows, _, n_channels = task.given["image"].shape
    config = TheirConfig(
        image_size=n_rows,
        patch_size=SHAPE["patch"],
        num_channels=n_channels,
        hidden_size=SHAPE["d_model"],
        num_hidden_layers=SHAPE["n_layers"],
        num_attention_heads=SHAPE["n_heads"],
        intermediate_size=SHAPE["d_ff"],
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        num_labels=len(task.labels),
    )
    model = ViTForImageClassification(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True, **ADAMW)
    stream = batches(task, examples)
    mean, deviation = (torch.tensor(getattr(task.given["image"], name)) for name in ("mean", "deviation"))

    def step() -> int:
        batch = next(stream)
        pixels_BCYX = ((batch.inputs["pixels"] - mean) / deviation).permute(0, 3, 1, 2)
        with autocast(CPU, bfloat16=bfloat16):
            loss = F.cross_entropy(model(pixel_values=pixels_BCYX).logits, batch.labels_B)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return BATCH

    return step


def looks(task: Classify, examples: list[Example], model: torch.nn.Module) -> dict[str, Turn]:
    """Answers alone, and answers with a rollout of the attention of all layers for every picture."""
    batch = task.collate(examples[:BATCH])
    names = [name for name in sites(model) if name.startswith("encoder.")]

    def plain() -> int:
        with torch.inference_mode():
            model(batch.inputs)
        return BATCH

    def with_rollout() -> int:
        traces = {name: Trace() for name in names}
        with torch.inference_mode(), tapped(model, traces.get):
            model(batch.inputs)
            rollout([trace.weights_BHQK for trace in traces.values()])
        return BATCH

    return {"forward": plain, "forward and rollout": with_rollout}


def rates(turns: dict[str, Turn], rounds: int, seconds: float) -> dict[str, list[float]]:
    """Pictures a second of processor time, by name and round."""
    found: dict[str, list[float]] = {name: [] for name in turns}
    for step in turns.values():
        step()
    names = list(turns)
    for _ in range(rounds):
        names.reverse()
        for name in names:
            began, n = time.process_time(), 0
            while time.process_time() - began < seconds:
                n += turns[name]()
            found[name].append(n / (time.process_time() - began))
    return found


def report(arguments: argparse.Namespace) -> str:
    torch.manual_seed(1)
    torch.set_num_threads(1)
    bfloat16 = has_bfloat16(CPU)
    rows = rows_of(arguments.pictures, arguments.count)
    settings = ClassifyConfig(fields={"image": ImageSettings(shift=4, flip=True, cutout=8)})
    field = settings.given["image"].fit(
        [settings.given["image"].parse(row.cells["image"], row.where) for row in rows]
    )
    label = Label().fit({row.cells["label"]: 1 for row in rows})
    task = Classify(settings, {"image": field}, label)
    examples = task.encode(rows)
    step, model = ours(task, examples, bfloat16)
    training = rates(
        {"regard": step, "transformers": theirs(task, examples, bfloat16)},
        arguments.rounds,
        arguments.seconds,
    )

    def read() -> int:
        field.encode([field.parse(row.cells["image"], row.where) for row in rows[:BATCH]])
        return BATCH

    reading = rates({"reading": read, "regard": step}, arguments.rounds, arguments.seconds / 3)
    model.eval()
    looking = rates(looks(task, examples, model), arguments.rounds, arguments.seconds / 3)
    lines = ["| what | pictures a second of processor time, each round | median |", "|---|---|---|"]
    for title, found in (("training", training), ("reading", reading), ("looking", looking)):
        for name, values in found.items():
            shown = ", ".join(f"{value:.0f}" for value in values)
            lines.append(f"| {title}: {name} | {shown} | {statistics.median(values):.0f} |")
    product = "bfloat16" if bfloat16 else "single"
    return "\n".join(
        [
            f"## ViT beside transformers, {date.today()}",
            "",
            f"`{shlex.join(['python', *sys.argv])}`",
            "",
            f"Machine: {machine()}; one thread; products in {product} precision; torch {torch.__version__}, "
            f"transformers {transformers.__version__}.",
            "",
            *lines,
            "",
            f"Training: regard is {ratio(training, 'regard', 'transformers'):.2f} × transformers. Reading is "
            f"{ratio(reading, 'reading', 'regard'):.1f} × the training rate. A forward pass with a rollout "
            f"takes {ratio(looking, 'forward', 'forward and rollout'):.2f} × a forward pass. (Medians of the "
            "ratios of rounds.)",
            "",
        ]
    )


def ratio(found: dict[str, list[float]], one: str, other: str) -> float:
    return statistics.median(a / b for a, b in zip(found[one], found[other], strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pictures", type=Path, required=True)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--append", type=Path)
    arguments = parser.parse_args()
    found = report(arguments)
    print(found)
    if arguments.append:
        with arguments.append.open("a", encoding="utf-8") as file:
            file.write("\n" + found)


if __name__ == "__main__":
    main()
