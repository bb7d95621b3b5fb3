"""Little models that learn little tasks: the plumbing that several experiments share."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention import FULL, Mask, causal
from regard.layers.block import BlockConfig
from regard.layers.stack import Stack, embedding, positions_like
from regard.linear import Linear as Map

Batch = tuple[Tensor, Tensor]
"""Tokens (B, T), and the class of each row."""


def learn(
    model: nn.Module,
    draw: Callable[[torch.Generator], Batch],
    *,
    steps: int,
    lr: float = 2e-3,
    seed: int = 0,
    warmup: int = 20,
) -> list[float]:
    """Train on batches that are drawn anew; the loss of each step."""
    generator = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.0)
    losses = []
    model.train()
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = lr * min(1.0, (step + 1) / max(1, warmup))
        inputs_BT, label_B = draw(generator)
        loss = F.cross_entropy(model(inputs_BT), label_B)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        losses.append(float(loss.detach()))
    return losses


@torch.no_grad()
def accuracy(
    model: nn.Module, draw: Callable[[torch.Generator], Batch], *, seed: int, batches: int = 16
) -> float:
    """The share of right answers on batches that training did not draw."""
    generator = torch.Generator().manual_seed(10_000 + seed)
    model.eval()
    right = total = 0
    for _ in range(batches):
        inputs_BT, label_B = draw(generator)
        right += int((model(inputs_BT).argmax(-1) == label_B).sum())
        total += len(label_B)
    return right / total


class Reader(nn.Module):
    """A stack of Transformer layers that answers from its last state, or from the mean of all."""

    def __init__(
        self, config: BlockConfig, n_layers: int, n_tokens: int, n_classes: int, *, from_last: bool
    ) -> None:
        super().__init__()
        self.embed = embedding(config, n_tokens, scale=False)
        self.stack = Stack(config, n_layers, causal=from_last)
        self.answer = Map(config.d_model, n_classes)
        self.from_last = from_last

    def forward(self, tokens_BT: Tensor) -> Tensor:
        mask: Mask = causal() if self.from_last else FULL
        states_BTD, _ = self.stack(self.embed(tokens_BT, positions_like(tokens_BT)), mask=mask)
        answer: Tensor = self.answer(states_BTD[:, -1] if self.from_last else states_BTD.mean(1))
        return answer


class Recurrent(nn.Module):
    """A recurrent network of PyTorch that answers from its last state."""

    def __init__(self, cell: str, d_model: int, n_tokens: int, n_classes: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(n_tokens, d_model)
        kinds = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
        self.cells = kinds[cell](d_model, d_model, batch_first=True)
        self.answer = Map(d_model, n_classes)

    def forward(self, tokens_BT: Tensor) -> Tensor:
        answer: Tensor = self.answer(self.cells(self.embed(tokens_BT))[0][:, -1])
        return answer


class Convolved(nn.Module):
    """Gated causal convolutions, dilated from layer to layer, with residuals; answers from the last state."""

    def __init__(
        self, d_model: int, n_tokens: int, n_classes: int, dilations: tuple[int, ...], kernel: int = 3
    ) -> None:
        super().__init__()
        self.embed = nn.Embedding(n_tokens, d_model)
        self.layers = nn.ModuleList(nn.Conv1d(d_model, 2 * d_model, kernel, dilation=d) for d in dilations)
        self.answer = Map(d_model, n_classes)

    def forward(self, tokens_BT: Tensor) -> Tensor:
        x_BDT = self.embed(tokens_BT).transpose(1, 2)
        for layer in self.layers:
            assert isinstance(layer, nn.Conv1d)
            before = (layer.kernel_size[0] - 1) * layer.dilation[0]
            x_BDT = x_BDT + F.glu(layer(F.pad(x_BDT, (before, 0))), dim=1)
        answer: Tensor = self.answer(x_BDT[..., -1])
        return answer


def layer(d_model: int = 32, position: str = "sinusoidal", **changes: object) -> BlockConfig:
    """Settings of a small layer."""
    settings = {"d_model": d_model, "n_heads": 4, "d_ff": 2 * d_model, "dropout": 0.0, "norm": "pre"}
    return BlockConfig.model_validate({**settings, "position": position, **changes})


def n_parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())
