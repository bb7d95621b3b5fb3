"""Scores of hashed n-grams of tokens: the wide part of a wide-and-deep sum (Cheng et al. 2016).

The hash of an n-gram points at a row of a table, which has a weight for each answer. A text gets the sum of
the rows of its n-grams, each times how rare it is (its idf), divided by the length of these weights, added to
what the network beside it says. That is linear: what each n-gram adds to an answer's score is known exactly.
Tokens are words and parts of words; n-grams of the characters that they spell may be counted too.

Two texts have the n-grams of each and, once more, those of tokens of the second that the first has too.
"""

from collections.abc import Iterable, Iterator, Sequence

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
CHARACTERS = 3
"""The number of the first text that n-grams of characters are said to be of."""
LONGEST_SPELLING = 16
"""Characters of a token that are counted; few tokens have more."""
MOST_CODES = 2**20
PACE = 30.0
"""Times the weights that an n-gram counts: with Adam, so much faster they learn than other weights."""


class NgramsConfig(Config):
    longest: int = Field(3, ge=1, le=8, description="tokens of the longest")
    characters: int = Field(
        0,
        ge=0,
        le=8,
        description="characters of the longest n-gram of characters; 0: only tokens are counted",
    )
    buckets: int = Field(
        2**16, ge=1, le=2**24, description="rows of the table; n-grams that fall into one share its weights"
    )
    dropout: float = Field(0.3, ge=0, lt=1, description="of whole n-grams")


