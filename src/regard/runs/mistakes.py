"""The worst mistakes of a model: wrong answers that it was most sure of, for the report of its run."""

from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Self

import torch
from pydantic import BaseModel, ConfigDict, StringConstraints
from torch import nn

from regard import durable
from regard.data.batching import sorted_batches
from regard.files.row import text_of
from regard.tasks.task import Task, evaluating

NAME = "mistakes.json"
MOST = 60
"""Mistakes kept."""
MOST_WRONG = 3_000
"""Wrong answers that are asked for again, to know how sure each was; of more an even sample."""
MOST_CHARACTERS = 300
MOST_PICTURES = 3_000_000
"""Bytes of pictures together."""


class Mistake(BaseModel):
    model_config = ConfigDict(extra="ignore")

    where: str
    input: str
    expected: str
    answer: str
    probability: float
    picture: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9+/]+=*$")] | None = None
    """PNG in base64, as the model saw it."""


class Mistakes(BaseModel):
    model_config = ConfigDict(extra="ignore")

    format_version: int = 1
    split: str
    n_wrong: int
    n_examples: int
    worst: list[Mistake]

    @classmethod
    def read(cls, run: Path) -> Self | None:
        """Those of a finished run; None where there are none, or the file is damaged."""
        try:
            return cls.model_validate(durable.read_json(run / NAME))
        except (OSError, ValueError):
            return None

    def write(self, run: Path) -> None:
        durable.write_file(run / NAME, self.model_dump_json(indent=1))


def worst_mistakes(
    task: Task, model: nn.Module, examples: Sequence[Any], tally: Any, split: str, device: torch.device
) -> Mistakes | None:
    """The mistakes that a tally counted, the surest first; None where answers are more or less good."""
    wrong = task.mistakes(tally)
    if wrong is None:
        return None
    expected = dict(wrong)
    some = [*expected][:: -(-len(wrong) // MOST_WRONG) or 1]
    answers: dict[int, Any] = {}
    with evaluating(model):
        sizes = [task.size(examples[at]) for at in some]
        for indices in sorted_batches(sizes, 4096, task.max_batch_rows):
            batch = task.collate([examples[some[at]] for at in indices]).to(device)
            answers |= {some[indices[at]]: answer for at, answer in task.predict(model, batch)}
    surest = sorted(answers, key=lambda at: -answers[at].probability)[:MOST]
    found, n_bytes = [], 0
    for at in surest:
        example, answer = examples[at], answers[at]
        axes = task.axes(example, answer)
        picture = axes.by_name[axes.left_out].picture
        n_bytes += len(picture or b"")
        if n_bytes > MOST_PICTURES:
            break
        found.append(
            Mistake(
                where=example.row.where,
                input=_shown(task, example),
                expected=expected[at],
                answer=answer.text,
                probability=answer.probability,
                picture=None if picture is None else b64encode(picture).decode(),
            )
        )
    return Mistakes(split=split, n_wrong=len(wrong), n_examples=len(examples), worst=found)


def _shown(task: Task, example: Any) -> str:
    text = "\n".join(text_of(example.row.cells[role]) for role in task.inputs)
    return text if len(text) <= MOST_CHARACTERS else text[:MOST_CHARACTERS] + "…"
