"""7. What keeps deep stacks learnable: LayerNorm or BatchNorm, before or after, with residuals or without."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.experiments.experiment import Chart, Check, Experiment, Outcome, Run, Text
from regard.experiments.interval import Interval
from regard.experiments.learning import Batch, Reader, accuracy, layer, learn
from regard.layers.block import Block

N_TOKENS, LENGTH, DEPTHS = 12, 16, (2, 6, 12, 24)
LEARNT_DEPTH = 8


class _BatchNorm(nn.Module):
    """BatchNorm over all positions of a batch, in the place of a LayerNorm."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(d_model)

    def forward(self, x_BTD: Tensor) -> Tensor:
        normed: Tensor = self.norm(x_BTD.flatten(0, 1))
        return normed.view_as(x_BTD)


def _model(depth: int, norm: str, *, residuals: bool = True, batch_norm: bool = False) -> Reader:
    model = Reader(layer(32, norm=norm), depth, N_TOKENS, 2, from_last=False)
    for block in model.stack.layers:
        assert isinstance(block, Block)
        if not residuals:
            block._wrap = _without_residual  # type: ignore[method-assign]
        if batch_norm:
            parts: Any = block
            parts.self_norm, parts.ff_norm = _BatchNorm(32), _BatchNorm(32)
    return model


def _without_residual(x: Tensor, f: Callable[[Tensor], Tensor], norm: nn.Module) -> Tensor:
    out: Tensor = norm(f(x))
    return out


def _draw(n_rows: int, *, unequal: bool = False) -> Callable[[torch.Generator], Batch]:
    """Which of two marks comes first; behind the end of shorter texts stand zeros."""

    def draw(generator: torch.Generator) -> Batch:
        tokens_BT = torch.randint(4, N_TOKENS, (n_rows, LENGTH), generator=generator)
        lengths_B1 = torch.full((n_rows, 1), LENGTH)
        if unequal:
            lengths_B1 = torch.randint(4, LENGTH + 1, (n_rows, 1), generator=generator)
        real_BT = torch.arange(LENGTH) < lengths_B1
        order_BT = torch.rand(n_rows, LENGTH, generator=generator).masked_fill(~real_BT, 2.0).argsort(1)
        places_B2 = order_BT[:, :2]
        tokens_BT = tokens_BT.masked_fill(~real_BT, 0)
        tokens_BT.scatter_(1, places_B2, torch.tensor([[2, 3]]).expand(n_rows, -1))
        return tokens_BT, (places_B2[:, 0] < places_B2[:, 1]).long()

    return draw


def _gradient_ratio(depth: int, norm: str, seed: int, *, residuals: bool = True) -> float:
    """At the beginning: the gradient of the first layer's weights over that of the last's."""
    torch.manual_seed(seed)
    model = _model(depth, norm, residuals=residuals)
    tokens_BT, label_B = _draw(64)(torch.Generator().manual_seed(seed))
    F.cross_entropy(model(tokens_BT), label_B).backward()  # type: ignore[no-untyped-call]
    norms = []
    for block in (model.stack.layers[0], model.stack.layers[-1]):
        assert isinstance(block, Block)
        assert block.ff.inner.weight.grad is not None
        norms.append(float(block.ff.inner.weight.grad.norm()))
    return norms[0] / max(norms[1], 1e-30)


def _learnt(
    run: Run, steps: int, n_rows: int, build: Callable[[], Reader], *, unequal: bool = False
) -> list[float]:
    right = []
    for seed in run.seeds:
        torch.manual_seed(seed)
        model = build()
        learn(model, _draw(n_rows, unequal=unequal), steps=steps, seed=seed, lr=3e-3, warmup=0)
        right.append(accuracy(model, _draw(64, unequal=unequal), seed=seed))
    return right


