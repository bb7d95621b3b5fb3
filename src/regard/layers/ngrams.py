"""Scores of hashed n-grams of tokens: the wide part of a wide-and-deep sum (Cheng et al. 2016).

The hash of an n-gram points at a row of a table, which has a weight for each answer. A text gets the sum of
the rows of its n-grams divided by the root of their number, added to what the network beside it says. That is
linear, so what each n-gram adds to an answer's score is known exactly. Tokens are words and parts of words:
their n-grams stand for those of characters and of words.

Two texts have the n-grams of each and, once more, those of the second that the first has too.
"""

from collections.abc import Iterator

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from regard.config import Config
from regard.layers.dropout import Dropout
from regard.layers.inputs import Inputs
from regard.linear import Linear

PRIME = 2**31 - 1
"""Hashes are polynomials of ids modulo this, which 64 bits can multiply: they are the same everywhere."""
POINT = 1_664_525
"""Where the polynomials are taken."""
BOTH = 2
"""The number of the text that n-grams of both texts are said to be of."""
MOST_COLUMNS = 64
"""Weights of an n-gram; where there are more answers, a second map shares them out."""
PACE = 8.0
"""Times the weights that an n-gram counts: with Adam, so much faster they learn than other weights."""


class NgramsConfig(Config):
    longest: int = Field(3, ge=1, le=8, description="tokens of the longest")
    buckets: int = Field(
        2**16, ge=1, le=2**24, description="rows of the table; n-grams that fall into one share its weights"
    )
    dropout: float = Field(0.3, ge=0, lt=1, description="of whole n-grams")


class Ngrams(nn.Module):
    def __init__(self, config: NgramsConfig, n_classes: int) -> None:
        super().__init__()
        self.longest = config.longest
        self.weight = nn.Parameter(torch.empty(config.buckets, min(n_classes, MOST_COLUMNS)))
        self.output = Linear(MOST_COLUMNS, n_classes, bias=False) if n_classes > MOST_COLUMNS else None
        self.dropout = Dropout(config.dropout)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.weight)

    def forward(self, inputs: Inputs) -> Tensor:
        """scores_BC of the n-grams of each text."""
        hashed = list(self._hashed(inputs))
        kept = [keep_BT[..., None].to(self.weight.dtype) for _, _, keep_BT in hashed]
        rows = [self._rows(hashes_BT) for _, hashes_BT, _ in hashed]
        sums = [(row * self.dropout(keep)).sum(1) for row, keep in zip(rows, kept, strict=True)]
        return self._scores(torch.stack(sums).sum(0), torch.stack([keep.sum(1) for keep in kept]).sum(0))

    def effects(self, inputs: Inputs) -> Iterator[tuple[int, Tensor]]:
        """n, and effects_BTC: what the n-gram that begins at each token adds to each score.

        Of two texts twice, the second time for those that both have; all together they are the scores.
        """
        hashed = list(self._hashed(inputs))
        counts_B1 = torch.stack([keep_BT.sum(1, keepdim=True) for _, _, keep_BT in hashed]).sum(0)
        for n, hashes_BT, keep_BT in hashed:
            rows_BTC = self._rows(hashes_BT) * keep_BT[..., None]
            yield n, self._scores(rows_BTC, counts_B1[..., None])

    def shares(self, inputs: Inputs, wanted_BC: Tensor) -> Tensor:
        """shares_BT: how much of what n-grams say for or against an answer is said by those at each token.

        An n-gram's effect is the score of the wanted answers less the mean of all, half of it for each of two
        tokens.
        """
        contrast_BC = wanted_BC - wanted_BC.sum(1, keepdim=True) / wanted_BC.shape[1]
        n_tokens = inputs["ids"].shape[1]
        spoken_BT = self.weight.new_zeros(inputs["ids"].shape)
        for n, effects_BTC in self.effects(inputs):
            effect_BT = (effects_BTC * contrast_BC[:, None]).sum(-1) / n
            for place in range(min(n, n_tokens)):
                spoken_BT[:, place:] += effect_BT[:, : n_tokens - place]
        return F.normalize(spoken_BT.abs(), p=1, dim=1)

    def _rows(self, hashes_BT: Tensor) -> Tensor:
        return F.embedding(hashes_BT % len(self.weight), self.weight)

    def _scores(self, sums_C: Tensor, counts: Tensor) -> Tensor:
        """Scores, of sums of rows or of single ones; `counts` is the number of n-grams of their text."""
        scores_C = sums_C * (PACE * counts.clamp(min=1).to(sums_C.dtype).rsqrt())
        return scores_C if self.output is None else self.output(scores_C)

    def _hashed(self, inputs: Inputs) -> Iterator[tuple[int, Tensor, Tensor]]:
        """n, the hash of the n-gram that begins at each token, and which of them are real."""
        for n, bare_BT, text_BT, keep_BT in self._of_each_length(inputs):
            yield n, (bare_BT + (text_BT + 1) * _power(n)) % PRIME, keep_BT
            if "segments" in inputs:
                first_BT, second_BT = keep_BT & (text_BT == 0), keep_BT & (text_BT == 1)
                same_BTT = (bare_BT[:, :, None] == bare_BT[:, None]) & first_BT[:, None]
                yield n, (bare_BT + (BOTH + 1) * _power(n)) % PRIME, second_BT & same_BTT.any(-1)

    def _of_each_length(self, inputs: Inputs) -> Iterator[tuple[int, Tensor, Tensor, Tensor]]:
        """n; hashes of the n-grams that begin at each token, which text they are of, and which are real."""
        ids_BT, ends_B1 = inputs["ids"], inputs["lengths"][:, None]
        length, room = ids_BT.shape[1], (0, self.longest - 1)
        text_BT = inputs["segments"] if "segments" in inputs else torch.zeros_like(ids_BT)
        ids_BU, text_BU = F.pad(ids_BT, room), F.pad(text_BT, room, value=BOTH)
        starts_T = torch.arange(length, device=ids_BT.device)
        hashes_BT = torch.zeros_like(ids_BT)
        for n in range(1, self.longest + 1):
            hashes_BT = (hashes_BT * POINT + ids_BU[:, n - 1 : n - 1 + length]) % PRIME
            is_one_text_BT = text_BU[:, n - 1 : n - 1 + length] == text_BT
            yield n, hashes_BT, text_BT, is_one_text_BT & (starts_T + n <= ends_B1)


def _power(n: int) -> int:
    return pow(POINT, n, PRIME)
