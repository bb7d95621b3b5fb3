"""Phrases that every answer must contain: how many tokens a hypothesis still needs, and which come next.

A phrase counts as written when the text contains it, whichever tokens spell it (phrases.py); the search is
led to it by its usual tokens. The tokens that are left to write never exceed the length that is left, so that
every hypothesis can still contain every phrase. Where bytes spell letters of a phrase all bytes are taken for
letters, which they need not be: a finished answer is checked once more.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.decode.phrases import Phrases, contains, is_word_character


@dataclass(frozen=True)
class Remaining:
    """Required tokens that are left to write, in every row, if it goes straight on."""

    needed_N: Tensor
    needed_after_NV: Tensor
    """The same after each token of the vocabulary."""
    onward_NV: Tensor
    """The tokens that go straight on, or begin a phrase that is still to be written."""


class Required:
    """Required phrases. `tokens` are each phrase's usual tokens; `spellings` those of the whole vocabulary.

    `decode` gives the text of some tokens.
    """

    def __init__(
        self,
        phrases: Sequence[str],
        tokens: Sequence[Sequence[int]],
        spellings: Sequence[str],
        end: int,
        decode: Callable[[Sequence[int]], str],
    ) -> None:
        self.tokens = [list(each) for each in tokens]
        self._automata = [
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
        for tokens, phrase in zip(self.tokens, self._automata, strict=True):
            contained_N, contained_NV = phrase.contained_in(written_NT)
            begun_N = _begun(written_NT, tokens)
            next_N = torch.tensor(tokens, device=device)[begun_N]
            begun_NV = torch.zeros_like(needed_NV)
            begun_NV[:, tokens[0]] = 1
            begun_NV[rows_N, next_N] = begun_N + 1
            needed_N = needed_N + ~contained_N * len(tokens)
            furthest_N = torch.maximum(furthest_N, ~contained_N * begun_N)
            needed_NV = needed_NV + ~contained_NV * len(tokens)
            furthest_NV = torch.maximum(furthest_NV, ~contained_NV * begun_NV)
            onward_NV |= (begun_NV > 0) & ~contained_N[:, None]
        return Remaining(needed_N - furthest_N, needed_NV - furthest_NV, onward_NV)

    def is_kept_by(self, ids: Sequence[int]) -> bool:
        """True if the text contains every phrase."""
        text = self._decode(ids)
        return all(contains(text, phrase) for phrase in self._phrases)


def _has_letters_in_bytes(spelt: str) -> bool:
    whole = re.sub("[^\udc80-\udcff]", "", spelt)
    return any(map(is_word_character, _read(whole)))


def _read(spelt: str) -> str:
    """The spelling with the characters that single bytes spell."""
    return spelt.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _begun(written_NT: Tensor, tokens: Sequence[int]) -> Tensor:
    """The number of these tokens that stand at the end of each row, never all of them."""
    begun_N = torch.zeros(len(written_NT), dtype=torch.long, device=written_NT.device)
    for n in range(1, min(len(tokens), written_NT.shape[1] + 1)):
        first = torch.tensor(tokens[:n], device=written_NT.device)
        begun_N[(written_NT[:, written_NT.shape[1] - n :] == first).all(-1)] = n
    return begun_N
