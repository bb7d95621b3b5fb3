"""Small models that have learnt a little, so that answers differ and end; and texts for them."""

import json
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from regard.data.source import Row
from regard.models import ClassifierConfig, RNNConfig, TransformerConfig
from regard.tasks import Classify, ClassifyConfig, Translate, TranslateConfig
from tiny import WORDS

OTHER_WORDS = tuple(word[::-1] for word in WORDS[:7])
TOKENIZER = {"kind": "word", "vocab_size": 60, "min_frequency": 1}


def retensored(change: Callable[[dict[str, torch.Tensor]], Any]) -> Callable[[Path], None]:
    """An edit of the weights in a folder."""

    def edit(folder: Path) -> None:
        tensors = load_file(folder / "model.safetensors")
        change(tensors)
        save_file(tensors, folder / "model.safetensors")

    return edit


def texts(n: int = 24) -> list[str]:
    rng = random.Random(n)
    return [" ".join(rng.choices(WORDS, k=rng.randint(1, 5))) for _ in range(n)]


def translated(text: str) -> str:
    return " ".join(OTHER_WORDS[WORDS.index(word) % 7] for word in text.split())


def translator(config: TransformerConfig | RNNConfig, *, joint: bool = False, **changes: Any) -> Any:
    """(task, model), not to be changed: source and target have unequal vocabularies unless joint."""
    return _translator(
        config, json.dumps({"tokenizer": TOKENIZER, "joint": joint, "max_length": 12} | changes)
    )


@cache
def _translator(config: TransformerConfig | RNNConfig, given: str) -> Any:
    rows = [Row({"source": text, "target": translated(text)}, "x", 1) for text in texts(40)]
    task = Translate.fit(TranslateConfig.model_validate_json(given), rows)
    return task, taught(config, task, rows)


@cache
def labeller(config: ClassifierConfig) -> Any:
    rows = [Row({"text": text, "label": text.split()[0][:1]}, "x", 1) for text in texts(40)]
    task = Classify.fit(ClassifyConfig.model_validate({"tokenizer": TOKENIZER}), rows)
    return task, taught(config, task, rows)


def taught(config: Any, task: Any, rows: list[Row], steps: int = 30) -> Any:
    """No bias is left at zero and no scale at one, where a mistake could hide."""
    model = config.build(task.dims)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += torch.randn_like(parameter) * 0.1
    batch = task.collate(task.encode(rows))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(steps):
        optimizer.zero_grad()
        task.loss(model, batch).objective(batch.counts).backward()
        optimizer.step()
    return model.eval()
