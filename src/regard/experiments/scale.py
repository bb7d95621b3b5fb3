"""4. Why scores are divided by √d_k: their variance, the softmax, its gradient, and learning."""

import math

import torch
from torch import Tensor, nn

from regard.attention import Dot, ScaledDot, Score, attend
from regard.experiments.experiment import Chart, Check, Experiment, Outcome, Run, Text
from regard.experiments.interval import Interval
from regard.experiments.learning import Batch, accuracy, learn

WIDTHS = (4, 16, 64, 256, 1024)
N_KEYS, N_PAIRS, N_NAMES, LEARNT_WIDTH = 64, 8, 32, 256


def _measures(score: Score, d_key: int, seed: int) -> tuple[float, float, float]:
    """The variance of scores, the share of the largest entropy, the gradient through the softmax."""
    torch.manual_seed(seed)
    q, k = torch.randn(1, 1, 256, d_key), torch.randn(1, 1, N_KEYS, d_key)
    scores = score(q, k).detach().requires_grad_()
    weights = torch.softmax(scores, -1)
    entropy = -(weights * weights.clamp(min=1e-30).log()).sum(-1).mean() / math.log(N_KEYS)
    (gradient,) = torch.autograd.grad((weights * torch.randn_like(weights)).sum(), scores)
    return float(scores.detach().var()), float(entropy.detach()), float(gradient.norm(dim=-1).mean())


class _Lookup(nn.Module):
    """One attention that finds the value of a name among pairs; queries and keys begin with variance 1."""

    def __init__(self, score: Score) -> None:
        super().__init__()
        self.score = score
        self.query, self.key = nn.Embedding(N_NAMES, LEARNT_WIDTH), nn.Embedding(N_NAMES, LEARNT_WIDTH)
        self.value = nn.Embedding(N_NAMES, 32)
        self.answer = nn.Linear(32, N_NAMES)

    def forward(self, tokens_BT: Tensor) -> Tensor:
        names, values, wanted = tokens_BT[:, 0:-1:2], tokens_BT[:, 1:-1:2], tokens_BT[:, -1:]
        q, k, v = self.query(wanted), self.key(names), self.value(values)
        out = attend(q[:, None], k[:, None], v[:, None], score=self.score)
        answer: Tensor = self.answer(out[:, 0, 0])
        return answer


def _draw(generator: torch.Generator) -> Batch:
    n_rows = 64
    names = torch.rand(n_rows, N_NAMES, generator=generator).argsort(1)[:, :N_PAIRS]
    values = torch.randint(N_NAMES, (n_rows, N_PAIRS), generator=generator)
    place = torch.randint(N_PAIRS, (n_rows, 1), generator=generator)
    pairs = torch.stack([names, values], 2).flatten(1)
    return torch.cat([pairs, names.gather(1, place)], 1), values.gather(1, place).squeeze(1)


def _run(run: Run) -> Outcome:
    scores: dict[str, Score] = {"q·k / √d": ScaledDot(), "q·k": Dot()}
    measured = {
        name: {d: list(zip(*(_measures(score, d, seed) for seed in run.seeds), strict=True)) for d in WIDTHS}
        for name, score in scores.items()
    }
    steps = 600 if run.thorough else 250
    curves: dict[str, list[list[float]]] = {}
    right: dict[str, list[float]] = {}
    for name, score in scores.items():
        curves[name], right[name] = [], []
        for seed in run.seeds:
            torch.manual_seed(seed)
            model = _Lookup(score)
            curves[name].append(learn(model, _draw, steps=steps, seed=seed, lr=5e-3))
            right[name].append(accuracy(model, _draw, seed=seed))
        run.tick(f"{name}: {Interval.of(right[name])} right after {steps} steps")
    widest = {name: of[WIDTHS[-1]] for name, of in measured.items()}
    ratio = [a / b for a, b in zip(widest["q·k"][2], widest["q·k / √d"][2], strict=True)]
    ahead = [a - b for a, b in zip(right["q·k / √d"], right["q·k"], strict=True)]
    checks = [
        Check(
            Text("variance of q·k at d_k = 1,024, over d_k", "d_k = 1,024 时 q·k 的方差除以 d_k"),
            Interval.of([one / WIDTHS[-1] for one in widest["q·k"][0]]),
            0.8,
            1.2,
        ),
        Check(
            Text("variance after division by √d_k", "除以 √d_k 之后的方差"),
            Interval.of(widest["q·k / √d"][0]),
            0.8,
            1.2,
        ),
        Check(
            Text("entropy without the scale, as a share of the largest", "不缩放时的熵，占最大熵的比例"),
            Interval.of(widest["q·k"][1]),
            below=0.2,
        ),
        Check(
            Text("gradient through the softmax, without over with", "穿过 softmax 的梯度，不缩放与缩放之比"),
            Interval.of(ratio),
            below=0.5,
        ),
        Check(
            Text(
                f"share of right answers after {steps} steps at d_k = {LEARNT_WIDTH}, with minus without",
                f"d_k = {LEARNT_WIDTH}、训练 {steps} 步后答对的比例，缩放减不缩放",
            ),
            Interval.of(ahead),
            above=0.0,
        ),
    ]
    titles = [
        (Text("variance of scores", "分数的方差"), Text("variance", "方差"), 0),
        (Text("entropy of the softmax", "softmax 的熵"), Text("share of log 64", "占 log 64 的比例"), 1),
        (Text("gradient that comes through the softmax", "穿过 softmax 的梯度"), Text("norm", "范数"), 2),
    ]
    charts = [
        Chart(
            title,
            Text("d_k", "d_k"),
            y,
            {name: [(d, Interval.of(of[d][which])) for d in WIDTHS] for name, of in measured.items()},
            log_x=True,
            log_y=which != 1,
        )
        for title, y, which in titles
    ]
    ticks = range(0, steps, max(1, steps // 12))
    charts.append(
        Chart(
            Text(f"learning to look up, d_k = {LEARNT_WIDTH}", f"学习查找，d_k = {LEARNT_WIDTH}"),
            Text("step", "步"),
            Text("loss", "损失"),
            {
                name: [(at, Interval.of([one[at] for one in of])) for at in ticks]
                for name, of in curves.items()
            },
        )
    )
    return Outcome(checks, charts)


SCALE = Experiment(
    "scale",
    Text("Why √d_k", "为什么除以 √d_k"),
    Text(
        "Dot products of wide vectors are large, push the softmax to one-hot and its gradient to zero; "
        "dividing by √d_k prevents "
        "that, and learning gains by it.",
        "宽向量的点积很大，会把 softmax 推向独热、把它的梯度推向零；除以 √d_k 能避免这一点，学习因此受益。",
    ),
    Text(
        "Queries and keys with independent entries of mean 0 and variance 1, 64 keys, widths of 4 to "
        "1,024; then one attention that "
        "learns to look a name up among eight pairs, with `ScaledDot` and with `Dot`, from the same weights.",
        "查询和键的各分量独立，均值 0、方差 1，共 64 个键，宽度 4 到 1,024；再让一个注意力学习在八对名字"
        "和值中查找，分别用 "
        "`ScaledDot` 和 `Dot`，起始权重相同。",
    ),
    Text(
        "A model could as well begin with smaller weights, or learn the scale; what counts is the size "
        "of the scores, not the "
        "division as such. The task is small and the vectors begin with variance 1, as the argument assumes.",
        "模型也可以从更小的权重开始，或者自己学出缩放：要紧的是分数的大小，而不是除法本身。任务很小，向量"
        "也按论证的假设以方差 1 起步。",
    ),
    _run,
)
