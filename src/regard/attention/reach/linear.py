"""Linear attention (Katharopoulos et al. 2020): weights are φ(q)·φ(k), so that keys are summed up once.

No query needs the keys one by one: a text of any length becomes E × W numbers for each head. To the past
alone it looks in chunks: within a chunk weights are computed as usual, and what came before is one sum.
While a text is generated, that sum is the whole cache.
"""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.attention.cache import Growing, Sums
from regard.attention.mask import Mask, Rows
from regard.attention.reach.reach import Call

FeatureMap = Literal["elu", "softmax"]
SMALLEST = 1e-20
"""A sum of weights is at least this, so that nothing is divided by zero where nothing is seen."""


def features(x: Tensor, kind: FeatureMap) -> Tensor:
    """φ(x), positive: elu(x) + 1, or the softmax over the channels of x and −x, which is sharper."""
    if kind == "elu":
        return F.elu(x).add_(1)
    return torch.softmax(torch.cat([x, -x], -1), -1)


@dataclass(frozen=True)
class Linear:
    feature: FeatureMap = "elu"
    size: int = 64
    """Positions of a chunk."""
    cuts_gradients = False

    def attend(
        self, q_BHQE: Tensor, new: Growing, past: Any, call: Call, older: Growing | None = None
    ) -> tuple[Tensor, Sums]:
        n_heads, n = q_BHQE.shape[1:3]
        q, k, v_BGKW = (_at_least_single(x) for x in (q_BHQE, new.k_BGKE, new.v_BGKW))
        q_BHQF, k_BGKF = features(q, self.feature), features(k, self.feature)
        if past is not None:
            if not isinstance(past, Sums):
                raise ValueError("linear attention cannot be continued from a cache of keys and values")
            assert n == 1, "a past is continued one position at a time"
            sums = past.append(_summed(k_BGKF, v_BGKW))
            return _from_sums(q_BHQF, sums).to(q_BHQE.dtype), sums
        real_BT = call.mask.keys(n, q_BHQE.device)
        if real_BT is not None:
            k_BGKF = k_BGKF * real_BT[:, None, :, None]
        if call.tap is not None or not call.mask.is_plain:
            out, sums = _explicit(q_BHQF, k_BGKF, v_BGKW, call), _summed(k_BGKF, v_BGKW)
        elif not call.mask.is_causal:
            sums = _summed(k_BGKF, v_BGKW)
            out = _from_sums(q_BHQF, sums)
        else:
            group = n_heads // k_BGKF.shape[1]
            if group > 1:
                k_BGKF, v_BGKW = k_BGKF.repeat_interleave(group, 1), v_BGKW.repeat_interleave(group, 1)
            out, sums = _in_chunks(q_BHQF, k_BGKF, v_BGKW, self.size)
            sums = Sums(sums.values_BGEW[:, ::group], sums.keys_BGE[:, ::group])
        return out.to(q_BHQE.dtype), sums

    def lasts(self, query: Tensor, key: Tensor) -> Tensor:
        return torch.zeros_like(query + key, dtype=torch.bool)

    def __str__(self) -> str:
        return f"linear: shares of φ(q)·φ(k), φ = {self.feature}, no softmax"


def _at_least_single(x: Tensor) -> Tensor:
    """Sums over thousands of positions need more than half precision."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


def _summed(k_BGKF: Tensor, v_BGKW: Tensor) -> Sums:
    return Sums(k_BGKF.transpose(-1, -2) @ v_BGKW, k_BGKF.sum(2))


def _from_sums(q_BHQF: Tensor, sums: Sums) -> Tensor:
    """out_BHQW of queries that all see everything that was summed."""
    group = q_BHQF.shape[1] // sums.keys_BGE.shape[1]
    q_BGQF = torch.unflatten(q_BHQF, 1, (-1, group)).flatten(2, 3)
    out = q_BGQF @ sums.values_BGEW / (q_BGQF @ sums.keys_BGE[..., None]).clamp(min=SMALLEST)
    return torch.unflatten(out, 2, (group, -1)).flatten(1, 2)


def _in_chunks(q_BHTF: Tensor, k_BHTF: Tensor, v_BHTW: Tensor, size: int) -> tuple[Tensor, Sums]:
    """out_BHTW, every position from itself and those before it, and the sums over all."""
    n_batch, n_heads, n = q_BHTF.shape[:3]
    size = min(size, n)
    filled = (F.pad(x, (0, 0, 0, -n % size)) if n % size else x for x in (q_BHTF, k_BHTF, v_BHTW))
    q, k, v = (torch.unflatten(x.flatten(0, 1), 1, (-1, size)) for x in filled)
    values, keys = k.transpose(-1, -2) @ v, k.sum(2)
    total_RFW, total_RF = torch.zeros_like(values[:, 0]), torch.zeros_like(keys[:, 0])
    before, before_keys = [], []
    for values_RFW, keys_RF in zip(values.unbind(1), keys.unbind(1), strict=True):
        before.append(total_RFW)
        before_keys.append(total_RF)
        total_RFW, total_RF = total_RFW + values_RFW, total_RF + keys_RF
    own_RNCC = (q @ k.transpose(-1, -2)).tril()
    past_RNCW = q @ torch.stack(before, 1)
    out = torch.baddbmm(past_RNCW.flatten(0, 1), own_RNCC.flatten(0, 1), v.flatten(0, 1)).view(
        past_RNCW.shape
    )
    shares_RNC1 = q @ torch.stack(before_keys, 1)[..., None] + own_RNCC.sum(-1, keepdim=True)
    out_RTW = (out / shares_RNC1.clamp(min=SMALLEST)).flatten(1, 2)[:, :n]
    sums = Sums(*(torch.unflatten(total, 0, (n_batch, n_heads)) for total in (total_RFW, total_RF)))
    return torch.unflatten(out_RTW, 0, (n_batch, n_heads)), sums


def _explicit(q_BHQF: Tensor, k_BGKF: Tensor, v_BGKW: Tensor, call: Call) -> Tensor:
    """All weights one by one, as a tap wants to see them."""
    group, n = q_BHQF.shape[1] // k_BGKF.shape[1], q_BHQF.shape[2]
    k_BHKF, v_BHKW = k_BGKF.repeat_interleave(group, 1), v_BGKW.repeat_interleave(group, 1)
    weights_BHQK = q_BHQF @ k_BHKF.transpose(-1, -2)
    keep = _kept(call.mask, n, k_BHKF.shape[2], q_BHQF.device)
    weights_BHQK = weights_BHQK if keep is None else weights_BHQK * keep
    weights_BHQK = weights_BHQK / weights_BHQK.sum(-1, keepdim=True).clamp(min=SMALLEST)
    if call.tap is not None:
        weights_BHQK = call.tap(weights_BHQK, v_BHKW)
    return weights_BHQK @ v_BHKW


def _kept(mask: Mask, n_queries: int, n_keys: int, device: torch.device) -> Tensor | None:
    return mask.dense(Rows(0, n_queries), n_queries, n_keys, device)
