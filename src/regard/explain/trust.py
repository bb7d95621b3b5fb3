"""Faithfulness of attention maps: leave out each input token in turn, and compare changes with weights.

For every token of the answer: the change of its log-probability without the input token it attends to most,
on a scale from a random token (0) to the one that matters most (1). A change in either direction counts: a
token may speak against the answer. A token that comes after the answer's (its change is NaN) is no candidate.
The level of chance comes from shuffled weights, of which the best map is chosen, as it is for the reader.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from regard.explain.explanation import AttentionMap, Trust
from regard.fields.axis import Axis, plural
from regard.tasks.task import Quantity

Floats = NDArray[np.floating]

LEFT_OUT = "left-out"
"""Site of the map made by `leave_one_out_map`."""
N_SHUFFLES = 400
ROUNDING = 1e-5
"""Relative difference below which two changes count as equal."""
IN_CHINESE = {
    "token": "词元",
    "patch": "图块",
    "cell": "网格",
    "item": "物品",
    "step": "时间步",
    "segment": "片段",
}
"""What units are called."""
IN_PLANE = frozenset({"patch", "cell"})
"""Units that are covered where others are left out."""


def measured(unit: str, quantity: Quantity | None = None) -> Trust:
    """The sentence for the map made by `leave_one_out_map`."""
    left_out, left_out_zh = f"each input {unit} shown was left out", f"逐个去掉图中的{_zh(unit)}"
    if unit == "token":
        left_out, left_out_zh = (
            f"{left_out}, or replaced by the unknown token,",
            f"{left_out_zh}，或换成未知词元",
        )
    if unit in IN_PLANE:
        left_out, left_out_zh = (
            f"each {unit} was covered with the mean colour",
            f"逐个用平均颜色盖住{_zh(unit)}",
        )
    what, what_zh = (
        ("the log-probability of that part of the answer", "对数概率") if quantity is None else quantity
    )
    return Trust(
        f"Measured, not attention: {left_out} in turn. A weight is the {unit}'s share of the total change in "
        f"{what}.",
        None,
        f"这是测量结果，不是注意力：{left_out_zh}；权重是它引起的{what_zh}变化占全部变化的比例。",
    )


def leave_one_out_map(change_KT: Floats, answer: Axis, inputs: Axis) -> AttentionMap:
    """Map of each input token's share of the change in each part of the answer, for want of attention."""
    share_TK = np.abs(change_KT.T)
    total_T1 = share_TK.sum(1, keepdims=True)
    share_TK = np.divide(share_TK, total_T1, out=np.zeros_like(share_TK), where=total_T1 > 0)
    whole_TK = np.zeros((len(share_TK), len(inputs)), share_TK.dtype)
    whole_TK[:, inputs.free] = share_TK
    is_text = inputs.grid is None and inputs.unit == "token"
    title = "left out: answer → text" if is_text else f"left out: {answer.name} → {inputs.units}"
    return AttentionMap(LEFT_OUT, title, whole_TK[None], answer, inputs, holds="share")


def rate_maps(
    maps_QK: Sequence[Floats], change_KT: Floats, unit: str = "token", quantity: Quantity | None = None
) -> tuple[int, Trust]:
    """Choose the most faithful map; returns its index and its measured trust, said in these units."""
    change_KT = np.abs(change_KT)
    n_inputs, n_tokens = change_KT.shape
    top_MT = np.stack([weights[:n_tokens, :n_inputs].argmax(-1) for weights in maps_QK])
    shares_M = _shares(top_MT, change_KT)
    best = int(shares_M.argmax())
    rng = np.random.default_rng(0)
    shuffled = [_shares(rng.permutation(n_inputs)[top_MT], change_KT).max() for _ in range(N_SHUFFLES)]
    chance = float(np.quantile(shuffled, 0.95))
    without_top = float(np.nanmean(np.take_along_axis(change_KT, top_MT[best][None], axis=0)))
    changes = without_top, float(np.nanmean(change_KT, 0).mean()), float(np.nanmax(change_KT, 0).mean())
    share = float(shares_M[best])
    english, chinese = _sentences(changes, share, chance, (len(maps_QK), n_tokens), unit, quantity)
    score = {"unsure": None, "none": 0.0}.get(_verdict(share, chance), share)
    return best, Trust(english, score, chinese)


def _shares(top_MT: NDArray[np.integer], change_KT: Floats) -> Floats:
    """Quality of each map's choices, from a random token (0) to the one that matters most (1)."""
    mean_T = np.nanmean(change_KT, 0)
    chosen_MT = change_KT[top_MT, np.arange(change_KT.shape[1])]
    gained = np.where(np.isnan(chosen_MT), 0, chosen_MT - mean_T).sum(-1)
    most_T = np.nanmax(change_KT, 0)
    possible = (most_T - mean_T).sum()
    differs = possible > ROUNDING * most_T.sum()
    shares: Floats = gained / possible if differs else np.zeros(len(top_MT))
    return shares


TOO_FEW = 0.9
"""Level of chance above which an input has too few tokens for a verdict."""
VERDICTS = {
    "unsure": (
        "there are too few {units} here to tell good weights from lucky ones",
        "{units_zh}太少，分不清是看得准还是碰巧",
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
    changes: tuple[float, float, float],
    share: float,
    chance: float,
    shape: tuple[int, int],
    unit: str,
    quantity: Quantity | None,
) -> tuple[str, str]:
    """Sentence in English and in Chinese; `shape` is the number of maps and of answer tokens."""
    top, mean, largest = (f"{change:.2f}" if change >= 0.1 else f"{change:.2g}" for change in changes)
    n_maps, n_tokens = shape
    unit_zh = _zh(unit)
    verdict, verdict_zh = (
        said.format(units=plural(unit), units_zh=unit_zh) for said in VERDICTS[_verdict(share, chance)]
    )
    answer, answer_zh = ("a word of the answer", "答案中每个词") if n_tokens > 1 else ("the answer", "答案")
    what, what_zh = quantity or (f"the log-probability of {answer}", f"{answer_zh}的对数概率")
    on_average, on_average_zh = (" on average", "平均") if n_tokens > 1 else ("", "")
    leaving_out, leaving_out_zh = ("covering", "盖住") if unit in IN_PLANE else ("leaving out", "去掉")
    best = f" The map shown first is the best of {n_maps}." if n_maps > 1 else ""
    best_zh = f"最先显示的是 {n_maps} 张图中最好的一张。" if n_maps > 1 else ""
    return (
        f"Measured on this input: {leaving_out} the {unit} with the largest weight changes "
        f"{what} by {top}{on_average}; a random {unit} by {mean}, the one that matters "
        f"most by {largest}. So the weights go {share:.0%} of the way from random to best (shuffled weights "
        f"stay below {chance:.0%} in 95% of cases): {verdict}.{best}",
        f"对这条输入的实测：{leaving_out_zh}权重最大的{unit_zh}，{what_zh}{on_average_zh}"
        f"改变 {top}；"
        f"随机{leaving_out_zh}一个{unit_zh}改变 {mean}，{leaving_out_zh}最重要的{unit_zh}改变 {largest}。"
        f"从随机（0%）到最佳（100%），注意力权重达到 {share:.0%}"
        f"（打乱的权重在 95% 的情况下低于 {chance:.0%}）：{verdict_zh}。{best_zh}",
    )


def _zh(unit: str) -> str:
    return IN_CHINESE.get(unit, unit)
