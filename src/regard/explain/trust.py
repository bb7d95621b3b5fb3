"""How far attention maps may be trusted, measured: leave out each input piece in turn, and see whether the
weights knew which pieces matter.

For every token of the answer: what it loses (in log-probability) without the piece it looks at most, set
between what it loses without a piece at random (0) and without the one that matters most (1). The level of
chance comes from shuffled weights, the best map chosen each time, as it is for the reader.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from regard.explain.explanation import Trust

Floats = NDArray[np.floating]

N_SHUFFLES = 400


def rate(maps_QK: Sequence[Floats], drop_KT: Floats) -> tuple[int, Trust]:
    """Which of the maps points best at what matters, and the sentence that says how well."""
    n_pieces, n_tokens = drop_KT.shape
    top_MT = np.stack([weights[:n_tokens, :n_pieces].argmax(-1) for weights in maps_QK])
    shares_M = _shares(top_MT, drop_KT)
    best = int(shares_M.argmax())
    rng = np.random.default_rng(0)
    shuffled = [_shares(rng.permutation(n_pieces)[top_MT], drop_KT).max() for _ in range(N_SHUFFLES)]
    chance = float(np.quantile(shuffled, 0.95))
    without_top = float(np.take_along_axis(drop_KT, top_MT[best][None], axis=0).mean())
    costs = without_top, float(drop_KT.mean()), float(drop_KT.max(0).mean())
    share = float(shares_M[best])
    return best, Trust(_sentence(costs, share, chance, len(maps_QK)), share if share > chance else 0.0)


def _shares(top_MT: NDArray[np.integer], drop_KT: Floats) -> Floats:
    """How far each map's choices go from a random piece (0) to the one that matters most (1)."""
    chosen_MT = drop_KT[top_MT, np.arange(drop_KT.shape[1])]
    gained = (chosen_MT - drop_KT.mean(0)).sum(-1)
    possible = (drop_KT.max(0) - drop_KT.mean(0)).sum()
    shares: Floats = gained / possible if possible > 0 else np.zeros(len(top_MT))
    return shares


def _sentence(costs: tuple[float, float, float], share: float, chance: float, n_maps: int) -> str:
    if share <= chance:
        verdict = "no better than shuffled weights, so do not read them as reasons"
    elif share < 0.5:
        verdict = "they point in part at what matters"
    else:
        verdict = "they largely point at what matters"
    shown = f" Shown first is the map, of {n_maps}, that does best." if n_maps > 1 else ""
    top, mean, most = costs
    return (
        "Measured on this input: leaving out the piece it looks at most costs a word of the answer "
        f"{top:.2f} nats on average; a piece at random {mean:.2f}, the piece that matters most {most:.2f}. "
        f"So the weights go {share:.0%} of the way from random to best (shuffled ones below {chance:.0%} "
        f"in 95 % of cases): {verdict}.{shown}"
    )
