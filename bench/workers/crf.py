"""One CRF by the clock: the loss of a batch, its gradients, the best tags; the same numbers for each tool."""

import argparse
import json
import time
from collections.abc import Callable
from importlib.metadata import version
from statistics import median

import torch
from torch import Tensor

Step = Callable[[], tuple[float, list[list[int]]]]


def regard_step(emit_BTC: Tensor, tags_BT: Tensor, weights: list[Tensor]) -> Step:
    from regard.layers.crf import CRF

    crf = CRF(emit_BTC.shape[2])
    keep_BT = torch.ones_like(tags_BT, dtype=torch.bool)
    _fill([crf.begin_C, crf.end_C, crf.step_CC], weights)

    def step() -> tuple[float, list[list[int]]]:
        loss = crf(emit_BTC, keep_BT, tags_BT).sum()
        loss.backward()
        return float(loss), crf.best(emit_BTC, keep_BT).tolist()

    return step


def peer_step(emit_BTC: Tensor, tags_BT: Tensor, weights: list[Tensor]) -> Step:
    from torchcrf import CRF

    crf = CRF(emit_BTC.shape[2], batch_first=True)
    keep_BT = torch.ones_like(tags_BT, dtype=torch.bool)
    _fill([crf.start_transitions, crf.end_transitions, crf.transitions], weights)

    def step() -> tuple[float, list[list[int]]]:
        loss = -crf(emit_BTC, tags_BT, mask=keep_BT, reduction="sum")
        loss.backward()
        with torch.no_grad():
            return float(loss), crf.decode(emit_BTC, mask=keep_BT)

    return step


def _fill(own: list[Tensor], given: list[Tensor]) -> None:
    with torch.no_grad():
        for weight, value in zip(own, given, strict=True):
            weight.copy_(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool", choices=["regard", "pytorch-crf"])
    parser.add_argument("--sizes", type=int, nargs=3, default=[64, 50, 20], help="batch, length, tags")
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    n_batch, n_words, n_tags = options.sizes
    generator = torch.Generator().manual_seed(1)
    emit_BTC = torch.randn(n_batch, n_words, n_tags, generator=generator).requires_grad_()
    tags_BT = torch.randint(n_tags, (n_batch, n_words), generator=generator)
    shapes = [(n_tags,), (n_tags,), (n_tags, n_tags)]
    weights = [torch.randn(shape, generator=generator) for shape in shapes]
    step = (regard_step if options.tool == "regard" else peer_step)(emit_BTC, tags_BT, weights)
    for _ in range(3):
        loss, tags = step()
    seconds: list[float] = []
    while sum(seconds) < options.seconds:
        began = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - began)
    packages = ["torch"] if options.tool == "regard" else ["torch", "pytorch-crf"]
    answer = {
        "milliseconds": 1000 * median(seconds),
        "loss": loss,
        "tags": tags,
        "versions": {name: version(name) for name in packages},
    }
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
