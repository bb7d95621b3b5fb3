"""A BERT fine-tuned to answer questions, here and with transformers: the same start, questions and steps.

    python bench/answer_beside_transformers.py --start FOLDER --train train.json --valid valid.json \
        --test squad_dev_half_answerable.json.gz [--questions 3000] [--append bench/RESULTS.md]

FOLDER is a BERT of Hugging Face; bench/held_out_articles.py makes train.json and valid.json. Settings are
those of recipes/squad_minilm.toml. BertForQuestionAnswering learns from the windows that regard cut, with its
own loss and dropout, in as many steps, with products as precise as regard's and windows of similar length in
a batch; both keep the epoch with the best F1 on validation questions, and regard finds and scores the spans
of both. What differs: regard's batches hold about as many pieces, transformers' as many windows; and regard
drops no attention weights.
"""

import argparse
import json
import random
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from transformers import BertForQuestionAnswering, get_linear_schedule_with_warmup

import regard
from regard.data.example import Example
from regard.fields.field import Coded
from regard.layers.inputs import Inputs
from regard.metrics.resample import differences, intervals
from regard.tasks import task_rows
from regard.tasks.answer import Answer, AnswerBatch, AnswerTally
from regard.training.config import TrainConfig
from regard.training.evaluate import evaluate
from regard.training.precision import autocast, uses_bfloat16

BENCH = Path(__file__).resolve().parent
sys.path[:0] = [str(BENCH)]

from train_speed import machine  # noqa: E402

RECIPE = BENCH.parent / "recipes" / "squad_minilm.toml"
CPU = torch.device("cpu")
TOGETHER = 50
"""Batches that are drawn together and sorted by length, as the Trainer does where it is asked to."""


@dataclass(frozen=True)
class Result:
    steps: int
    minutes: float
    valid: dict[str, float]
    test: AnswerTally


class Theirs(nn.Module):
    """BertForQuestionAnswering, asked as regard's task asks a model."""

    def __init__(self, start: Path) -> None:
        super().__init__()
        self.bert = BertForQuestionAnswering.from_pretrained(start)

    def loss(self, batch: AnswerBatch) -> Tensor:
        first_R, last_R = batch.ends_R2.unbind(1)
        loss: Tensor = self._output(batch.inputs, start_positions=first_R, end_positions=last_R).loss
        return loss

    def forward(self, inputs: Inputs) -> tuple[Tensor, Tensor]:
        output, beyond_RT = self._output(inputs), ~_is_token(inputs)
        start_RT, end_RT = (
            scores_RT.masked_fill(beyond_RT, -torch.inf)
            for scores_RT in (output.start_logits, output.end_logits)
        )
        return start_RT, end_RT

    def _output(self, inputs: Inputs, **more: Tensor) -> Any:
        keep_RT, segments_RT = _is_token(inputs).long(), inputs["segments"]
        return self.bert(input_ids=inputs["ids"], attention_mask=keep_RT, token_type_ids=segments_RT, **more)


def _is_token(inputs: Inputs) -> Tensor:
    return torch.arange(inputs["ids"].shape[1]) < inputs["lengths"][:, None]


def sample(path: Path, n_questions: int, seed: int, out: Path) -> None:
    """So many of a file's questions, drawn at random and left in their order."""
    told = json.loads(path.read_text("utf-8"))
    parts = [part for article in told["data"] for part in article["paragraphs"]]
    ids = [one["id"] for part in parts for one in part["qas"]]
    kept = set(random.Random(seed).sample(ids, min(n_questions, len(ids))))
    for part in parts:
        part["qas"] = [one for one in part["qas"] if one["id"] in kept]
    out.write_text(json.dumps(told), "utf-8")


def examples(task: Answer, file: Path) -> list[Example]:
    return task.encode(list(task_rows(task.config, [str(file)], dict.fromkeys(task.roles))))


def result(task: Answer, model: nn.Module, options: argparse.Namespace, steps: int, minutes: float) -> Result:
    (valid, _), (_, tally) = (
        evaluate(task, model, examples(task, file), CPU, thorough=True)
        for file in (options.valid, options.test)
    )
    assert isinstance(tally, AnswerTally)
    return Result(steps, minutes, valid, tally)


def ours(options: argparse.Namespace, train: Path, run: Path) -> tuple[Answer, Result]:
    settings = {
        "run": run,
        "seed": options.seed,
        "model.init_from": options.start,
        "data.train": train,
        "data.valid": options.valid,
        "train.max_epochs": options.epochs,
        "train.threads": options.threads,
    }
    told = regard.Recipe.read(RECIPE, [f"{name}={value}" for name, value in settings.items()])
    begin = time.perf_counter()
    trained = regard.train(told.model_copy(update={"data": told.data.model_copy(update={"test": None})}))
    minutes = (time.perf_counter() - begin) / 60
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text("utf-8").splitlines()]
    assert isinstance(trained.task, Answer)
    steps = max(line.get("step", 0) for line in lines)
    return trained.task, result(trained.task, trained.model, options, steps, minutes)