class Ngrams(nn.Module):
    idf_N: Tensor
    """The weight of the n-grams in each bucket: 1 until it is counted."""
    codes_VL: Tensor
    """The characters that each token spells, as numbers from 1; 0 where there is none."""

    def __init__(self, config: NgramsConfig, n_classes: int, n_tokens: int = 0) -> None:
        super().__init__()
        self.longest, self.characters = config.longest, config.characters
        self.register_buffer("idf_N", torch.ones(config.buckets))
        if self.characters:
            self.register_buffer("codes_VL", torch.zeros(n_tokens, LONGEST_SPELLING, dtype=torch.int32))
        self.weight = nn.Parameter(torch.empty(config.buckets, min(n_classes, MOST_COLUMNS)))
        self.output = Linear(MOST_COLUMNS, n_classes, bias=False) if n_classes > MOST_COLUMNS else None
        self.dropout = Dropout(config.dropout)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.weight)
        nn.init.ones_(self.idf_N)
        if self.characters:
            self.codes_VL.zero_()

    def spell(self, spellings: Sequence[str]) -> None:
        """Take over what each token spells."""
        if not self.characters:
            return
        rows = [
            [1 + ord(character) % MOST_CODES for character in spelling[:LONGEST_SPELLING]]
            for spelling in spellings
        ]
        for codes_L, row in zip(self.codes_VL, rows, strict=True):
            codes_L[: len(row)] = torch.tensor(row, dtype=torch.int32)

    @torch.no_grad()
    def count(self, texts: Iterable[Inputs]) -> None:
        """Weigh each n-gram by the logarithm of how few of these texts have it."""
        n_texts, counts_N = 0, torch.zeros_like(self.idf_N)
        for inputs in texts:
            n_texts += len(inputs["ids"])
            hashed = list(self._hashed(inputs))
            buckets_BX = torch.cat([hashes % len(self.weight) for _, hashes, _, _ in hashed], 1)
            keep_BX = torch.cat([keep for _, _, keep, _ in hashed], 1)
            for buckets_X, keep_X in zip(buckets_BX, keep_BX, strict=True):
                counts_N[buckets_X[keep_X].unique()] += 1
        self.idf_N.copy_(1 + torch.log((1 + n_texts) / (1 + counts_N)))

    def forward(self, inputs: Inputs) -> Tensor:
        """scores_BC of the n-grams of each text."""
        hashed = [(hashes, self._weights(hashes, keep)) for _, hashes, keep, _ in self._hashed(inputs)]
        rows = [self._rows(hashes) for hashes, _ in hashed]
        sums = [(row * self.dropout(at)).sum(1) for row, (_, at) in zip(rows, hashed, strict=True)]
        squares_BC = torch.stack([at.square().sum(1) for _, at in hashed]).sum(0)
        return self._scores(torch.stack(sums).sum(0), squares_BC)

    def effects(self, inputs: Inputs) -> Iterator[tuple[int, Tensor]]:
        """n, and effects_BXC: what the n-gram that begins at each token, or character, adds to each score.

        Of two texts twice, the second time for those that both have; all together they are the scores.
        """
        for n, effects_BXC, _ in self._effects(inputs):
            yield n, effects_BXC

    def shares(self, inputs: Inputs, wanted_BC: Tensor) -> Tensor:
        """shares_BT: how much of what n-grams say for or against an answer is said by those at each token.

        An n-gram's effect is the score of the wanted answers less the mean of all, half of it for each of two
        tokens; that of characters is for the tokens that they are of.
        """
        contrast_BC = wanted_BC - wanted_BC.sum(1, keepdim=True) / wanted_BC.shape[1]
        spoken_BT = self.weight.new_zeros(inputs["ids"].shape)
        for n, effects_BXC, owners_BX in self._effects(inputs):
            effect_BX = (effects_BXC * contrast_BC[:, None]).sum(-1) / n
            spread_BX, n_units = torch.zeros_like(effect_BX), effect_BX.shape[1]
            for place in range(min(n, n_units)):
                spread_BX[:, place:] += effect_BX[:, : n_units - place]
            spoken_BT += spread_BX if owners_BX is None else _summed(spread_BX, owners_BX, spoken_BT.shape[1])
        return F.normalize(spoken_BT.abs(), p=1, dim=1)

    def _effects(self, inputs: Inputs) -> Iterator[tuple[int, Tensor, Tensor | None]]:
        hashed = [
            (n, hashes, self._weights(hashes, keep), owners)
            for n, hashes, keep, owners in self._hashed(inputs)
        ]
        squares_B1 = torch.stack([at.square().sum(1) for _, _, at, _ in hashed]).sum(0)
        for n, hashes_BX, weights_BX1, owners_BX in hashed:
            yield n, self._scores(self._rows(hashes_BX) * weights_BX1, squares_B1[..., None]), owners_BX

    def _rows(self, hashes_BX: Tensor) -> Tensor:
        return F.embedding(hashes_BX % len(self.weight), self.weight)

    def _weights(self, hashes_BX: Tensor, keep_BX: Tensor) -> Tensor:
        """weights_BX1 of n-grams: their idf, and 0 where there is none."""
        return (self.idf_N[hashes_BX % len(self.weight)] * keep_BX).to(self.weight.dtype)[..., None]

    def _scores(self, sums_C: Tensor, squares: Tensor) -> Tensor:
        """Scores, of sums of rows or of single ones; `squares` is the sum of squared weights of a text."""
        scores_C = sums_C * (PACE * squares.clamp(min=1).to(sums_C.dtype).rsqrt())
        return scores_C if self.output is None else self.output(scores_C)

    def _hashed(self, inputs: Inputs) -> Iterator[tuple[int, Tensor, Tensor, Tensor | None]]:
        """n; the hash of the n-gram that begins at each token, or character; which of them are real; and for
        characters the tokens that they are of.
        """
        ids_BT, lengths_B = inputs["ids"], inputs["lengths"]
        text_BT = inputs["segments"] if "segments" in inputs else torch.zeros_like(ids_BT)
        for n, bare_BT, keep_BT in _ngrams(ids_BT, text_BT, lengths_B, self.longest):
            yield n, (bare_BT + (text_BT + 1) * _power(n)) % PRIME, keep_BT, None
            if "segments" in inputs:
                first_BT, second_BT = keep_BT & (text_BT == 0), keep_BT & (text_BT == 1)
                same_BTT = (bare_BT[:, :, None] == bare_BT[:, None]) & first_BT[:, None]
                yield n, (bare_BT + (BOTH + 1) * _power(n)) % PRIME, second_BT & same_BTT.any(-1), None
        if self.characters:
            codes_BU, owners_BU, lengths_B = self._spelt(ids_BT, lengths_B)
            text_BU = text_BT.gather(1, owners_BU)
            for n, bare_BU, keep_BU in _ngrams(codes_BU, text_BU, lengths_B, self.characters):
                yield n, (bare_BU + (text_BU + 1 + CHARACTERS) * _power(n)) % PRIME, keep_BU, owners_BU

    def _spelt(self, ids_BT: Tensor, lengths_B: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The characters of each text, the tokens that they are of, and how many there are."""
        n_tokens, device = ids_BT.shape[1], ids_BT.device
        real_BT = torch.arange(n_tokens, device=device) < lengths_B[:, None]
        ends_BT = ((self.codes_VL[ids_BT] > 0).sum(-1) * real_BT).cumsum(1)
        totals_B = ends_BT[:, -1]
        room = n_tokens * LONGEST_SPELLING if torch.compiler.is_exporting() else max(1, int(totals_B.max()))
        places_U = torch.arange(room, device=device)
        owners_BU = (ends_BT[:, :, None] <= places_U).sum(1).clamp(max=n_tokens - 1)
        within_BU = places_U - F.pad(ends_BT, (1, 0)).gather(1, owners_BU)
        within_BU = within_BU.clamp(max=LONGEST_SPELLING - 1)
        codes_BU = self.codes_VL[ids_BT.gather(1, owners_BU), within_BU].to(ids_BT.dtype)
        return codes_BU, owners_BU, totals_B


def _ngrams(
    ids_BT: Tensor, text_BT: Tensor, lengths_B: Tensor, longest: int
) -> Iterator[tuple[int, Tensor, Tensor]]:
    """n; hashes of the n-grams that begin at each place, and which of them are real, within one text."""
    length, room = ids_BT.shape[1], (0, longest - 1)
    ids_BU, text_BU = F.pad(ids_BT, room), F.pad(text_BT, room, value=BOTH)
    starts_T = torch.arange(length, device=ids_BT.device)
    hashes_BT = torch.zeros_like(ids_BT)
    for n in range(1, longest + 1):
        hashes_BT = (hashes_BT * POINT + ids_BU[:, n - 1 : n - 1 + length]) % PRIME
        is_one_text_BT = text_BU[:, n - 1 : n - 1 + length] == text_BT
        yield n, hashes_BT, is_one_text_BT & (starts_T + n <= lengths_B[:, None])


def _summed(values_BU: Tensor, owners_BU: Tensor, n: int) -> Tensor:
    """The sum of the values of each owner."""
    return values_BU.new_zeros(len(values_BU), n).scatter_add(1, owners_BU, values_BU)


def _power(n: int) -> int:
    return pow(POINT, n, PRIME)
