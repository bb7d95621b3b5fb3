"""Small models that have learnt a little, so that answers differ and end; and texts for them."""

import json
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, cast

import torch
from pydantic import TypeAdapter
from safetensors.torch import load_file, save_file

from regard.files.row import Asked, Row
from regard.models import ClassifierConfig, RNNConfig, TransformerConfig
from regard.tasks import (
    TASKS,
    Classify,
    ClassifyConfig,
    Recommend,
    RecommendConfig,
    TaskConfig,
    Translate,
    TranslateConfig,
)
from regard.text.tokenizer import Tokenizer, TokenizerConfig
from tiny import PLANTED, WORDS, stirred

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


def histories(n: int = 24) -> list[list[str]]:
    """Histories of items; one is longer than what is read of it, and one has an item that nobody knows."""
    rng = random.Random(n)
    found = [rng.sample([f"item {number}" for number in range(19)], k=1 + each % 11) for each in range(n)]
    found[4].append("nobody knows it")
    return found


def recommender(config: Any, **settings: Any) -> Any:
    """(task, model) with random weights."""
    known = [Row({"user": str(n), "items": items}, "x", n) for n, items in enumerate(histories(60), 1)]
    task = Recommend.fit(RecommendConfig.model_validate({"max_length": 7, "k": 5} | settings), known)
    torch.manual_seed(1)
    return task, stirred(config.build(task.widths)).eval()


def rows(kind: str, n: int = 40) -> list[Row]:
    """Of a task that answers at once; every third is longer than what is read of it, or read at once."""
    rng = random.Random(f"{kind} {n}")
    found = []
    for number in range(n):
        one, other = (rng.choices(WORDS, k=rng.randint(2, 5 if number % 3 else 17)) for _ in range(2))
        found.append(Row(_fields(kind, one, other), "x", number))
    return found


def _fields(kind: str, one: list[str], other: list[str]) -> dict[str, str]:
    text, second = " ".join(one), " ".join(other)
    match kind:
        case "classify_pair":
            return {"text": text, "second": second, "label": "more" if one[0] < other[0] else "less"}
        case "multilabel":
            return {"text": text, "label": ",".join(sorted({word[0] for word in one} & set("abcde")))}
        case "relation":
            marked = f"{text} <e1>{other[0]}</e1> of <e2>{other[1]}</e2> {second}"
            return {"text": marked, "label": f"R({'e1,e2' if other[0] < other[1] else 'e2,e1'})"}
        case "tag":
            return {"text": text, "tags": " ".join(_tags(one))}
        case _:
            answer = next((word for word in one if word in PLANTED), "")
            return {"question": f"{other[0]} of {other[1]}", "context": text, "answer": answer}


def _tags(words: list[str]) -> list[str]:
    """As in tiny.named."""
    found = ["O"]
    for word in words:
        found.append("O" if word not in PLANTED else "B-TREE" if found[-1] == "O" else "I-TREE")
    return found[1:]


def asked(kind: str, n: int = 24) -> list[Asked]:
    first, *others = TASKS[kind].settings().inputs
    fields = [row.cells for row in rows(kind, n)]
    return [{role: own[role] for role in (first, *others)} if others else own[first] for own in fields]


SHORT: dict[str, dict[str, int]] = {
    "classify_pair": {"max_length": 10},
    "multilabel": {"max_length": 9},
    "relation": {"max_length": 13},
    "tag": {"max_length": 8},
    "answer": {"max_length": 13, "overlap": 3, "max_question": 2, "max_answer": 2},
}
"""What is read, or read at once; tiny's encoders have positions for it."""


@cache
def reader(kind: str, config: Any, *, berts: bool = False) -> Any:
    """(task, model), not to be changed; with the marks of a BERT, or with ours."""
    learnt_from, task = rows(kind), cast(Any, TASKS[kind])
    given = TypeAdapter(TaskConfig).validate_python({"kind": kind, "tokenizer": TOKENIZER} | SHORT[kind])
    words = TokenizerConfig.model_validate({"kind": "wordpiece", "vocab_size": 80, "min_frequency": 1})
    texts = [text for row in learnt_from for role, text in row.cells.items() if role in given.inputs]
    own = (Tokenizer.train_bert(words, texts),) if berts else ()
    fitted = task.fit(given, learnt_from, *own)
    return fitted, taught(config, fitted, learnt_from)


def taught(config: Any, task: Any, rows: list[Row], steps: int = 30) -> Any:
    """No bias is left at zero and no scale at one, where a mistake could hide."""
    model = config.build(task.widths).requires_grad_()  # of one that counts, too
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
