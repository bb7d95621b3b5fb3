"""Recurrent networks: an encoder over whole sequences, and a stack of cells that steps.

The encoder is torch's, run over packed sequences so that padding is never seen. The cells are ours, with
torch's gate layout, because a decoder that attends must step and its embedded inputs can be mapped to
gates for all steps at once, outside the loop.
"""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.layers.dropout import Dropout
from regard.linear import Linear

CellKind = Literal["rnn", "lstm", "gru"]
CellState = tuple[Tensor, ...]
"""(h_BD,) or, for an LSTM, (h_BD, c_BD)."""

N_GATES = {"rnn": 1, "gru": 3, "lstm": 4}
NETWORKS = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


class Recurrent(nn.Module):
    """Reads a sequence, forwards or both ways; both ways share `d_hidden` half and half."""

    def __init__(
        self, kind: CellKind, d_in: int, d_hidden: int, n_layers: int, *, bidirectional: bool, dropout: float
    ) -> None:
        super().__init__()
        self.n_directions = 2 if bidirectional else 1
        self.network = NETWORKS[kind](
            d_in,
            d_hidden // self.n_directions,
            n_layers,
            batch_first=True,
            bidirectional=bidirectional,
            dropout=dropout if n_layers > 1 else 0.0,
        )

    def forward(self, x_BTD: Tensor, lengths_B: Tensor) -> tuple[Tensor, Tensor]:
        """states_BTD (zeros at padding) and the last layer's final state_BD of each row.

        Rows must not be empty.
        """
        packed = pack_padded_sequence(x_BTD, lengths_B.cpu(), batch_first=True, enforce_sorted=False)
        states, final = self.network(packed)
        states_BTD, _ = pad_packed_sequence(states, batch_first=True, total_length=x_BTD.shape[1])
        h = final[0] if isinstance(final, tuple) else final
        return states_BTD, h[-self.n_directions :].transpose(0, 1).flatten(1)


class Cell(nn.Module):
    """One step of one layer, its input already mapped to gates."""

    def __init__(self, kind: CellKind, d_hidden: int) -> None:
        super().__init__()
        self.kind = kind
        self.recur = Linear(d_hidden, N_GATES[kind] * d_hidden)

    def forward(self, gates_BG: Tensor, state: CellState) -> CellState:
        h_BD = state[0]
        if self.kind == "rnn":
            return (torch.tanh(gates_BG + self.recur(h_BD)),)
        if self.kind == "gru":
            reset_x, update_x, new_x = gates_BG.chunk(3, dim=-1)
            reset_h, update_h, new_h = self.recur(h_BD).chunk(3, dim=-1)
            update = torch.sigmoid(update_x + update_h)
            new = torch.tanh(new_x + torch.sigmoid(reset_x + reset_h) * new_h)
            return (new + update * (h_BD - new),)
        enter, forget, new, leave = (gates_BG + self.recur(h_BD)).chunk(4, dim=-1)
        c_BD = torch.sigmoid(forget) * state[1] + torch.sigmoid(enter) * torch.tanh(new)
        return torch.sigmoid(leave) * torch.tanh(c_BD), c_BD


class Cells(nn.Module):
    """Stacked cells with a mapped input (`enter`) and perhaps a second one that is known step by step."""

    def __init__(
        self, kind: CellKind, d_in: int, d_extra: int, d_hidden: int, n_layers: int, dropout: float
    ) -> None:
        super().__init__()
        n_gates = N_GATES[kind] * d_hidden
        self.kind, self.d_hidden, self.n_layers = kind, d_hidden, n_layers
        self.enter = Linear(d_in, n_gates)
        self.extra = Linear(d_extra, n_gates, bias=False) if d_extra else None
        self.cells = nn.ModuleList(Cell(kind, d_hidden) for _ in range(n_layers))
        self.between = nn.ModuleList(Linear(d_hidden, n_gates) for _ in range(n_layers - 1))
        self.dropout = Dropout(dropout)

    @property
    def n_states(self) -> int:
        """Vectors of width d_hidden in a whole state."""
        return self.n_layers * (2 if self.kind == "lstm" else 1)

    def start(self, vectors_BD: Tensor) -> tuple[CellState, ...]:
        """A state from its vectors laid side by side."""
        parts = vectors_BD.chunk(self.n_states, dim=-1)
        per_layer = self.n_states // self.n_layers
        return tuple(tuple(parts[i * per_layer : (i + 1) * per_layer]) for i in range(self.n_layers))

    def forward(
        self, gates_BG: Tensor, extra_BD: Tensor | None, states: tuple[CellState, ...]
    ) -> tuple[CellState, ...]:
        """`gates_BG` is `enter` of this step's input, made by the caller for all steps at once."""
        if self.extra is not None:
            gates_BG = gates_BG + self.extra(extra_BD)
        new = [self.cells[0](gates_BG, states[0])]
        for cell, enter, state in zip(self.cells[1:], self.between, states[1:], strict=True):
            new.append(cell(enter(self.dropout(new[-1][0])), state))
        return tuple(new)
