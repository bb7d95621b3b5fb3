"""How long texts are attended to: full causal attention beside every reach, in time and in memory.

    python bench/long_attention.py                       # forward times at 512 … 16,384, and where each pays
    python bench/long_attention.py --memory              # peak memory of a training step, to 65,536 tokens
    python bench/long_attention.py --peer VENV/bin/python    # beside x-transformers' local attention
    python bench/long_attention.py --find                # a planted key at 16,384: which reach finds it
    python bench/long_attention.py --generate 10000      # what a GPT keeps while it writes

Queries, keys and values are made beforehand: 1 row, 4 heads of width 64. Figures are medians of runs that
take turns, so that what else runs on the machine slows all of them alike: ratios are to be read, not times.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.attention import Blocks, Growing, Linear, Reach, ScaledDot, causal
from regard.attention.mask import Chunk, Window
from regard.attention.reach import Call, Landmarks

HEADS, WIDTH = 4, 64
REACHES: dict[str, Reach] = {
    "window 256": Blocks(Window(256, 0)),
    "window 256, 16 global": Blocks(Window(256, 0, 1, 16)),
    "window 128, dilated 2": Blocks(Window(128, 0, 2)),
    "chunks 256 + 1": Blocks(Chunk(256, 1)),
    "linear": Linear(),
    "landmarks 64 + 4": Landmarks(64, 4),
}


def made(length: int, *, learns: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, HEADS, length, WIDTH, requires_grad=learns) for _ in range(3))
    return q, k, v


def full(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def within(reach: Reach) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        call = Call(ScaledDot(), causal(), None, torch.arange(q.shape[2])[None], None, 0.0)
        return reach.attend(q, Growing(k, v), None, call)[0]

    return attend


def seconds(
    attend: Callable[[Tensor, Tensor, Tensor], Tensor], parts: tuple[Tensor, Tensor, Tensor]
) -> float:
    began = time.process_time()
    attend(*parts)
    return time.process_time() - began


@torch.no_grad()
def times(lengths: list[int], repeats: int) -> None:
    """CPU-seconds of the process, with one thread: waiting for a turn on a shared machine does not count."""
    ways = {"full causal": full} | {name: within(reach) for name, reach in REACHES.items()}
    print("| length | " + " | ".join(f"{name}, ms" for name in ways) + " |")
    print("|---" * (len(ways) + 1) + "|")
    ratios: dict[str, dict[int, float]] = {name: {} for name in ways}
    for length in lengths:
        parts, taken = made(length), {name: [] for name in ways}
        for turn in range(repeats + 1):
            for name, attend in ways.items():
                took = seconds(attend, parts)
                if turn:  # the first is for caches
                    taken[name].append(took)
        middle = {name: median(each) for name, each in taken.items()}
        for name in ways:
            ratios[name][length] = middle["full causal"] / middle[name]
        cells = [f"{1000 * middle[name]:.1f} ({ratios[name][length]:.1f}×)" for name in ways]
        print(f"| {length:,} | " + " | ".join(cells) + " |", flush=True)
    for name in REACHES:
        pays = [length for length in lengths if all(ratios[name][at] > 1 for at in lengths if at >= length)]
        print(
            f"- {name}: faster from {pays[0]:,} tokens on"
            if pays
            else f"- {name}: not faster up to {lengths[-1]:,}"
        )


def training_step(name: str, length: int) -> None:
    """One forward and backward pass of a GPT with this reach, in a process of its own: its peak memory."""
    from regard.layers.heads import smoothed_cross_entropy
    from regard.models import GPTConfig, Widths

    settings = {
        "full": None,
        "window": {"kind": "window", "left": 256},
        "linear": {"kind": "linear"},
        "landmarks": {"kind": "landmarks"},
    }[name]
    config = GPTConfig(
        d_model=64, d_ff=128, n_heads=2, n_layers=2, position="rotary", reach=settings, dropout=0.0
    )
    model = config.build(Widths({"vocab": 64}, {"vocab": 64}))
    tokens = torch.randint(4, 64, (1, length))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    model(tokens, torch.ones_like(tokens, dtype=torch.bool), smoothed_cross_entropy(tokens[0], 0.0))[
        0
    ].backward()
    took = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"name": name, "length": length, "mb": (peak - before) / 1024, "seconds": took}))


def memory(lengths: list[int], names: list[str]) -> None:
    print("| length | " + " | ".join(f"{name}, MB (CPU-s)" for name in names) + " |")
    print("|---" * (len(names) + 1) + "|")
    for length in lengths:
        cells = []
        for name in names:
            if name == "full" and length > 16_384:  # quadratic time
                cells.append("–")
                continue
            command = [sys.executable, __file__, "--step", name, str(length)]
            answer = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            cells.append(f"{answer['mb']:,.0f} ({answer['seconds']:.1f})")
        print(f"| {length:,} | " + " | ".join(cells) + " |", flush=True)


@torch.no_grad()
def find(length: int, trials: int) -> None:
    """Keys are random; the last query wants one planted somewhere before. Whose output is its value?

    The query comes as a step of generation does, with all other keys in its cache. Every landmark reads 256
    keys beside its own chunk; the smaller the chunks, the less a planted key is watered down in their mean.
    """
    ways = REACHES | {
        f"landmarks {size} + {256 // size}": Landmarks(size, 256 // size) for size in (16, 8, 4)
    }
    print(f"a planted key among {length:,}, {trials} trials: found by")
    for name, reach in ways.items():
        if isinstance(reach, Linear):
            continue  # it keeps no keys
        found = 0
        for trial in range(trials):
            torch.manual_seed(trial)
            k, v = torch.randn(1, 1, length, WIDTH), torch.randn(1, 1, length, WIDTH)
            place = int(torch.randint(0, length - 1024, ()))
            q = 4 * k[:, :, place : place + 1]
            places = torch.arange(length)[None]
            past = Growing(k[:, :, :-1], v[:, :, :-1], places[:, :-1])
            new = Growing(k[:, :, -1:], v[:, :, -1:], places[:, -1:])
            call = Call(ScaledDot(), causal(), None, places[:, -1:], None, 0.0)
            out = reach.attend(q, new, past, call)[0][0, 0, 0]
            found += int((v[0, 0] @ out).argmax()) == place
        print(f"- {name}: {found} of {trials}", flush=True)


@torch.no_grad()
def generate(n_tokens: int) -> None:
    """A GPT writes on, greedily: what it keeps, how long a token takes, and the memory of the process."""
    from regard.models import GPTConfig, Widths

    print("| reach | tokens written | slots kept | CPU-ms a token | peak memory, MB |")
    print("|---|---|---|---|---|")
    for reach in ({"kind": "window", "left": 256}, {"kind": "linear"}):
        torch.manual_seed(0)
        sizes = {"d_model": 64, "d_ff": 128, "n_heads": 2, "n_layers": 2, "dropout": 0.0}
        config = GPTConfig.model_validate({**sizes, "position": "rotary", "reach": reach})
        model = config.build(Widths({"vocab": 64}, {"vocab": 64})).eval()
        state = model.start(torch.randint(4, 64, (1, 100)), torch.tensor([100]), 1000)
        last_B, began, before = torch.tensor([5]), time.process_time(), 0
        for written in range(1, n_tokens + 1):
            logits_BV, state = model.step(last_B, state)
            last_B = logits_BV.argmax(-1)
            if written in (n_tokens // 10, n_tokens // 2, n_tokens):
                took = (time.process_time() - began) / (written - before)
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
                slots = state.keep_BK.shape[1]
                print(
                    f"| {reach['kind']} | {written:,} | {slots} | {1000 * took:.2f} | {peak:,.0f} |",
                    flush=True,
                )
                began, before = time.process_time(), written


def beside(python: str, length: int, repeats: int) -> None:
    """The package local-attention, which x-transformers uses for its windows, in turns with ours."""
    theirs = subprocess.Popen(
        [
            python,
            str(Path(__file__).parent / "workers/local_attention_peer.py"),
            str(length),
            str(HEADS),
            str(WIDTH),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert theirs.stdin is not None
    assert theirs.stdout is not None
    ours, parts, taken = within(REACHES["window 256"]), made(length), ([], [])
    with torch.no_grad():
        for turn in range(repeats + 1):
            theirs.stdin.write("go\n")
            theirs.stdin.flush()
            took = float(theirs.stdout.readline()), seconds(ours, parts)
            if turn:
                for each, one in zip(taken, took, strict=True):
                    each.append(one)
    theirs.stdin.close()
    theirs.wait()
    a, b = median(taken[0]), median(taken[1])
    print(
        f"windows of 256 at {length:,} tokens: local-attention {1000 * a:.1f} ms, "
        f"ours {1000 * b:.1f} ms, {a / b:.2f}×"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lengths", type=int, nargs="+")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--find", action="store_true")
    parser.add_argument("--generate", type=int, metavar="TOKENS")
    parser.add_argument("--peer", metavar="PYTHON")
    parser.add_argument("--step", nargs=2, metavar=("NAME", "LENGTH"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.step:
        training_step(options.step[0], int(options.step[1]))
    elif options.memory:
        memory(options.lengths or [1024, 4096, 16_384, 65_536], ["full", "window", "linear"])
    elif options.find:
        find(16_384, 20)
    elif options.generate:
        generate(options.generate)
    elif options.peer:
        beside(options.peer, 8192, options.repeats)
    else:
        times(options.lengths or [512, 1024, 2048, 4096, 8192, 16_384], options.repeats)


if __name__ == "__main__":
    main()
