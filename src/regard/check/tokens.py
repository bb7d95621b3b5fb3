"""Tokens of the text: lengths, what the vocabulary cannot spell, what is too long to learn from."""

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
"""Shares of tokens, unknown or single bytes, that are no reason to worry."""
BINS = 10


@dataclass(frozen=True)
class TokenCounts:
    """Number of tokens of each row of a split, by role, and the shares of them that were not learnt."""

    split: str
    rows: Sequence[Row]
    lengths: dict[str, NDArray[np.int64]]
    unknown: dict[str, float]
    spelt: dict[str, float]
    """Share in single bytes."""
    learnt: dict[str, int]
    """Tokens in the vocabulary."""


@dataclass(frozen=True)
class Histogram:
    """Bin i counts lengths from edges[i] up to, not with, edges[i + 1]; the last one everything above."""

    edges: tuple[int, ...]
    counts: tuple[int, ...]
    median: int
    longest: int


def cut(data: TaskData, task: AnyTask, splits: Mapping[str, Sequence[Row]]) -> list[TokenCounts]:
    return [_cut(data, task, split, rows) for split, rows in splits.items() if rows]


def _cut(data: TaskData, task: AnyTask, split: str, rows: Sequence[Row]) -> TokenCounts:
    lengths, unknown, spelt, learnt = {}, {}, {}, {}
    for role, tokenizer in task.tokenizers.items():
        learnt[role] = len(tokenizer)
        ids_of_rows = data.tokens(task, role, rows)
        flat = np.fromiter((i for ids in ids_of_rows for i in ids), dtype=np.int64)
        lengths[role] = np.array([len(ids) for ids in ids_of_rows])
        unknown[role] = float((flat == tokenizer.special.unknown).sum() / max(1, flat.size))
        spelt[role] = float(np.isin(flat, tokenizer.byte_ids).sum() / max(1, flat.size))
    return TokenCounts(split, rows, lengths, unknown, spelt, learnt)


def examine(
    counts: Sequence[TokenCounts], data: TaskData, task: TaskConfig, begins: Path | None
) -> list[Finding]:
    """`begins` is the folder whose vocabulary it is, if it was not learnt here."""
    settings: Any = task
    return [
        finding
        for one in counts
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


def _too_long(counts: TokenCounts, data: TaskData, max_length: int) -> list[Finding]:
    if data.too_long is None or not counts.lengths:
        return []
    too_long = data.length(list(counts.lengths.values())) > max_length
    rows = [counts.rows[int(i)] for i in np.flatnonzero(too_long)]
    severity, fate = data.too_long(counts.split)
    remark = f"({len(rows) / len(counts.rows):.1%}) longer than task.max_length = {max_length} tokens, {fate}"
    return about(severity, "too-long", counts.split, rows, remark)


def _unlearnt(counts: TokenCounts, settings: Any, begins: Path | None) -> list[Finding]:
    """Findings on what is unknown or spelt in bytes; a task whose rows have tokens has a tokenizer."""
    findings = []
    for role in counts.lengths:
        of = f"{counts.split}: {{share:.1%}} of the {role}'s tokens are"
        tokenizer: TokenizerConfig = settings.tokenizer
        remedy = _remedy(counts.learnt[role], tokenizer)
        if (share := counts.unknown[role]) > TOLERATED_UNKNOWN:
            remark = f"unknown; {_known_otherwise(tokenizer, begins, remedy)}"
            findings.append(Finding("warning", "unknown", f"{of.format(share=share)} {remark}"))
        if (share := counts.spelt[role]) > TOLERATED_SPELT and counts.split == "train":
            remark = f"single bytes of rare characters; {remedy}"
            findings.append(Finding("warning", "spelt", f"{of.format(share=share)} {remark}"))
    return findings


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
