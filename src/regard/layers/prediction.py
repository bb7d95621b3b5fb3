"""Prediction networks of a transducer: a state of the labels written so far, which no frame is heard for.

`Stateless` sees the last labels alone (Ghodsi et al. 2020), `Recalling` all of them through an LSTM. Both
read all labels at once in training, and one after another in a search; the blank stands for the beginning.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.layers.dropout import Dropout
from regard.layers.recurrent import CellStack, CellState
from regard.layers.transducer import BLANK


class Stateless(nn.Module):
    """The embeddings of the last `context` labels, each weighted channel by channel, added up."""

    def __init__(self, n_labels: int, context: int, d_model: int, dropout: float) -> None:
        super().__init__()
        self.context = context
        self.embed = nn.Parameter(torch.empty(n_labels, d_model))
        self.weight_CD = nn.Parameter(torch.empty(context, d_model))
        self.dropout = Dropout(dropout)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.embed, std=1.0)
        nn.init.normal_(self.weight_CD, std=self.context**-0.5)

    def forward(self, labels_BU: Tensor) -> Tensor:
        """predicted_BUD, one state more than there are labels."""
        before_BU = F.pad(labels_BU, (self.context, 0), value=BLANK)
        embedded_BUD = self.dropout(F.embedding(before_BU, self.embed))
        n = labels_BU.shape[1] + 1
        shifted = (embedded_BUD[:, at : at + n] * weight_D for at, weight_D in enumerate(self.weight_CD))
        return F.relu(sum(shifted, start=embedded_BUD.new_zeros(())))

    def start(self, n_rows: int) -> tuple[Tensor, tuple[Tensor, ...]]:
        """predicted_ND before the first label, and the state of each row."""
        last_NC = torch.full((n_rows, self.context), BLANK, device=self.embed.device)
        return self._predicted(last_NC), (last_NC,)

    def step(self, labels_N: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        last_NC = torch.cat([state[0][:, 1:], labels_N[:, None]], dim=1)
        return self._predicted(last_NC), (last_NC,)

    def _predicted(self, last_NC: Tensor) -> Tensor:
        embedded_NCD = F.embedding(last_NC, self.embed)
        weighted = (
            one_ND * weight_D for one_ND, weight_D in zip(embedded_NCD.unbind(1), self.weight_CD, strict=True)
        )
        return F.relu(sum(weighted, start=embedded_NCD.new_zeros(())))


class Recalling(nn.Module):
    """An LSTM over the embeddings of all labels."""

    def __init__(self, n_labels: int, d_model: int, dropout: float) -> None:
        super().__init__()
        self.d_model = d_model
        self.embed = nn.Parameter(torch.empty(n_labels, d_model))
        self.cells = CellStack("lstm", d_model, 0, d_model, 1, 0.0)
        self.dropout = Dropout(dropout)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.embed, std=1.0)

    def forward(self, labels_BU: Tensor) -> Tensor:
        """predicted_BUD, one state more than there are labels."""
        before_BU = F.pad(labels_BU, (1, 0), value=BLANK)
        gates_BUG = self.cells.enter(self.dropout(F.embedding(before_BU, self.embed)))
        states, predicted = self._silent(len(labels_BU)), []
        for gates_BG in gates_BUG.unbind(1):
            states = self.cells(gates_BG, None, states)
            predicted.append(states[-1][0])
        return torch.stack(predicted, dim=1)

    def start(self, n_rows: int) -> tuple[Tensor, tuple[Tensor, ...]]:
        """predicted_ND before the first label, and the state of each row."""
        begin_N = torch.full((n_rows,), BLANK, device=self.embed.device)
        return self.step(begin_N, self._silent(n_rows)[0])

    def step(self, labels_N: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        gates_NG = self.cells.enter(F.embedding(labels_N, self.embed))
        (after,) = self.cells(gates_NG, None, (state,))
        return after[0], after

    def _silent(self, n_rows: int) -> tuple[CellState, ...]:
        return self.cells.start(self.embed.new_zeros(n_rows, self.cells.n_states * self.d_model))
