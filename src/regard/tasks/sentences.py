"""Sentences as a tagger reads them: words in pieces, batches of windows that know where each word stands."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from torch import Tensor

from regard.data.cache import Ints
from regard.files.row import Row
from regard.tasks.shared import Padded
from regard.tasks.task import padded
from regard.tasks.windows import windows
from regard.text.tokenizer import Marks


@dataclass(frozen=True, slots=True)
class Sentence:
    row: Row
    tokens: Ints
    n_pieces: Ints
    """Of each word."""
    tags: Ints
    """Of each word; none when unknown."""
    cut: bool = False
    """A word had so many pieces that only its beginning was kept."""
    illegal: bool = False
    """Its tags are not what their scheme allows."""

    @property
    def starts(self) -> Ints:
        """Where each word's first piece stands."""
        return np.cumsum(self.n_pieces) - self.n_pieces

    def first_window(self, max_length: int) -> Self:
        end = windows(self.n_pieces, max_length).spans[0][1]
        n_words = int((np.cumsum(self.n_pieces) <= end).sum())
        return replace(
            self, tokens=self.tokens[:end], n_pieces=self.n_pieces[:n_words], tags=self.tags[:n_words]
        )


@dataclass(frozen=True)
class Sentences(Padded):
    tokens_RT: Tensor
    """Windows of all sentences, one after another, each between the marks of its vocabulary."""
    lengths_R: Tensor
    at_BN: Tensor
    """Where the first piece of each word stands among all of tokens_RT."""
    keep_BN: Tensor
    tags_BN: Tensor
    examples: tuple[Sentence, ...]

    @property
    def legal_BN(self) -> Tensor:
        """The words of sentences whose tags can be told; the others would cost without end."""
        illegal_B = torch.tensor([example.illegal for example in self.examples], device=self.keep_BN.device)
        return self.keep_BN & ~illegal_B[:, None]

    @property
    def counts(self) -> dict[str, int]:
        return {"words": int(self.legal_BN.sum())}

    @classmethod
    def of(cls, examples: Sequence[Sentence], max_length: int, marks: Marks) -> Self:
        found: list[Ints] = []
        owners: list[Ints] = []
        places: list[Ints] = []
        for example in examples:
            spans, owner = windows(example.n_pieces, max_length)
            owners.append(owner + len(found))
            begins = np.array([begin for begin, _ in spans])
            places.append(example.starts - begins[owner] + len(marks.begin))
            found += [np.array((*marks.begin, *example.tokens[begin:end], marks.end)) for begin, end in spans]
        tokens_RT = padded(found)
        n_words_B = torch.tensor([len(place) for place in places])
        keep_BN = torch.arange(max(1, int(n_words_B.max()))) < n_words_B[:, None]
        at_BN, tags_BN = torch.zeros(2, *keep_BN.shape, dtype=torch.long)
        at_N = np.concatenate(owners) * tokens_RT.shape[1] + np.concatenate(places)
        at_BN[keep_BN] = torch.from_numpy(at_N)
        if all(len(example.tags) == len(example.n_pieces) for example in examples):
            tags_BN[keep_BN] = torch.from_numpy(np.concatenate([example.tags for example in examples]))
        lengths_R = torch.tensor([len(window) for window in found])
        return cls(tokens_RT, lengths_R, at_BN, keep_BN, tags_BN, tuple(examples))

    def unknowing(self, pieces: Sequence[int], marks: Marks) -> Self:
        """A batch of one window, once for each of these pieces, which becomes unknown.

        It is not left out, as a word that is gone could not be tagged. A mark at the beginning is no piece of
        the text and stays.
        """
        n, words = len(pieces), [piece for piece in pieces if piece >= len(marks.begin)]
        tokens_RT = self.tokens_RT.repeat(n, 1)
        rows_R = torch.arange(n, device=tokens_RT.device)
        tokens_RT[rows_R[n - len(words) :], torch.tensor(words, device=tokens_RT.device)] = marks.unknown
        return replace(
            self,
            tokens_RT=tokens_RT,
            lengths_R=self.lengths_R.expand(n),
            at_BN=self.at_BN + rows_R[:, None] * tokens_RT.shape[1],
            keep_BN=self.keep_BN.expand(n, -1),
            tags_BN=self.tags_BN.expand(n, -1),
            examples=self.examples * n,
        )
