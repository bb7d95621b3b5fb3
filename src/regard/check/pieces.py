"""What the vocabulary makes of the text: lengths, what it cannot spell, what is too long to learn from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.check.finding import Finding, about
from regard.files.row import Row
from regard.tasks import AnyTask, TaskConfig
from regard.tasks.task_data import TaskData
from regard.text.tokenizer import TokenizerConfig

TOLERATED_UNKNOWN, TOLERATED_SPELT = 0.01, 0.1
"""Shares of pieces, unknown or single bytes, that are no reason to worry."""
BINS = 10


@dataclass(frozen=True)
class Pieces:
    """How many pieces each row of a split has, by role, and which shares of them are no learnt ones."""

    split: str
    rows: Sequence[Row]
    lengths: dict[str, NDArray[np.int64]]
    unknown: dict[str, float]
    spelt: dict[str, float]
    """In single bytes."""
    learnt: dict[str, int]
    """Pieces in the vocabulary."""


@dataclass(frozen=True)
class Histogram:
    """Bin i counts lengths from edges[i] up to, not with, edges[i + 1]; the last one everything above."""

    edges: tuple[int, ...]
    counts: tuple[int, ...]
    median: int
    longest: int


def cut(data: TaskData, task: AnyTask, splits: Mapping[str, Sequence[Row]]) -> list[Pieces]:
    return [_cut(data, task, split, rows) for split, rows in splits.items() if rows]


def _cut(data: TaskData, task: AnyTask, split: str, rows: Sequence[Row]) -> Pieces:
    lengths, unknown, spelt, learnt = {}, {}, {}, {}
    for role, tokenizer in task.tokenizers.items():
        learnt[role] = len(tokenizer)
        found = data.pieces(task, role, rows)
        flat = np.fromiter((i for ids in found for i in ids), dtype=np.int64)
        lengths[role] = np.array([len(ids) for ids in found])
        unknown[role] = float((flat == tokenizer.special.unknown).sum() / max(1, flat.size))
        spelt[role] = float(np.isin(flat, tokenizer.byte_ids).sum() / max(1, flat.size))
    return Pieces(split, rows, lengths, unknown, spelt, learnt)


def examine(pieces: Sequence[Pieces], data: TaskData, task: TaskConfig, begins: Path | None) -> list[Finding]:
    """`begins` is the folder whose vocabulary it is, if it was not learnt here."""
    settings: Any = task
    return [
        finding
        for one in pieces
        for finding in (*_too_long(one, data, task.max_length), *_unlearnt(one, settings, begins))
    ]


def histogram(lengths: NDArray[np.int64]) -> Histogram:
    """Ten bins or fewer of a round width, so that all but the longest hundredth fall below the last edge."""
    usual = max(1.0, float(np.quantile(lengths, 0.99)))
    widths = (digit * 10**power for power in range(12) for digit in (1, 2, 5))
    width = next(width for width in widths if width * BINS >= usual)
    edges = np.arange(0, usual, width)
    counts = np.histogram(lengths, bins=[*edges, np.inf])[0]
    return Histogram(
        tuple(map(int, edges)), tuple(map(int, counts)), int(np.median(lengths)), int(lengths.max())
    )


def _too_long(pieces: Pieces, data: TaskData, max_length: int) -> list[Finding]:
    if data.too_long is None or not pieces.lengths:
        return []
    too_long = data.length(list(pieces.lengths.values())) > max_length
    rows = [pieces.rows[int(i)] for i in np.flatnonzero(too_long)]
    severity, fate = data.too_long(pieces.split)
    remark = f"({len(rows) / len(pieces.rows):.1%}) longer than task.max_length = {max_length} pieces, {fate}"
    return about(severity, "too-long", pieces.split, rows, remark)


def _unlearnt(pieces: Pieces, settings: Any, begins: Path | None) -> list[Finding]:
    """What is unknown or spelt in bytes; of a task whose rows have tokens, which has a tokenizer."""
    found = []
    for role in pieces.lengths:
        of = f"{pieces.split}: {{share:.1%}} of the {role}'s pieces are"
        tokenizer: TokenizerConfig = settings.tokenizer
        remedy = _remedy(pieces.learnt[role], tokenizer)
        if (share := pieces.unknown[role]) > TOLERATED_UNKNOWN:
            remark = f"unknown; {_known_otherwise(tokenizer, begins, remedy)}"
            found.append(Finding("warning", "unknown", f"{of.format(share=share)} {remark}"))
        if (share := pieces.spelt[role]) > TOLERATED_SPELT and pieces.split == "train":
            remark = f"single bytes of rare characters; {remedy}"
            found.append(Finding("warning", "spelt", f"{of.format(share=share)} {remark}"))
    return found


def _known_otherwise(tokenizer: TokenizerConfig, begins: Path | None, remedy: str) -> str:
    if begins is not None:
        return f"the vocabulary is that of {begins}: begin with a model that was trained on such text"
    return f"{remedy}, or use kind bpe or unigram" if tokenizer.may_spell else remedy


def _remedy(n_learnt: int, config: TokenizerConfig) -> str:
    if n_learnt >= config.vocab_size:
        return "raise task.tokenizer.vocab_size"
    return (
        "lower task.tokenizer.min_frequency" if config.min_frequency > 1 else "give more text to learn from"
    )
