"""1. Parallelism: steps that wait for each other, and time against length, for RNN, CNN and attention."""

import time
from collections.abc import Callable
from statistics import median

import torch
from torch import Tensor, nn

from regard.experiments.experiment import Chart, Check, Experiment, Outcome, Run, Text
from regard.experiments.interval import Interval, exponent
from regard.experiments.learning import Convolved, Reader, Recurrent, layer, n_parameters

N_TOKENS, N_CLASSES = 32, 8


def _attention(reach: dict[str, object] | None) -> Reader:
    return Reader(layer(64, "rotary", reach=reach, d_ff=128), 2, N_TOKENS, N_CLASSES, from_last=True)


WAYS: dict[str, Callable[[], nn.Module]] = {
    "RNN (GRU)": lambda: Recurrent("gru", 104, N_TOKENS, N_CLASSES),
    "CNN, dilated": lambda: Convolved(59, N_TOKENS, N_CLASSES, (1, 2, 4)),
    "attention": lambda: _attention(None),
    "window of 64": lambda: _attention({"kind": "window", "left": 64}),
    "linear attention": lambda: _attention({"kind": "linear"}),
}
"""Of about as many parameters each."""


class _Cells(nn.Module):
    """A GRU as a loop over its cell, so that its steps stand one by one in the graph."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(8, 8)

    def forward(self, x_BTD: Tensor) -> Tensor:
        state_BD = x_BTD.new_zeros(len(x_BTD), 8)
        for x_BD in x_BTD.unbind(1):
            state_BD = self.cell(x_BD, state_BD)
        return state_BD


def _depth(out: Tensor) -> int:
    """The longest chain of operations that wait for each other, on the way back from `out`."""
    deepest: dict[object, int] = {}
    stack = [(out.grad_fn, False)]
    while stack:
        node, is_ready = stack.pop()
        if node is None or node in deepest:
            continue
        before = [parent for parent, _ in node.next_functions if parent is not None]
        if is_ready:
            deepest[node] = 1 + max((deepest.get(parent, 0) for parent in before), default=0)
        else:
            stack += [(node, True), *((parent, False) for parent in before)]
    return max(deepest.values())


def _chains(lengths: tuple[int, ...]) -> dict[str, list[int]]:
    """The chain of an RNN, a CNN and an attention at each length."""
    convolved, attention, cells = Convolved(8, N_TOKENS, N_CLASSES, (1, 2, 4)), _attention(None), _Cells()
    chains: dict[str, list[int]] = {"RNN (GRU)": [], "CNN, dilated": [], "attention": []}
    for n in lengths:
        tokens_1T = torch.randint(0, N_TOKENS, (1, n))
        chains["RNN (GRU)"].append(_depth(cells(torch.randn(1, n, 8))))
        chains["CNN, dilated"].append(_depth(convolved(tokens_1T)))
        chains["attention"].append(_depth(attention(tokens_1T)))
    return chains


def _seconds(model: nn.Module, n: int, *, learns: bool) -> float:
    """CPU-seconds a token of one pass; as many rows as make 4,096 tokens, one at least."""
    tokens_BT = torch.randint(0, N_TOKENS, (max(1, 4096 // n), n))
    taken = []
    for _ in range(3):
        began = time.process_time()
        with torch.set_grad_enabled(learns):
            out = model(tokens_BT)
        if learns:
            out.sum().backward()
        taken.append(time.process_time() - began)
    return median(taken[1:]) / tokens_BT.numel()


def _run(run: Run) -> Outcome:
    chain_lengths = (32, 64, 128, 256)
    lengths = [32, 128, 512, 2048] + [8192] * run.thorough
    chains = _chains(chain_lengths)
    steps: dict[str, dict[int, list[float]]] = {name: {n: [] for n in lengths} for name in WAYS}
    answers: dict[str, dict[int, list[float]]] = {name: {n: [] for n in lengths} for name in WAYS}
    for name, build in WAYS.items():
        for seed in run.seeds:
            torch.manual_seed(seed)
            model = build()
            for n in lengths:
                steps[name][n].append(1e6 * _seconds(model, n, learns=True))
                answers[name][n].append(1e6 * _seconds(model, n, learns=False))
        run.tick(f"{name}: " + ", ".join(f"{n} {Interval.of(steps[name][n])} µs a token" for n in lengths))

    def ratio(n: int) -> Interval:
        pairs = zip(steps["attention"][n], steps["RNN (GRU)"][n], strict=True)
        return Interval.of([a / b for a, b in pairs])

    growth = {
        name: Interval.of([exponent(chain_lengths, [float(one) for one in of])])
        for name, of in chains.items()
    }
    longest = lengths[-1]
    checks = [
        Check(
            Text("the chain of an RNN grows as n^p, p", "RNN 的依赖链按 n^p 增长，p"),
            growth["RNN (GRU)"],
            above=0.5,
        ),
        Check(
            Text("the chain of a CNN, as one text claims", "CNN 的依赖链（有一篇文章这样说），p"),
            growth["CNN, dilated"],
            above=0.5,
        ),
        Check(Text("the chain of attention", "注意力的依赖链，p"), growth["attention"], below=0.1),
        Check(
            Text(
                "training step at 32 tokens, attention over RNN", "32 个词元的训练步，注意力与 RNN 的时间之比"
            ),
            ratio(32),
            below=1.0,
        ),
        Check(
            Text(
                f"training step at {longest:,} tokens, attention over RNN",
                f"{longest:,} 个词元的训练步，注意力与 RNN 的时间之比",
            ),
            ratio(longest),
            below=1.0,
        ),
    ]

    def chart(title: Text, of: dict[str, dict[int, list[float]]]) -> Chart:
        lines = {name: [(n, Interval.of(each[n])) for n in lengths] for name, each in of.items()}
        return Chart(
            title,
            Text("tokens of a text", "每篇词元数"),
            Text("CPU-µs a token", "每词元 CPU 微秒"),
            lines,
            log_x=True,
            log_y=True,
        )

    charts = [
        chart(Text("training step, one thread", "训练步，单线程"), steps),
        chart(Text("forward pass, one thread", "前向，单线程"), answers),
        Chart(
            Text("operations that wait for each other", "彼此等待的运算"),
            Text("tokens of a text", "每篇词元数"),
            Text("length of the chain", "链长"),
            {
                name: [(n, Interval.of([float(one)])) for n, one in zip(chain_lengths, of, strict=True)]
                for name, of in chains.items()
            },
            log_x=True,
            log_y=True,
        ),
    ]
    sizes = "; ".join(f"{name} {n_parameters(build()):,}" for name, build in WAYS.items())
    remark = Text(f"Parameters: {sizes}.", f"参数量：{sizes}。")
    return Outcome(checks, charts, [remark])


PARALLELISM = Experiment(
    "parallelism",
    Text("Parallelism", "并行"),
    Text(
        "RNNs and CNNs work through a sequence one position after the other; self-attention computes all "
        "positions at once, and so "
        "learns faster.",
        "RNN 和 CNN 要逐个位置处理序列；自注意力同时计算所有位置，因此训练更快。",
    ),
    Text(
        "The longest chain of operations that wait for each other is read from the graph of gradients. "
        "Then a training step and a "
        "forward pass are timed at equal parameters and equal tokens, on one thread, for texts of 32 to "
        "2,048 tokens.",
        "从梯度图读出彼此等待的运算的最长链。再在参数量和词元数相同、单线程的条件下，测 32 到 2,048 个词"
        "元的文本的训练步和前向时间。",
    ),
    Text(
        "A processor with few cores: on one thread a short chain gives no advantage by itself, only "
        "fewer and larger products do. On an "
        "accelerator the chain is what counts. In this project's own translation recipes, at Multi30k's "
        "lengths, the Transformer and "
        "the RNN learn equally fast (2,078 and 2,076 target tokens a second on two cores), as sentences "
        "of 13 words leave little to "
        "compute in parallel that a batch does not already.",
        "这里是核数很少的处理器：单线程上，链短本身没有好处，运算少而大才有好处；在加速器上，链长才是关键"
        "。在本项目自己的翻译配方里，"
        "按 Multi30k 的句长，Transformer 和 RNN 训练一样快（双核上每秒 2,078 和 2,076 个目标词元），因为 "
        "13 个词的句子，"
        "能并行的部分批处理已经并行了。",
    ),
    _run,
)
