"""Phrases that must be written: how far every hypothesis is with them, and which piece would bring it on.

A phrase counts as written when the text contains it, whatever pieces spell it (phrases.py); the search is led
to it by its usual pieces. What is left to write is kept within the room that is left, so that a hypothesis
can still keep every promise. Where bytes spell letters of a phrase all bytes are taken for letters, which
they need not be: what has ended is read once more.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.decode.phrases import Phrases, contains, is_word_character


@dataclass(frozen=True)
class Remaining:
    """Of every row: how many pieces are still to be written, if it goes straight on."""

    needed_N: Tensor
    needed_after_NV: Tensor
    """The same when this piece has come."""
    onward_NV: Tensor
    """The pieces that go straight on, or begin something that is still to be written."""


class Required:
    """`pieces` are each phrase's usual pieces within a text; `spellings` those of the whole vocabulary.

    `decode` says what the text of some pieces is.
    """

    def __init__(
        self,
        phrases: Sequence[str],
        pieces: Sequence[Sequence[int]],
        spellings: Sequence[str],
        end: int,
        decode: Callable[[Sequence[int]], str],
    ) -> None:
        self.pieces = [list(each) for each in pieces]
        self._found = [
            Phrases([phrase], spellings, end, byte_is_letter=_has_letters_in_bytes(phrase))
            for phrase in phrases
        ]
        self._phrases, self._decode = [_read(phrase) for phrase in phrases], decode
        self._n_vocab = len(spellings)

    def remaining(self, written_NT: Tensor) -> Remaining:
        rows_N, device = torch.arange(len(written_NT), device=written_NT.device), written_NT.device
        needed_N = furthest_N = torch.zeros(len(written_NT), dtype=torch.long, device=device)
        needed_NV = furthest_NV = torch.zeros(len(written_NT), self._n_vocab, dtype=torch.long, device=device)
        onward_NV = torch.zeros_like(needed_NV, dtype=torch.bool)
        for pieces, phrase in zip(self.pieces, self._found, strict=True):
            contained_N, contained_NV = phrase.contained_in(written_NT)
            begun_N = _begun(written_NT, pieces)
            next_N = torch.tensor(pieces, device=device)[begun_N]
            begun_NV = torch.zeros_like(needed_NV)
            begun_NV[:, pieces[0]] = 1
            begun_NV[rows_N, next_N] = begun_N + 1
            needed_N = needed_N + ~contained_N * len(pieces)
            furthest_N = torch.maximum(furthest_N, ~contained_N * begun_N)
            needed_NV = needed_NV + ~contained_NV * len(pieces)
            furthest_NV = torch.maximum(furthest_NV, ~contained_NV * begun_NV)
            onward_NV |= (begun_NV > 0) & ~contained_N[:, None]
        return Remaining(needed_N - furthest_N, needed_NV - furthest_NV, onward_NV)

    def is_kept_by(self, ids: Sequence[int]) -> bool:
        """Whether the text has every phrase in it."""
        text = self._decode(ids)
        return all(contains(text, phrase) for phrase in self._phrases)


def _has_letters_in_bytes(spelt: str) -> bool:
    whole = re.sub("[^\udc80-\udcff]", "", spelt)
    return any(map(is_word_character, _read(whole)))


def _read(spelt: str) -> str:
    """With the characters that single bytes spell."""
    return spelt.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _begun(written_NT: Tensor, pieces: Sequence[int]) -> Tensor:
    """How many of the pieces stand at the end of what is written, never all of them."""
    begun_N = torch.zeros(len(written_NT), dtype=torch.long, device=written_NT.device)
    for n in range(1, min(len(pieces), written_NT.shape[1] + 1)):
        first = torch.tensor(pieces[:n], device=written_NT.device)
        begun_N[(written_NT[:, written_NT.shape[1] - n :] == first).all(-1)] = n
    return begun_N
