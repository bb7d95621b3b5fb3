"""3. What attention costs: time and the largest tensor against length, with exponents."""

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from regard.attention import Blocks, Growing, Linear, Reach, ScaledDot, Trace, attend, causal
from regard.attention.mask import Window
from regard.attention.reach import Call
from regard.experiments.experiment import Chart, Check, Experiment, Outcome, Run, Text
from regard.experiments.interval import Interval, exponent

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]


class _Largest(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the elements of the largest tensor that comes into being."""

    n = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        self.n = max([self.n, *(leaf.numel() for leaf in tree_leaves(made) if isinstance(leaf, Tensor))])
        return made


def _explicit(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return attend(q, k, v, mask=causal(), tap=Trace())


def _fused(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return attend(q, k, v, mask=causal())


def _within(reach: Reach) -> Attend:
    def attend_within(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        call = Call(ScaledDot(), causal(), None, torch.arange(q.shape[2])[None], None, 0.0)
        return reach.attend(q, Growing(k, v), None, call)[0]

    return attend_within


WAYS: dict[str, Attend] = {
    "explicit": _explicit,
    "fused": _fused,
    "window of 128": _within(Blocks(Window(128, 0))),
    "linear": _within(Linear()),
}


@torch.no_grad()
def _run(run: Run) -> Outcome:
    lengths = [512, 1024, 2048, 4096] + [8192] * run.thorough
    seconds: dict[str, dict[int, list[float]]] = {name: {n: [] for n in lengths} for name in WAYS}
    largest: dict[str, dict[int, int]] = {name: {} for name in WAYS}
    for n in lengths:
        for seed in run.seeds:
            torch.manual_seed(seed)
            q, k, v = (torch.randn(1, 2, n, 32) for _ in range(3))
            for name, way in WAYS.items():
                taken = []
                for _ in range(4):
                    began = time.process_time()
                    way(q, k, v)
                    taken.append(time.process_time() - began)
                seconds[name][n].append(median(taken[1:]))
                if seed == run.seeds[0]:
                    with _Largest() as made:  # type: ignore[no-untyped-call]
                        way(q, k, v)
                    largest[name][n] = made.n
        run.tick(
            f"{n:,} tokens: " + ", ".join(f"{name} {1000 * seconds[name][n][-1]:.1f} ms" for name in WAYS)
        )
    time_p = {
        name: Interval.of([exponent(lengths, [of[n][at] for n in lengths]) for at in range(len(run.seeds))])
        for name, of in seconds.items()
    }
    space_p = {
        name: Interval.of([exponent(lengths, [float(of[n]) for n in lengths])])
        for name, of in largest.items()
    }
    checks = [
        Check(
            Text("time of explicit attention grows as n^p, p", "逐项计算的注意力，时间按 n^p 增长，p"),
            time_p["explicit"],
            1.5,
        ),
        Check(Text("its largest tensor, p", "其最大张量，p"), space_p["explicit"], 1.5),
        Check(Text("time of the fused kernel, p", "融合核的时间，p"), time_p["fused"], 1.5),
        Check(Text("its largest tensor, p", "融合核的最大张量，p"), space_p["fused"], 1.5),
    ]
    charts = [
        Chart(
            Text("time of one attention, forward, one thread", "一次注意力前向的时间，单线程"),
            Text("tokens", "词元数"),
            Text("CPU-seconds", "CPU 秒"),
            {name: [(n, Interval.of(of[n])) for n in lengths] for name, of in seconds.items()},
            log_x=True,
            log_y=True,
        ),
        Chart(
            Text("largest tensor that is made", "产生的最大张量"),
            Text("tokens", "词元数"),
            Text("elements", "元素数"),
            {name: [(n, Interval.of([float(of[n])])) for n in lengths] for name, of in largest.items()},
            log_x=True,
            log_y=True,
        ),
    ]
    others = ("window of 128", "linear")
    remarks = [
        Text(
            "Attention that sees less costs less. Exponents of time: "
            + "; ".join(f"{name} {time_p[name]}" for name in others)
            + ". Exponents of the largest tensor: "
            + "; ".join(f"{name} {space_p[name]}" for name in others)
            + ".",
            "看得少，代价就小。时间的指数："
            + "；".join(f"{name} {time_p[name]}" for name in others)
            + "。最大张量的指数："
            + "；".join(f"{name} {space_p[name]}" for name in others)
            + "。",
        )
    ]
    return Outcome(checks, charts, remarks)


PRICE = Experiment(
    "price",
    Text("The price of attention", "注意力的代价"),
    Text(
        "Attention between all pairs of n tokens takes time and memory that grow with n².",
        "n 个词元两两之间的注意力，时间和内存都按 n² 增长。",
    ),
    Text(
        "One causal attention (2 heads of width 32) over 512 to 4,096 tokens: explicit, as a tap sees "
        "it; by PyTorch's fused "
        "kernel; within a window of 128; linear. Time is that of the process on one thread, the median "
        "of three passes; "
        "memory is the largest tensor that any operation makes. Exponents are slopes in the logarithms.",
        "对 512 到 4,096 个词元做一次因果注意力（2 个头，每头宽 32）：逐项计算（探针看到的那种）、"
        "PyTorch 的融合核、宽 128 的窗口、"
        "线性注意力。时间是单线程的进程时间，取三次的中位数；内存取各运算产生的最大张量。指数是双对数图上"
        "的斜率。",
    ),
    Text(
        "Short texts: below a few hundred tokens the projections and the feed-forward network cost more "
        "than attention, and nothing "
        "here is quadratic. Nor does it show other machines: on an accelerator the constants differ, the "
        "exponents do not.",
        "没有说明短文本的情形：几百个词元以内，投影和前馈网络比注意力更费时，看不出平方。也没有说明别的机"
        "器：在加速器上常数不同，"
        "指数不变。",
    ),
    _run,
)
