"""Texts that one encoder reads: one alone, or two with a mark between them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.fields.axis import Axis, ended
from regard.fields.field import Arrays, Coded, Occlusion, Width
from regard.fields.padding import PAD, lengths, padded

if TYPE_CHECKING:
    from regard.fields.text import Text


@dataclass(frozen=True)
class Joined:
    """Arrays: `ids` with special tokens; for two texts also the place where the `second` begins."""

    fields: "tuple[Text, ...]"
    """They share one vocabulary."""
    limit: int
    """Tokens of all texts and the mark between them; the longer text is cut first."""
    name: str = "text"

    @property
    def width(self) -> Width:
        return self.fields[0].width

    @property
    def most(self) -> int:
        return self.limit + len(self.fields[0].tokenizer.with_special_tokens(()))

    def assemble(self, parts: Sequence[Coded]) -> Coded:
        tokenizer = self.fields[0].tokenizer
        texts = [part.arrays["ids"].tolist() for part in parts]
        kept = shortened(texts, self.limit)
        arrays = {"ids": np.array(tokenizer.with_special_tokens(*kept))}
        if len(kept) > 1:
            arrays["second"] = np.array([len(tokenizer.with_special_tokens(kept[0]))])
        return Coded(arrays, {"cut": kept != texts})

    def is_empty(self, arrays: Arrays) -> bool:
        size, least = len(arrays["ids"]), len(self.fields[0].tokenizer.with_special_tokens(()))
        if "second" not in arrays:
            return size <= least
        return not size > int(arrays["second"][0]) + 1 > least + 1

    def size(self, arrays: Arrays) -> int:
        return len(arrays["ids"])

    def collate(self, many: Sequence[Arrays]) -> Arrays:
        ids = [arrays["ids"] for arrays in many]
        batch = {"ids": padded(ids), "lengths": lengths(ids)}
        if "second" in many[0]:
            firsts = [(int(arrays["second"][0]), len(arrays["ids"])) for arrays in many]
            batch["segments"] = padded([np.repeat([0, 1], (second, n - second)) for second, n in firsts])
        return batch

    def without(self, batch: Arrays, axis: Axis, units: Sequence[int], how: Occlusion) -> Arrays:
        """Return a batch without these units; where marks stay, the row of a mark is the whole text again."""
        if how == "shorten":
            rows = {name: _without(batch[name], units) for name in ("ids", "segments") if name in batch}
            return rows | {"lengths": np.repeat(batch["lengths"] - 1, len(units))}
        stays = self.is_mark(batch["ids"][0, list(units)])
        if how == "blank":
            ids = np.repeat(batch["ids"], len(units), 0)
            gone = np.flatnonzero(~stays)
            ids[gone, np.array(units)[gone]] = self.blank
            return {name: np.repeat(array, len(units), 0) for name, array in batch.items()} | {"ids": ids}
        rows = {
            name: _without_words(batch[name], units, stays) for name in ("ids", "segments") if name in batch
        }
        return rows | {"lengths": batch["lengths"] - 1 + stays}

    @property
    def blank(self) -> int:
        """Token that stands in the place of a blanked one."""
        return self.fields[0].tokenizer.special.unknown

    def is_mark(self, ids: Any) -> Any:
        """Mask of the special tokens among these ids."""
        special = self.fields[0].tokenizer.special
        return np.isin(ids, [*special.begin, special.end])

    def axis(self, values: Sequence[str], coded: Coded) -> Axis:
        tokenizer, size = self.fields[0].tokenizer, len(coded.arrays["ids"])
        begin, end = tokenizer.tokens(tokenizer.special.begin), tokenizer.tokens([tokenizer.special.end])
        second = [int(coded.arrays["second"][0])] if "second" in coded.arrays else []
        parts = pairwise((len(begin), *second, size))
        words = [
            word
            for value, (first, after) in zip(values, parts, strict=True)
            for word in (*tokenizer.token_texts(value, after - first - 1), *end)
        ]
        return ended(self.name, (*begin, *words))


def shortened(texts: Sequence[list[int]], limit: int) -> list[list[int]]:
    """Cut one text, or two with a mark between them, to what fits; of two the longer is cut first.

    Where both lose, the one that was longer keeps the odd token, as in `tokenizers`.
    """
    if len(texts) == 1:
        return [texts[0][:limit]]
    first, second = texts
    room = limit - 1
    half = (room + (len(first) > len(second))) // 2
    kept = first[: max(room - len(second), half)]
    return [kept, second[: room - len(kept)]]


def _without_words(row_1T: Any, units: Sequence[int], stays: Any) -> Any:
    """A row for each of these units, without it unless it stays."""
    shorter = _without(row_1T, units)
    return np.where(stays[:, None], row_1T, np.pad(shorter, ((0, 0), (0, 1)), constant_values=PAD))


def _without(row_1T: Any, units: Sequence[int]) -> Any:
    """A row for each of these units, without it."""
    length = row_1T.shape[1]
    keep = np.arange(length) != np.array(units)[:, None]
    return np.repeat(row_1T, len(units), 0)[keep].reshape(len(units), length - 1)
