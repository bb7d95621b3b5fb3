"""caption: a column of pictures, and one of texts about them, several of which may be about the same one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from regard.check.finding import Finding, Severity, about
from regard.check.rows import Splits, absurdly_long, shared
from regard.fields.captions import Captions
from regard.fields.field import Suggestion
from regard.fields.image import Image
from regard.files.captions import is_coco
from regard.files.columns import Column
from regard.files.row import Row
from regard.init.columns import Picked, Table
from regard.init.guess import Guess
from regard.init.match import NOT, Fit, Given, Match, Missing, find_roles
from regard.init.plan import Plan
from regard.init.settings import Pace, Setting
from regard.tasks.task_data import TaskData

SURE = 0.5
"""The share of cells that are like pictures, or like captions, from which a column holds such."""
BATCH = 8192
"""Units of 4 × 4 pixels."""
FEW = 5_000
"""Pictures, below which nobody learns to see."""


@dataclass(frozen=True)
class CaptionData(TaskData):
    def recognise(self, table: Table, given: Given) -> Match | Missing:
        found = find_roles(table, self.roles, self.texts, self.may_lack, self.pick, given)
        if isinstance(found, Missing):
            return found
        return found.match(self.fit(table, found.roles), self.kinds)

    def suggestions(self, guess: Guess, decided: Mapping[str, Mapping[str, Any]]) -> dict[str, Suggestion]:
        """What a first recipe says about pictures, which are never mirrored: captions say left and right."""
        found = super().suggestions(guess, decided)
        return {
            role: one._replace(
                settings={name: value for name, value in one.settings.items() if name != "flip"}
            )
            for role, one in found.items()
        }


def _pick(role: str, rest: Table) -> Picked:
    if role == "image":
        pictures = [name for name, cells in rest.cells.items() if Image.resembles(cells) > SURE]
        return (pictures[0], "its cells are pictures") if pictures else (None, "")
    texts = [name for name, cells in rest.cells.items() if _are_captions(cells)]
    return (texts[0], "it holds texts") if texts else (None, "")


def _are_captions(cells: Sequence[Any]) -> bool:
    return Image.resembles(cells) <= SURE and Captions.resembles(cells) > SURE


def _fit(table: Table, roles: Mapping[str, Column | None]) -> Fit:
    image, captions = (table.cells.get(roles[role] or 0, ()) for role in ("image", "captions"))
    if not (image and captions and Image.resembles(image) > SURE and _are_captions(captions)):
        return NOT
    return 0.9, "pictures with texts about them"


def _sections(plan: Plan) -> Mapping[str, list[Setting]]:
    begin = "to begin with one that was trained to classify: init_from = RUN in [model]"
    return {
        "task": [Setting("kind", "caption", plan.guess.reason)],
        "task.tokenizer": [
            Setting("kind", "word", "captions have few different words"),
            Setting("lowercase", True),
        ],
        "model": [Setting("kind", "captioner")],
        "model.encoder": [Setting("kind", "cnn", begin)],
        "model.decoder": [Setting("kind", "rnn", "or transformer")],
    }


def _pace(plan: Plan) -> Pace:
    return Pace(
        epochs=max(10, min(100, round(100_000 / plan.guess.n_rows))),
        warmup=200,
        lr=1e-3,
        patience=8,
        average=1,
        batch_tokens=BATCH,
        batch_reason="units of 4 × 4 pixels",
    )


def _examine(splits: Splits, config: Any) -> list[Finding]:
    found = []
    for split, rows in splits.items():
        without = [row for row in rows if not row.cells["captions"]]
        fate = "left out of training" if split == "train" else "scored as if it were empty"
        found += about("warning", "without-caption", split, without, f"without a caption, {fate}")
    if 0 < len(splits["train"]) < FEW:
        message = (
            f"train: {len(splits['train']):,} pictures are too few to learn to see from; begin with a "
            "trained encoder (model.init_from), or expect a demonstration"
        )
        found.append(Finding("note", "few-pictures", message))
    return [*found, *absurdly_long(splits, ["captions"]), *shared(splits, "image")]


def _longest(task: Any, role: str, rows: Sequence[Row]) -> list[list[int]]:
    """The tokens of the longest caption of each row."""
    return [
        max(task.tokenizers[role].ids(row.cells["captions"]), key=len) if row.cells["captions"] else []
        for row in rows
    ]


def _too_long(split: str) -> tuple[Severity, str]:
    return "warning", "of which only shorter captions are learnt from" if split == "train" else "read whole"


CAPTION = CaptionData(
    roles=("image", "captions", "objects"),
    texts=("captions",),
    may_lack=frozenset({"objects"}),
    pick=_pick,
    fit=_fit,
    sections=_sections,
    pace=_pace,
    examine=_examine,
    too_long=_too_long,
    tokens=_longest,
    kinds={"image": "image"},
    formats=frozenset({"squad", "captions"}),
    holds=is_coco,
    usable=lambda row: bool(row.cells["captions"]),
)
