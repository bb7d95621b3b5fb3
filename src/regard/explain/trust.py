"""How far attention maps may be trusted, measured: leave out each input piece in turn, and see whether the
weights knew which pieces matter.

For every token of the answer: how much its log-probability changes without the piece it looks at most, set
between a piece at random (0) and the piece that matters most (1). A change either way counts: a piece may
speak against the answer. A piece that comes after the token (its change is NaN) is no choice at all. The
level of chance comes from shuffled weights, the best map chosen each time, as it is for the reader.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from regard.explain.explanation import AttentionMap, Trust
from regard.fields.axis import Axis

Floats = NDArray[np.floating]

LEFT_OUT = "left-out"
"""Where `measured` has its map."""
N_SHUFFLES = 400
ROUNDING = 1e-5
"""Of a change: pieces that differ by less matter alike."""
MEASURED = Trust(
    "Measured, not attended: every input piece shown was left out or made unknown in turn. A weight is the "
    "piece's share of all that this changed in the log-probability of that part of the answer.",
    None,
    "这是测量结果而非注意力：逐个去掉图中的输入词元，或换成未知词元；权重是它引起的对数概率变化在全部变化中所占的比例。",
)
"""Of a map that `measured` made."""


def measured(change_KT: Floats, answer: Axis, given: Axis) -> AttentionMap:
    """Which pieces spoke for each part of an answer, where no attention says it."""
    share_TK = np.abs(change_KT.T)
    total_T1 = share_TK.sum(1, keepdims=True)
    share_TK = np.divide(share_TK, total_T1, out=np.zeros_like(share_TK), where=total_T1 > 0)
    whole_TK = np.zeros((len(share_TK), len(given)), share_TK.dtype)
    whole_TK[:, given.free] = share_TK
    return AttentionMap(LEFT_OUT, "left out: answer → text", whole_TK[None], answer, given, holds="share")


def rate(maps_QK: Sequence[Floats], change_KT: Floats) -> tuple[int, Trust]:
    """Which of the maps points best at what matters, and the sentence that says how well."""
    change_KT = np.abs(change_KT)
    n_pieces, n_tokens = change_KT.shape
    top_MT = np.stack([weights[:n_tokens, :n_pieces].argmax(-1) for weights in maps_QK])
    shares_M = _shares(top_MT, change_KT)
    best = int(shares_M.argmax())
    rng = np.random.default_rng(0)
    shuffled = [_shares(rng.permutation(n_pieces)[top_MT], change_KT).max() for _ in range(N_SHUFFLES)]
    chance = float(np.quantile(shuffled, 0.95))
    without_top = float(np.nanmean(np.take_along_axis(change_KT, top_MT[best][None], axis=0)))
    changes = without_top, float(np.nanmean(change_KT, 0).mean()), float(np.nanmax(change_KT, 0).mean())
    share = float(shares_M[best])
    english, chinese = _sentences(changes, share, chance, (len(maps_QK), n_tokens))
    score = {"unsure": None, "none": 0.0}.get(_verdict(share, chance), share)
    return best, Trust(english, score, chinese)


def _shares(top_MT: NDArray[np.integer], change_KT: Floats) -> Floats:
    """How far each map's choices go from a random piece (0) to the one that matters most (1)."""
    mean_T = np.nanmean(change_KT, 0)
    chosen_MT = change_KT[top_MT, np.arange(change_KT.shape[1])]
    gained = np.where(np.isnan(chosen_MT), 0, chosen_MT - mean_T).sum(-1)
    most_T = np.nanmax(change_KT, 0)
    possible = (most_T - mean_T).sum()
    differs = possible > ROUNDING * most_T.sum()
    shares: Floats = gained / possible if differs else np.zeros(len(top_MT))
    return shares


TOO_FEW = 0.9
"""Where shuffled weights come this near to the best, an input has too few pieces to tell anything."""
VERDICTS = {
    "unsure": (
        "there are too few pieces here to tell good weights from lucky ones",
        "词元太少，分不清是看得准还是碰巧",
    ),
    "none": (
        "no better than shuffled weights, so do not read them as reasons",
        "并不比打乱的权重更好，不要把它当作理由",
    ),
    "part": ("they point in part at what matters", "它部分地指向了重要之处"),
    "most": ("they largely point at what matters", "它大体上指向了重要之处"),
}


def _verdict(share: float, chance: float) -> str:
    if chance > TOO_FEW:
        return "unsure"
    if share <= chance:
        return "none"
    return "part" if share < 0.5 else "most"


def _sentences(
    changes: tuple[float, float, float], share: float, chance: float, shape: tuple[int, int]
) -> tuple[str, str]:
    """The same in English and in Chinese, for so many maps and so many tokens of the answer."""
    top, mean, most = (f"{change:.2f}" if change >= 0.1 else f"{change:.2g}" for change in changes)
    n_maps, n_tokens = shape
    verdict, in_chinese = VERDICTS[_verdict(share, chance)]
    answer, of_answer = ("a word of the answer", "答案中每个词") if n_tokens > 1 else ("the answer", "答案")
    on_average, averaged = (" on average", "平均") if n_tokens > 1 else ("", "")
    shown = f" Shown first is the map, of {n_maps}, that does best." if n_maps > 1 else ""
    first = f"先显示的是 {n_maps} 张图中最好的一张。" if n_maps > 1 else ""
    return (
        "Measured on this input: leaving out the piece it looks at most changes the log-probability of "
        f"{answer} by {top}{on_average}; a piece at random by {mean}, the one that matters most by "
        f"{most}. So the weights go {share:.0%} of the way from random to best (shuffled ones below "
        f"{chance:.0%} in 95% of cases): {verdict}.{shown}",
        f"对这条输入的实测：去掉权重最大的词元，{of_answer}的对数概率{averaged}改变 {top}；"
        f"随机去掉一个词元改变 {mean}，去掉最要紧的词元改变 {most}。"
        f"从随机（0%）到最佳（100%），注意力权重达到 {share:.0%}"
        f"（打乱的权重在 95% 的情况下低于 {chance:.0%}）：{in_chinese}。{first}",
    )
