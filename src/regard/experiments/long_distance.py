"""2. Long distance: what is left of the first token at the end, for RNN, CNN, attention and its reaches."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from regard.experiments.experiment import Chart, Check, Experiment, Outcome, Run, Text
from regard.experiments.interval import Interval
from regard.experiments.learning import Batch, Convolved, Reader, Recurrent, accuracy, layer, learn

N_VALUES, FIRST_VALUE, WANTED = 8, 2, 1
N_TOKENS = FIRST_VALUE + 2 * N_VALUES
"""A mark, the values, and as many fillers."""
DISTANCES = (8, 32, 96)


def _attention(reach: dict[str, object] | None) -> Reader:
    return Reader(layer(32, "rotary", reach=reach), 2, N_TOKENS, N_VALUES, from_last=True)


WAYS: dict[str, Callable[[], nn.Module]] = {
    "RNN": lambda: Recurrent("rnn", 48, N_TOKENS, N_VALUES),
    "LSTM": lambda: Recurrent("lstm", 32, N_TOKENS, N_VALUES),
    "GRU": lambda: Recurrent("gru", 32, N_TOKENS, N_VALUES),
    "CNN, dilated": lambda: Convolved(32, N_TOKENS, N_VALUES, (1, 2, 4)),
    "attention": lambda: _attention(None),
    "window of 12": lambda: _attention({"kind": "window", "left": 12}),
    "linear": lambda: _attention({"kind": "linear"}),
}


def _draw(distances: tuple[int, ...]) -> Callable[[torch.Generator], Batch]:
    """A value, fillers, and a mark that wants the value; a batch has one distance."""

    def draw(generator: torch.Generator) -> Batch:
        distance = distances[int(torch.randint(len(distances), (), generator=generator))]
        value_B = torch.randint(N_VALUES, (32,), generator=generator)
        first = FIRST_VALUE + N_VALUES
        filler_BT = torch.randint(first, first + N_VALUES, (32, distance - 1), generator=generator)
        wanted_B1 = torch.full((32, 1), WANTED)
        return torch.cat([FIRST_VALUE + value_B[:, None], filler_BT, wanted_B1], 1), value_B

    return draw


def _share(model: nn.Module, distance: int, seed: int) -> float:
    """The gradient that reaches the first token, over that of the token before the last; untrained."""
    tokens_BT, _ = _draw((distance,))(torch.Generator().manual_seed(seed))
    kept: list[Tensor] = []
    embed = next(module for name, module in model.named_modules() if name == "embed")

    def keep(module: nn.Module, inputs: object, out: Tensor) -> None:
        out.retain_grad()
        kept.append(out)

    handle = embed.register_forward_hook(keep)
    model(tokens_BT).square().sum().backward()
    handle.remove()
    gradient_BTD = kept[0].grad
    assert gradient_BTD is not None
    norm_T = gradient_BTD.norm(dim=-1).mean(0)
    return float(norm_T[0] / norm_T[-2]) + 1e-12


def _run(run: Run) -> Outcome:
    steps = 1000 if run.thorough else 250
    right: dict[str, dict[int, list[float]]] = {way: {n: [] for n in DISTANCES} for way in WAYS}
    shares: dict[str, dict[int, list[float]]] = {way: {n: [] for n in DISTANCES} for way in WAYS}
    for way, build in WAYS.items():
        for seed in run.seeds:
            torch.manual_seed(seed)
            model = build()
            for n in DISTANCES:
                shares[way][n].append(_share(model, n, seed))
            learn(model, _draw(DISTANCES), steps=steps, seed=seed, lr=3e-3)
            for n in DISTANCES:
                right[way][n].append(accuracy(model, _draw((n,)), seed=seed, batches=8))
        run.tick(f"{way}: " + ", ".join(f"{n} {Interval.of(right[way][n])}" for n in DISTANCES))
    far = DISTANCES[-1]

    def ahead(other: str) -> Interval:
        return Interval.of([a - b for a, b in zip(right["attention"][far], right[other][far], strict=True)])

    checks = [
        Check(
            Text(f"attention over {far} tokens: share right", f"相隔 {far} 个词元，注意力答对的比例"),
            Interval.of(right["attention"][far]),
            above=0.9,
        ),
        *(
            Check(
                Text(f"attention minus {way}, over {far} tokens", f"相隔 {far} 个词元，注意力减 {way}"),
                ahead(way),
                above=0.0,
            )
            for way in ("RNN", "LSTM", "GRU", "CNN, dilated")
        ),
        Check(
            Text(
                f"untrained RNN: gradient at the first of {far} tokens, over that of a near one",
                f"未训练的 RNN 里，传到第 1 个词元（共 {far} 个）的梯度与近处梯度之比",
            ),
            Interval.of(shares["RNN"][far]),
            below=0.01,
        ),
        Check(
            Text("the same in attention", "注意力里的同一比值"),
            Interval.of(shares["attention"][far]),
            above=0.01,
        ),
    ]
    charts = [
        Chart(
            Text("the first token, wanted at the end", "结尾处要回答第一个词元"),
            Text("distance, tokens", "距离，词元数"),
            Text("share right", "答对的比例"),
            {way: [(n, Interval.of(of[n])) for n in DISTANCES] for way, of in right.items()},
            log_x=True,
        ),
        Chart(
            Text("gradient that reaches the first token, untrained", "未训练时传到第一个词元的梯度"),
            Text("distance, tokens", "距离，词元数"),
            Text("over that of a near token", "与近处之比"),
            {way: [(n, _positive(of[n])) for n in DISTANCES] for way, of in shares.items()},
            log_x=True,
            log_y=True,
        ),
    ]
    return Outcome(checks, charts)


def _positive(values: list[float]) -> Interval:
    """The interval, cut off where a logarithmic axis ends."""
    interval = Interval.of(values)
    return Interval(interval.mean, max(interval.low, 0.1 * interval.mean), interval.high)


LONG_DISTANCE = Experiment(
    "long_distance",
    Text("Long distance", "长距离"),
    Text(
        "Attention joins any two positions directly; recurrent networks forget what is far, and "
        "convolutions see only what is near.",
        "注意力直接连接任意两个位置；循环网络会忘掉远处的内容，卷积只看得到近处。",
    ),
    Text(
        "The first token is a value, fillers follow, and a mark at the end wants the value. Every kind "
        "of model learns it for distances of "
        "8, 32 and 96 at once, in a few hundred steps. Before that, the gradient that reaches the first "
        "token is measured.",
        "第一个词元是一个值，后面是填充，结尾的标记要求说出这个值。每种模型同时学习距离 8、32、96，训练几"
        "百步。训练之前先测量传到第一个词元的梯度。",
    ),
    Text(
        "Whether a longer training would teach the gated networks: they may well learn it. The "
        "convolution sees 15 tokens by its size and "
        "the window 24, so that beyond that they cannot know; more layers would see further.",
        "没有说明训练更久之后如何：带门控的网络很可能学得会。卷积按大小只看得到 15 个词元，窗口看得到 24 "
        "个，更远的它们无从知道；层数多了就看得更远。",
    ),
    _run,
)
