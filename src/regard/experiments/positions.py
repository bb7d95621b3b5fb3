"""5. Positions: shifts as linear maps, attention blind to order, and how far each kind reaches."""

import torch
from torch import Tensor, nn

from regard.attention import sinusoid
from regard.experiments.experiment import Chart, Check, Experiment, Outcome, Run, Text
from regard.experiments.interval import Interval
from regard.experiments.learning import Batch, Reader, Recurrent, accuracy, layer, learn

D_MODEL, SHIFT = 64, 17
N_TOKENS, FIRST, SECOND = 12, 2, 3
KINDS = ("none", "sinusoidal", "learned", "rotary", "relative", "alibi")
TRAINED, LENGTHS = 16, (8, 16, 32, 64)


def _shift_error(seed: int) -> tuple[float, float]:
    """The largest error of PE(pos + k) as a turn of each pair of PE(pos), and that of a fitted map."""
    table_TD = sinusoid(torch.arange(1024), D_MODEL).double()
    rates = torch.exp(
        torch.arange(0, D_MODEL, 2).double() * (-torch.log(torch.tensor(10000.0)).double() / D_MODEL)
    )
    cos, sin = (SHIFT * rates).cos(), (SHIFT * rates).sin()
    even, odd = table_TD[:, 0::2], table_TD[:, 1::2]
    turned_TD = torch.stack([even * cos + odd * sin, odd * cos - even * sin], -1).flatten(1)
    exact = float((turned_TD[:-SHIFT] - table_TD[SHIFT:]).abs().max())
    generator = torch.Generator().manual_seed(seed)
    places, others = torch.randperm(1024 - SHIFT, generator=generator).tensor_split([256])
    fitted_DD = torch.linalg.lstsq(table_TD[places], table_TD[places + SHIFT], driver="gelsd").solution
    return exact, float((table_TD[others] @ fitted_DD - table_TD[others + SHIFT]).abs().max())


def _draw(length: int) -> object:
    """Texts in which two marks stand somewhere; the class says which comes first."""

    def draw(generator: torch.Generator) -> Batch:
        tokens_BT = torch.randint(4, N_TOKENS, (64, length), generator=generator)
        places_B2 = torch.rand(64, length, generator=generator).argsort(1)[:, :2]
        tokens_BT.scatter_(1, places_B2, torch.tensor([[FIRST, SECOND]]).expand(64, -1))
        return tokens_BT, (places_B2[:, 0] < places_B2[:, 1]).long()

    return draw


def _model(kind: str) -> nn.Module:
    if kind == "gru":
        return Recurrent("gru", 32, N_TOKENS, 2)
    settings = layer(32, kind, max_positions=max(LENGTHS))
    return Reader(settings, 2, N_TOKENS, 2, from_last=False)


@torch.no_grad()
def _order_sense(seed: int) -> float:
    """How much the answer of an untrained model without positions changes when its tokens change places."""
    torch.manual_seed(seed)
    model = _model("none").eval()
    tokens_BT = torch.randint(0, N_TOKENS, (8, TRAINED))
    shuffled_BT: Tensor = tokens_BT[:, torch.randperm(TRAINED)]
    return float((model(tokens_BT) - model(shuffled_BT)).abs().max())


