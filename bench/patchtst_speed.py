"""PatchTST of Hugging Face and ours in turns: `python bench/patchtst_speed.py [PAIRS STEPS]`.

The same shape (look-back 336, 7 channels, patch 16, stride 8, d 16, 4 heads, feed-forward 128, 3 layers,
dropout 0.3), batch, loss and optimiser; made numbers, one thread. An epoch is that of ETTh1: 65 steps of 128
windows. Processor time is taken, so that other programs on the machine count less.
"""

import statistics
import sys
import time
from collections.abc import Callable

import torch
from transformers import PatchTSTConfig as TheirConfig
from transformers import PatchTSTForPrediction

from regard.models import ForecasterConfig, Widths
from regard.models.encoders.series import PatchTSTConfig

WINDOWS, STEPS, CHANNELS, HORIZON, BATCHES = 128, 336, 7, 96, 65


def theirs() -> torch.nn.Module:
    return PatchTSTForPrediction(
        TheirConfig(
            num_input_channels=CHANNELS, num_targets=CHANNELS, context_length=STEPS,
            prediction_length=HORIZON, patch_length=16, patch_stride=8, d_model=16, num_attention_heads=4,
            ffn_dim=128, num_hidden_layers=3,
            dropout=0.3, ff_dropout=0.3, head_dropout=0.3, attention_dropout=0.0, path_dropout=0.0,
            use_cls_token=False, pooling_type=None, share_projection=True, scaling="std", loss="mse",
        )
    )  # fmt: skip


def ours() -> torch.nn.Module:
    encoder = PatchTSTConfig(channels="independent", d_model=16, n_heads=4, d_ff=128, n_layers=3, dropout=0.3)
    width = {"channels": CHANNELS, "known": 0, "steps": STEPS, "each": False}
    width |= {
        "mean": [0.0] * CHANNELS,
        "deviation": [1.0] * CHANNELS,
        "known_mean": [],
        "known_deviation": [],
    }
    widths = Widths(width, {"horizon": HORIZON, "quantiles": 0})
    return ForecasterConfig(dropout=0.3, encoder=encoder).build(widths)


def main(n_pairs: int, n_steps: int) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(1)
    past_BTC, future_BYC = torch.randn(WINDOWS, STEPS, CHANNELS), torch.randn(WINDOWS, HORIZON, CHANNELS)
    target_BCY = future_BYC.transpose(1, 2)
    them, us = theirs(), ours()
    assert sum(p.numel() for p in them.parameters()) == sum(p.numel() for p in us.parameters())

    def their_loss() -> torch.Tensor:
        return them(past_values=past_BTC, future_values=future_BYC).loss

    def our_loss() -> torch.Tensor:
        return (us({"steps": past_BTC})[..., 0] - target_BCY).square().mean()

    def seconds(
        model: torch.nn.Module, loss: Callable[[], torch.Tensor], optimizer: torch.optim.Optimizer
    ) -> float:
        begin = time.process_time()
        for _ in range(n_steps):
            optimizer.zero_grad()
            loss().backward()
            optimizer.step()
        return (time.process_time() - begin) * BATCHES / n_steps

    sides = [
        (model.train(), loss, torch.optim.AdamW(model.parameters()))
        for model, loss in ((them, their_loss), (us, our_loss))
    ]
    for side in sides:
        seconds(*side)
    pairs = [[seconds(*side) for side in sides] for _ in range(n_pairs)]
    ratios = sorted(their / our for their, our in pairs)
    their, our = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(
        f"an epoch of {BATCHES} × {WINDOWS} windows, on one core: Hugging Face {their:.1f} s, "
        f"regard {our:.1f} s"
    )
    print(f"ratio {statistics.median(ratios):.2f} ({ratios[0]:.2f}–{ratios[-1]:.2f}, {n_pairs} pairs)")


if __name__ == "__main__":
    main(*(map(int, sys.argv[1:]) if sys.argv[1:] else (9, 3)))