def _run(run: Run) -> Outcome:
    steps = 600 if run.thorough else 120
    kinds: dict[str, tuple[str, bool]] = {
        "pre-norm": ("pre", True), "post-norm": ("post", True), "no residuals": ("post", False)
    }  # fmt: skip
    ratios = {
        name: {d: [_gradient_ratio(d, norm, seed, residuals=keeps) for seed in run.seeds] for d in DEPTHS}
        for name, (norm, keeps) in kinds.items()
    }
    deep = {
        name: _learnt(run, steps, 32, partial(_model, LEARNT_DEPTH, norm, residuals=keeps))
        for name, (norm, keeps) in kinds.items()
    }
    run.tick(f"{LEARNT_DEPTH} layers: " + ", ".join(f"{name} {Interval.of(of)}" for name, of in deep.items()))
    batches = (2, 8, 64)
    norms: dict[str, dict[int, list[float]]] = {}
    for name, batch_norm in (("LayerNorm", False), ("BatchNorm", True)):
        norms[name] = {
            n: _learnt(run, steps, n, partial(_model, 2, "pre", batch_norm=batch_norm), unequal=True)
            for n in batches
        }
        run.tick(
            f"{name}: " + ", ".join(f"batches of {n} {Interval.of(of)}" for n, of in norms[name].items())
        )
    small = [a - b for a, b in zip(norms["LayerNorm"][2], norms["BatchNorm"][2], strict=True)]
    large = [a - b for a, b in zip(norms["LayerNorm"][64], norms["BatchNorm"][64], strict=True)]
    checks = [
        Check(
            Text(
                "LayerNorm minus BatchNorm, batches of 2: share right",
                "LayerNorm 减 BatchNorm，批大小 2：答对的比例",
            ),
            Interval.of(small),
            above=0.0,
        ),
        Check(Text("the same, batches of 64", "同上，批大小 64"), Interval.of(large), above=0.0),
        Check(
            Text(
                "without residuals, 24 layers: gradient of the first over the last",
                "没有残差、24 层：第一层与最后一层梯度之比",
            ),
            Interval.of(ratios["no residuals"][24]),
            below=0.1,
        ),
        Check(
            Text(
                f"residuals at {LEARNT_DEPTH} layers, with minus without: share right",
                f"{LEARNT_DEPTH} 层，有残差减没有：答对的比例",
            ),
            Interval.of([a - b for a, b in zip(deep["pre-norm"], deep["no residuals"], strict=True)]),
            above=0.0,
        ),
        Check(
            Text(
                f"pre-norm minus post-norm at {LEARNT_DEPTH} layers, no warm-up: share right",
                f"{LEARNT_DEPTH} 层、无预热，pre-norm 减 post-norm：答对的比例",
            ),
            Interval.of([a - b for a, b in zip(deep["pre-norm"], deep["post-norm"], strict=True)]),
            above=0.0,
        ),
    ]
    charts = [
        Chart(
            Text(
                "gradient of the first layer over that of the last, untrained",
                "未训练时第一层与最后一层梯度之比",
            ),
            Text("layers", "层数"),
            Text("ratio", "比"),
            {name: [(d, Interval.of(of[d])) for d in DEPTHS] for name, of in ratios.items()},
            log_y=True,
        ),
        Chart(
            Text("unequal lengths: share right by size of the batch", "长度不等：不同批大小时答对的比例"),
            Text("texts in a batch", "每批文本数"),
            Text("share right", "答对的比例"),
            {name: [(n, Interval.of(of[n])) for n in batches] for name, of in norms.items()},
            log_x=True,
        ),
    ]
    table = "; ".join(f"{name} {Interval.of(of)}" for name, of in deep.items())
    remark = Text(
        f"Share right at {LEARNT_DEPTH} layers: {table}.", f"{LEARNT_DEPTH} 层时答对的比例：{table}。"
    )
    return Outcome(checks, charts, [remark])


DEPTH = Experiment(
    "depth",
    Text("Norms, residuals and depth", "归一化、残差与深度"),
    Text(
        "LayerNorm suits sequences better than BatchNorm, residuals keep gradients alive in deep stacks, "
        "and norms before a sub-layer "
        "make deep stacks easier to learn than norms after it.",
        "对序列来说 LayerNorm 比 BatchNorm 合适；残差让深层网络的梯度不消失；子层之前的归一化比之后的更容"
        "易训练深层网络。",
    ),
    Text(
        "Layers of width 32 learn which of two marks comes first. BatchNorm replaces LayerNorm in two "
        "layers, on texts of unequal "
        "length and batches of 2, 8 and 64; eight layers are learnt pre-norm, post-norm and without "
        "residuals, without warm-up; "
        "gradients are those before the first step.",
        "宽 32 的层学习两个标记哪个在前。在两层的模型里用 BatchNorm 替换 LayerNorm，文本长短不一，批大小 "
        "2、8、64；八层的模型分别用 "
        "pre-norm、post-norm 和无残差训练，没有预热；梯度是第一步之前的。",
    ),
    Text(
        "Width 32 and a few hundred steps at one learning rate: post-norm with warm-up learns well at "
        "this depth, and wide models have "
        "other limits. BatchNorm is used plainly, padding included, as it would be by mistake.",
        "只有宽 32、几百步、一个学习率：post-norm 加预热在这个深度也学得好，更宽的模型另有界限。"
        "BatchNorm 用得很朴素，连填充也算进去，就像误用时那样。",
    ),
    _run,
)