def _run(run: Run) -> Outcome:
    steps = 800 if run.thorough else 300
    right: dict[str, dict[int, list[float]]] = {}
    for kind in (*KINDS, "gru"):
        right[kind] = {length: [] for length in LENGTHS}
        for seed in run.seeds:
            torch.manual_seed(seed)
            model = _model(kind)
            learn(model, _draw(TRAINED), steps=steps, seed=seed, lr=3e-3)  # type: ignore[arg-type]
            for length in LENGTHS:
                right[kind][length].append(accuracy(model, _draw(length), seed=seed))  # type: ignore[arg-type]
        run.tick(
            f"{kind}: {Interval.of(right[kind][TRAINED])} at {TRAINED}, {Interval.of(right[kind][64])} at 64"
        )
    errors = [_shift_error(seed) for seed in run.seeds]
    weaker = {
        length: [
            gru - max(right[kind][length][at] for kind in KINDS)
            for at, gru in enumerate(right["gru"][length])
        ]
        for length in (TRAINED, LENGTHS[-1])
    }
    checks = [
        Check(
            Text(
                "PE(pos + 17) as a turn of PE(pos): largest error",
                "PE(pos + 17) 作为 PE(pos) 的旋转：最大误差",
            ),
            Interval.of([max(exact for exact, _ in errors)]),
            below=1e-3,
        ),
        Check(
            Text(
                "a map fitted to 256 positions, on positions never seen: largest error",
                "用 256 个位置拟合的映射，用在没见过的位置上：最大误差",
            ),
            Interval.of([fitted for _, fitted in errors]),
            below=0.05,
        ),
        Check(
            Text(
                "change of the answer when tokens change places, without positions",
                "没有位置时，词元换位后回答的变化",
            ),
            Interval.of([max(map(_order_sense, run.seeds))]),
            below=1e-4,
        ),
        Check(
            Text(
                "which mark is first, without positions: share right",
                "没有位置时判断哪个标记在前：答对的比例",
            ),
            Interval.of(right["none"][TRAINED]),
            below=0.6,
        ),
        Check(
            Text("the same with sinusoidal positions", "有正弦位置时"),
            Interval.of(right["sinusoidal"][TRAINED]),
            above=0.9,
        ),
        Check(
            Text("sinusoidal positions at four times the trained length", "正弦位置，四倍于训练长度"),
            Interval.of(right["sinusoidal"][64]),
            above=0.9,
        ),
        Check(
            Text(
                "a GRU is ahead of the best attention, at the trained length",
                "在训练长度上，GRU 领先于最好的注意力",
            ),
            Interval.of(weaker[TRAINED]),
            above=0.0,
        ),
        Check(
            Text("the same at four times that length", "在四倍长度上"),
            Interval.of(weaker[LENGTHS[-1]]),
            above=0.0,
        ),
    ]
    chart = Chart(
        Text(
            f"which of two marks is first: trained on {TRAINED} tokens",
            f"两个标记哪个在前：在 {TRAINED} 个词元上训练",
        ),
        Text("tokens", "词元数"),
        Text("share right", "答对的比例"),
        {kind: [(n, Interval.of(of[n])) for n in LENGTHS] for kind, of in right.items()},
        log_x=True,
    )
    return Outcome(checks, [chart])


POSITIONS = Experiment(
    "positions",
    Text("Positions", "位置"),
    Text(
        "Attention is blind to order. Sinusoidal positions give it sight, shifts among them are linear, "
        "and they carry beyond the "
        "trained length; still its sense of position is weaker than that of a recurrent network.",
        "注意力看不见顺序。正弦位置让它看见，位置的平移是线性映射，还能用到训练长度之外；但它的位置感仍弱"
        "于循环网络。",
    ),
    Text(
        "Shifts are computed exactly and fitted by least squares. Two layers of width 32 with each kind "
        "of position, and a GRU of the "
        "same width, learn to say which of two marks comes first in 16 tokens, and are asked at 8 to 64.",
        "平移既精确计算，也用最小二乘拟合。两层、宽 32 的模型分别配上各种位置，再加一个同宽的 GRU，学习说"
        "出 16 个词元里两个标记哪个在前，"
        "然后在 8 到 64 个词元上提问。",
    ),
    Text(
        "One task that asks for order alone. A model that fails here at a length can do well at it in "
        "translation, where near words "
        "count most. Learned positions beyond the trained length are simply untrained, and ALiBi knows "
        "distances but no sides: an "
        "encoder with it cannot know which comes first.",
        "只有一个纯粹问顺序的任务。在这里某个长度上失败的模型，翻译时仍可能很好，因为那里近处的词最要紧；"
        "训练长度之外的可学习位置只是没有训练过；"
        "ALiBi 只知道距离、不分左右，用在编码器里本来就分不出先后。",
    ),
    _run,
)
