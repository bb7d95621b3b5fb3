"""Which pieces of a text are hidden, and behind what: of every ten, eight behind the mask, one behind any
other piece, and one behind itself (Devlin et al. 2019, 3.1).

So a model cannot rely on what it sees to be what was there, nor on the mask to say where it will be asked.
"""

import numpy as np

from regard.data.cache import Ints
from regard.text.tokenizer import Tokenizer

BEHIND_MASK, BEHIND_OTHER = 0.8, 0.1


class Masking:
    """`whole_words` hides all pieces of a word or none."""

    def __init__(self, tokenizer: Tokenizer, share: float, *, whole_words: bool) -> None:
        assert tokenizer.marks.mask is not None
        self.share, self.whole_words, self.mask = share, whole_words, tokenizer.marks.mask
        marks = [*tokenizer.marks.unspoken, tokenizer.marks.unknown]
        self._is_piece_V = np.ones(len(tokenizer), bool)
        self._is_piece_V[marks] = False
        self._pieces = np.flatnonzero(self._is_piece_V)
        self._continues_V = np.array([name.startswith("##") for name in tokenizer.names])

    def __call__(self, tokens: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """What is seen instead of the tokens, and the places where they are to be told: one at least."""
        pieces = np.flatnonzero(self._is_piece_V[tokens])
        n_hidden = max(1, round(self.share * len(pieces)))
        if self.whole_words:
            places = self._whole(self._words(tokens, pieces), n_hidden, rng)
        else:
            places = np.sort(rng.permutation(pieces)[:n_hidden])
        fate = rng.random(len(places))
        seen = tokens.copy()
        seen[places[fate < BEHIND_MASK]] = self.mask
        others = places[fate >= 1 - BEHIND_OTHER]
        if len(self._pieces):
            seen[others] = self._pieces[rng.integers(len(self._pieces), size=len(others))]
        return seen, places

    def _words(self, tokens: Ints, pieces: Ints) -> list[Ints]:
        """The places of each word's pieces."""
        apart = np.diff(pieces, prepend=-2) > 1
        begins = np.flatnonzero(apart | ~self._continues_V[tokens[pieces]])
        return np.split(pieces, begins[1:]) if len(pieces) else []

    def _whole(self, words: list[Ints], n_hidden: int, rng: np.random.Generator) -> Ints:
        """Words in random order as long as they fit; the first one in any case."""
        chosen: list[Ints] = []
        left = n_hidden
        for word in (words[i] for i in rng.permutation(len(words))):
            if len(word) <= left or not chosen:
                chosen.append(word)
                left -= len(word)
        return np.sort(np.concatenate(chosen)) if chosen else np.array([], np.int64)
