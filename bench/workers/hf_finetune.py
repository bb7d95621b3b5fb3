"""transformers' own fine-tuning: its Trainer, its model for the kind of task, its padding of each batch.

It is told by a JSON file what to train on and how; the best epoch by the validation data is kept. Its last
line tells what it answers to the test data, and how many examples it learnt from a second.
"""

import argparse
import json
import tempfile
import time
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import transformers

UNSCORED = -100
WARM_UP = 5
"""Steps before the clock starts."""
WHOLE = {
    "eval_strategy": "epoch",
    "save_strategy": "epoch",
    "bf16": True,
    "train_sampling_strategy": "group_by_length",
}
"""How a whole training differs from steps by the clock, which are timed as the Trainer has them by itself."""


class Clock(transformers.TrainerCallback):
    """When each step ended: between two of them a batch is made and learnt from."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.ends.append(time.perf_counter())


def classified(tokenizer: Any, rows: list[dict[str, Any]], index: dict[str, int], room: int) -> list[Any]:
    return [
        tokenizer(row["text"], truncation=True, max_length=room) | {"labels": index[row["label"]]}
        for row in rows
    ]


def tagged(tokenizer: Any, rows: list[dict[str, Any]], index: dict[str, int], room: int) -> list[Any]:
    """A word is its first piece."""
    found = []
    for row in rows:
        encoded = tokenizer(row["words"], is_split_into_words=True, truncation=True, max_length=room)
        words = encoded.word_ids()
        labels = [
            UNSCORED if word is None or word == before else index[row["tags"][word]]
            for before, word in zip([None, *words], words, strict=False)
        ]
        found.append(dict(encoded) | {"labels": labels})
    return found


def answers(scores: Any, labels: Any, names: list[str]) -> list[Any]:
    best = scores.argmax(-1)
    if labels.ndim == 1:
        return [names[i] for i in best]
    return [[names[i] for i in own[gold != UNSCORED]] for own, gold in zip(best, labels, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("told", type=Path)
    told = json.loads(parser.parse_args().told.read_text("utf-8"))
    transformers.set_seed(told["seed"])
    transformers.logging.set_verbosity_error()
    tokenizer = transformers.AutoTokenizer.from_pretrained(told["model"], local_files_only=True)
    tag = told["kind"] == "tag"
    auto = (
        transformers.AutoModelForTokenClassification
        if tag
        else transformers.AutoModelForSequenceClassification
    )
    model = auto.from_pretrained(told["model"], num_labels=len(told["names"]), local_files_only=True)
    if told["marks"]:
        tokenizer.add_special_tokens({"additional_special_tokens": told["marks"]})
        model.resize_token_embeddings(len(tokenizer))
    index = {name: number for number, name in enumerate(told["names"])}
    encode = tagged if tag else classified
    splits = {
        split: encode(tokenizer, rows, index, told["max_length"] + 2) for split, rows in told["rows"].items()
    }
    collate = transformers.DataCollatorForTokenClassification if tag else transformers.DataCollatorWithPadding
    clock = Clock()
    per_epoch = -(-len(splits["train"]) // told["batch"])
    with tempfile.TemporaryDirectory() as folder:
        way = {"save_strategy": "no"} if told["steps"] else WHOLE
        trainer = transformers.Trainer(
            model=model,
            args=transformers.TrainingArguments(
                output_dir=folder,
                use_cpu=True,
                per_device_train_batch_size=told["batch"],
                per_device_eval_batch_size=64,
                max_steps=told["steps"] or per_epoch * told["epochs"],
                learning_rate=told["lr"],
                lr_scheduler_type="linear",
                warmup_steps=told["warmup"],
                weight_decay=told["weight_decay"],
                seed=told["seed"],
                report_to=[],
                disable_tqdm=True,
                save_total_limit=1,
                metric_for_best_model="eval_score",
                load_best_model_at_end=not told["steps"],
                **way,
            ),
            train_dataset=splits["train"],
            eval_dataset=splits["valid"],
            data_collator=collate(tokenizer),
            compute_metrics=partial(score, told["names"]),
            callbacks=[clock],
        )
        trainer.train()
        trainer.args.train_sampling_strategy = "sequential"  # else it predicts in another order, too
        found = {} if told["steps"] else trainer.predict(splits["test"])
    measured = clock.ends[WARM_UP:]
    answer = {
        "answers": answers(found.predictions, found.label_ids, told["names"]) if found else [],
        "valid": trainer.state.best_metric,
        "examples_per_s": told["batch"] * (len(measured) - 1) / (measured[-1] - measured[0]),
        "minutes": (clock.ends[-1] - clock.ends[0]) / 60,
        "versions": {name: version(name) for name in ("torch", "transformers", "accelerate")},
    }
    print(json.dumps(answer), flush=True)


def score(names: list[str], found: Any) -> dict[str, float]:
    """By which the epoch is picked: the F1 of spans where tags are BIO's, else the share of right answers."""
    best, gold = found.predictions.argmax(-1), found.label_ids
    if "O" not in names or gold.ndim == 1:
        asked = gold != UNSCORED
        return {"score": float(np.mean(best[asked] == gold[asked]))}
    told, wanted = (
        {
            (n, *span)
            for n, own in enumerate(gold)
            for span in spans([names[i] for i in side[n][own != UNSCORED]])
        }
        for side in (best, gold)
    )
    return {"score": 2 * len(told & wanted) / max(1, len(told) + len(wanted))}


def spans(tags: list[str]) -> list[tuple[int, int, str]]:
    """Of BIO, as conlleval takes it: an I- after another kind begins a span too."""
    found: list[tuple[int, int, str]] = []
    for place, (before, tag) in enumerate(zip(["O", *tags], tags, strict=False)):
        if tag == "O":
            continue
        if tag.startswith("I-") and before != "O" and before[2:] == tag[2:]:
            found[-1] = (found[-1][0], place, tag[2:])
        else:
            found.append((place, place, tag[2:]))
    return found


if __name__ == "__main__":
    main()
