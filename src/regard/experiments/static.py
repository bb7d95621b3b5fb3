"""8. Static against dynamic weights: what is pooled where the relevant place moves."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from regard.attention import Attention
from regard.attention.score import Additive
from regard.experiments.experiment import Chart, Check, Experiment, Outcome, Run, Text
from regard.experiments.interval import Interval
from regard.experiments.learning import Batch, accuracy, learn

N_VALUES, FIRST_VALUE, MARK = 8, 2, 1
D_MODEL = 32


class _Pooled(nn.Module):
    """Each place knows its token and the one before it; what is pooled over places gives the class."""

    def __init__(self, way: str, length: int) -> None:
        super().__init__()
        self.way = way
        self.embed = nn.Embedding(FIRST_VALUE + N_VALUES, D_MODEL)
        self.join = nn.Linear(2 * D_MODEL, D_MODEL)
        self.answer = nn.Linear(D_MODEL, N_VALUES)
        if way == "learned average":
            self.weight_T = nn.Parameter(torch.zeros(length))
        if way == "convolution":
            self.convolve = nn.Conv1d(D_MODEL, D_MODEL, 3, padding=1)
        if way == "attention":
            self.asks_11D = nn.Parameter(torch.randn(1, 1, D_MODEL) * D_MODEL**-0.5)
            self.attend = Attention(D_MODEL, d_key=D_MODEL, score=Additive(D_MODEL), project="qk")

    def forward(self, tokens_BT: Tensor) -> Tensor:
        x_BTD = self.embed(tokens_BT)
        x_BTD = self.join(torch.cat([x_BTD, x_BTD.roll(1, 1)], -1))
        if self.way == "learned average":
            pooled_BD = torch.softmax(self.weight_T, 0) @ x_BTD
        elif self.way == "attention":
            asks_B1D = self.asks_11D.expand(len(x_BTD), 1, -1)
            pooled_BD = self.attend(asks_B1D, self.attend.project_kv(x_BTD)).squeeze(1)
        else:
            if self.way == "convolution":
                x_BTD = torch.relu(self.convolve(x_BTD.transpose(1, 2))).transpose(1, 2)
            pooled_BD = x_BTD.mean(1)
        answer: Tensor = self.answer(pooled_BD)
        return answer


WAYS = ("fixed average", "learned average", "convolution", "attention")


def _draw(length: int, *, moves: bool) -> Callable[[torch.Generator], Batch]:
    """Values everywhere; the class is that behind the mark, which stands anywhere or always in the middle."""

    def draw(generator: torch.Generator) -> Batch:
        tokens_BT = torch.randint(FIRST_VALUE, FIRST_VALUE + N_VALUES, (64, length), generator=generator)
        place_B1 = torch.full((64, 1), length // 2)
        if moves:
            place_B1 = torch.randint(0, length - 1, (64, 1), generator=generator)
        label_B = tokens_BT.gather(1, place_B1 + 1).squeeze(1) - FIRST_VALUE
        return tokens_BT.scatter(1, place_B1, MARK), label_B

    return draw


def _run(run: Run) -> Outcome:
    lengths, steps = (8, 32, 64), 1500 if run.thorough else 300
    moving: dict[str, dict[int, list[float]]] = {way: {n: [] for n in lengths} for way in WAYS}
    fixed: dict[str, list[float]] = {way: [] for way in WAYS}
    for way in WAYS:
        for n in lengths:
            for seed in run.seeds:
                torch.manual_seed(seed)
                model = _Pooled(way, n)
                learn(model, _draw(n, moves=True), steps=steps, lr=5e-3, seed=seed)
                moving[way][n].append(accuracy(model, _draw(n, moves=True), seed=seed))
        for seed in run.seeds:
            torch.manual_seed(seed)
            model = _Pooled(way, 32)
            learn(model, _draw(32, moves=False), steps=steps, lr=5e-3, seed=seed)
            fixed[way].append(accuracy(model, _draw(32, moves=False), seed=seed))
        run.tick(f"{way}: " + ", ".join(f"{n} {Interval.of(moving[way][n])}" for n in lengths))

    def ahead(other: str, n: int) -> Interval:
        return Interval.of([a - b for a, b in zip(moving["attention"][n], moving[other][n], strict=True)])

    checks = [
        Check(
            Text(
                "a learned static average where the place is fixed, 32 tokens",
                "位置固定、32 个词元时，学出的静态平均",
            ),
            Interval.of(fixed["learned average"]),
            above=0.9,
        ),
        Check(
            Text("the same where the place moves", "位置移动时"),
            Interval.of(moving["learned average"][32]),
            below=0.5,
        ),
        Check(
            Text("attention where the place moves, 32 tokens", "位置移动、32 个词元时的注意力"),
            Interval.of(moving["attention"][32]),
            above=0.9,
        ),
        Check(
            Text("attention minus the convolution, 32 tokens", "注意力减卷积，32 个词元"),
            ahead("convolution", 32),
            above=0.0,
        ),
        Check(
            Text("attention minus the convolution, 64 tokens", "注意力减卷积，64 个词元"),
            ahead("convolution", 64),
            above=0.0,
        ),
    ]
    chart = Chart(
        Text("the value behind a mark that moves", "找出移动的标记后面的值"),
        Text("tokens", "词元数"),
        Text("share right", "答对的比例"),
        {way: [(n, Interval.of(of[n])) for n in lengths] for way, of in moving.items()},
        log_x=True,
    )
    table = {way: Interval.of(of) for way, of in fixed.items()}
    remark = Text(
        "Where the place is fixed (32 tokens): "
        + "; ".join(f"{way} {of}" for way, of in table.items())
        + ".",
        "位置固定时（32 个词元）：" + "；".join(f"{way} {of}" for way, of in table.items()) + "。",
    )
    return Outcome(checks, [chart], [remark])


STATIC = Experiment(
    "static",
    Text("Static against dynamic weights", "静态权重与动态权重"),
    Text(
        "Attention weighs anew for every input; weights that are fixed or learned once cannot follow a "
        "relevant place that moves.",
        "注意力对每个输入重新分配权重；固定的或只学一次的权重，跟不上会移动的关键位置。",
    ),
    Text(
        "The class is the value behind a mark among 8 to 64 values. Every place knows its token and the "
        "one before it, linearly; a "
        "fixed average, an average with one learned weight a place, a convolution with ReLU and mean, "
        "and additive attention pool them.",
        "类别是标记后面的那个值，混在 8 到 64 个值当中。每个位置线性地知道自己和前一个词元；分别用固定平"
        "均、每个位置学一个权重的平均、"
        "卷积加 ReLU 再平均、加性注意力来汇总。",
    ),
    Text(
        "A convolution with a ReLU can silence places by their content, so it is not wholly static: how "
        "far that carries is what is "
        "measured. Nothing is said about tasks in which everything counts a little.",
        "带 ReLU 的卷积可以按内容让某些位置静默，所以它并非完全静态：能做到什么程度，正是这里测量的。至于"
        "处处都有一点用的任务，这里没有说明。",
    ),
    _run,
)
