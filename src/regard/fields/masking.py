"""Tokens hidden for a model to find, and what stands there instead: of every ten, the mask for eight, any
other token for one, and the token itself for one (Devlin et al. 2019, 3.1).

So a model cannot rely on what it sees to be what was there, nor on the mask to say where it will be asked.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.text.tokenizer import Tokenizer

Ints = NDArray[np.integer[Any]]

BEHIND_MASK, BEHIND_OTHER = 0.8, 0.1


class Masking:
    """`whole_words` hides all tokens of a word or none."""

    def __init__(self, tokenizer: Tokenizer, share: float, *, whole_words: bool) -> None:
        assert tokenizer.special.mask is not None
        self.share, self.whole_words, self.mask = share, whole_words, tokenizer.special.mask
        special = [*tokenizer.special.skipped, tokenizer.special.unknown]
        self._can_be_hidden_V = np.ones(len(tokenizer), bool)
        self._can_be_hidden_V[special] = False
        self._others = np.flatnonzero(self._can_be_hidden_V)
        self._continues_V = np.array([name.startswith("##") for name in tokenizer.names])

    def __call__(self, tokens: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """The tokens as they are seen, and the places of the hidden ones: one at least."""
        hideable = np.flatnonzero(self._can_be_hidden_V[tokens])
        n_hidden = max(1, round(self.share * len(hideable)))
        if self.whole_words:
            places = self._whole(self._words(tokens, hideable), n_hidden, rng)
        else:
            places = np.sort(rng.permutation(hideable)[:n_hidden])
        fate = rng.random(len(places))
        seen = tokens.copy()
        seen[places[fate < BEHIND_MASK]] = self.mask
        others = places[fate >= 1 - BEHIND_OTHER]
        if len(self._others):
            seen[others] = self._others[rng.integers(len(self._others), size=len(others))]
        return seen, places

    def _words(self, tokens: Ints, hideable: Ints) -> list[Ints]:
        """The places of each word's tokens."""
        apart = np.diff(hideable, prepend=-2) > 1
        begins = np.flatnonzero(apart | ~self._continues_V[tokens[hideable]])
        return np.split(hideable, begins[1:]) if len(hideable) else []

    def _whole(self, words: list[Ints], n_hidden: int, rng: np.random.Generator) -> Ints:
        """Words in random order as long as they fit; the first one in any case."""
        chosen: list[Ints] = []
        left = n_hidden
        for word in (words[i] for i in rng.permutation(len(words))):
            if len(word) <= left or not chosen:
                chosen.append(word)
                left -= len(word)
        return np.sort(np.concatenate(chosen)) if chosen else np.array([], np.int64)
