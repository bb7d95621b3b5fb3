"""What the workers share: their arguments, the clock, and the one JSON line they answer with."""

import argparse
import json
import time
from importlib.metadata import version
from pathlib import Path
from statistics import mean

from torch import nn


def arguments(description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--corpus", type=Path, required=True, help="folder written by bench/corpus.py")
    parser.add_argument("--warmup", type=int, default=5, help="steps before the clock starts")
    parser.add_argument("--seconds", type=float, default=40.0, help="how long the clock runs")
    return parser


class Stopwatch:
    """Counts the target tokens (end marks included, padding not) of whole steps after a warm-up."""

    def __init__(self, warmup: int, seconds: float) -> None:
        self.warmup, self.seconds = warmup, seconds
        self.losses: list[float] = []
        self.tokens = 0
        self.started = self.stopped = time.perf_counter()

    def step(self, target_tokens: int, loss: float) -> bool:
        """Notes one finished step; False once the time is up."""
        self.losses.append(loss)
        self.stopped = time.perf_counter()
        measured = len(self.losses) - self.warmup
        if measured == 0:
            self.started = self.stopped
        elif measured > 0:
            self.tokens += target_tokens
        return measured <= 0 or self.stopped - self.started < self.seconds

    def report(self, tool: str, model: nn.Module, *packages: str) -> None:
        """Prints the answer as the last line of standard output."""
        steps = len(self.losses) - self.warmup
        answer = {
            "tool": tool,
            "target_tokens_per_s": self.tokens / (self.stopped - self.started),
            "seconds": self.stopped - self.started,
            "steps": steps,
            "target_tokens_per_step": self.tokens / steps,
            "parameters": sum(weight.numel() for weight in model.parameters() if weight.requires_grad),
            "loss_first": mean(self.losses[:5]),
            "loss_last": mean(self.losses[-5:]),
            "versions": {name: version(name) for name in ("torch", *packages)},
        }
        print(json.dumps(answer), flush=True)