def theirs(task: Answer, options: argparse.Namespace, train: Path, n_steps: int, plan: TrainConfig) -> Result:
    torch.manual_seed(options.seed)
    begin = time.perf_counter()
    model, valid = Theirs(options.start), examples(task, options.valid)
    learnt = filter(task.usable, examples(task, train))
    windows = [window for example in learnt for window in windows_of(task, example)]
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=plan.lr, betas=plan.betas, eps=plan.eps, weight_decay=plan.weight_decay
    )
    schedule = get_linear_schedule_with_warmup(optimizer, plan.warmup, n_steps)
    best, kept = -1.0, model.state_dict()
    bfloat16 = uses_bfloat16(plan, CPU, model.bert.config.hidden_size)
    for epoch in range(options.epochs):
        model.train()
        n_parts = n_steps * (epoch + 1) // options.epochs - n_steps * epoch // options.epochs
        for batch in batches(windows, n_parts):
            optimizer.zero_grad()
            with autocast(CPU, bfloat16=bfloat16):
                loss = model.loss(task.collate(batch))
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), plan.clip_norm)
            optimizer.step()
            schedule.step()
        found, _ = evaluate(task, model, valid, CPU, thorough=True)
        print(f"transformers, epoch {epoch + 1}: F1 {found['f1']:.2f}", flush=True)
        if found["f1"] > best:
            best, kept = found["f1"], {name: tensor.clone() for name, tensor in model.state_dict().items()}
    minutes = (time.perf_counter() - begin) / 60
    model.load_state_dict(kept)
    return result(task, model, options, n_steps, minutes)


def windows_of(task: Answer, example: Example) -> Iterator[Example]:
    for at, ends in enumerate(example.arrays["ends"]):
        window = task.input.window(Coded(example.arrays, example.notes), at)
        yield Example(example.row, {**window.arrays, "ends": ends[None]}, window.notes)


def batches(windows: Sequence[Example], n: int) -> Iterator[list[Example]]:
    """All windows, in so many parts of one size; those of a part are of similar length."""
    drawn = torch.randperm(len(windows)).split(TOGETHER * (len(windows) // n))
    alike = [i for some in drawn for i in sorted(some.tolist(), key=lambda i: len(windows[i].arrays["ids"]))]
    parts = torch.tensor(alike).tensor_split(n)
    for number in torch.randperm(n).tolist():
        yield [windows[i] for i in parts[number].tolist()]


def shown(value: float, interval: tuple[float, float]) -> str:
    return f"{value:.2f} [{interval[0]:.2f}, {interval[1]:.2f}]"


def section(options: argparse.Namespace, found: dict[str, Result]) -> str:
    rows = [
        "| | steps | minutes | dev F1 | dev EM | test F1 [95 %] | test EM [95 %] |",
        "|---|---|---|---|---|---|---|",
    ]
    for tool, one in found.items():
        plain, ranges = one.test.metrics(), intervals(one.test)
        cells = [f"{one.valid[name]:.2f}" for name in ("f1", "em")]
        cells += [shown(plain[name], ranges[name]) for name in ("f1", "em")]
        rows.append(f"| {tool} | {one.steps} | {one.minutes:.0f} | {' | '.join(cells)} |")
    here, there = (one.test for one in found.values())
    given = [Path(one).name if Path(one).is_absolute() else one for one in sys.argv[1:]]
    apart = differences(here, there)["f1"]
    return (
        f"\n## Answering beside transformers, {date.today()}\n\n"
        f"`{shlex.join(['python', 'bench/answer_beside_transformers.py', *given])}`\n\n"
        f"Machine: {machine()}; threads: {options.threads}; torch {torch.__version__}; seed {options.seed}; "
        f"{options.questions:,} training questions at most, {len(here.truth):,} test questions.\n\n"
        + "\n".join(rows)
        + f"\n\nDifference in F1: {shown(apart.value, apart.interval)}, p = {apart.p:.2g}.\n"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--start", type=Path, required=True, help="folder of a BERT")
    for split in ("train", "valid", "test"):
        parser.add_argument(f"--{split}", type=Path, required=True, help="of SQuAD's shape")
    parser.add_argument("--questions", type=int, default=3000, help="learnt from")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--append", type=Path, help="Markdown file to add a dated section to")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as scratch:
        train = Path(scratch) / "train.json"
        sample(options.train, options.questions, options.seed, train)
        task, here = ours(options, train, Path(scratch) / "run")
        there = theirs(task, options, train, here.steps, regard.Recipe.read(RECIPE).train)
    told = section(options, {"regard": here, f"transformers {transformers.__version__}": there})
    print(told)
    if options.append:
        with options.append.open("a", encoding="utf-8") as file:
            file.write(told)


if __name__ == "__main__":
    main()
