"""The recurrent translator against a twin that reads one row at a time, unpadded, by the papers' formulas."""

import pytest
import torch
from torch import Tensor, nn

from regard.layers.recurrent import CellKind, CellStack, Recurrent
from regard.models import RNNConfig, RNNSeq2Seq
from tiny import DIMS, Inputs, inputs, rnn, stirred

State = tuple[Tensor, Tensor]
"""h and c; only an LSTM uses c."""


def cell_step(kind: str, x_gates: Tensor, h_gates: Tensor, state: State) -> State:
    """One step, from W x + b and U h + b, by the formulas."""
    h, c = state
    if kind == "rnn":  # Elman 1990
        return torch.tanh(x_gates + h_gates), c
    if kind == "gru":  # Cho et al. 2014, with the reset gate after the matrix (Chung et al. 2014)
        (x_r, x_z, x_n), (h_r, h_z, h_n) = x_gates.chunk(3), h_gates.chunk(3)
        r, z = torch.sigmoid(x_r + h_r), torch.sigmoid(x_z + h_z)
        n = torch.tanh(x_n + r * h_n)
        return (1 - z) * n + z * h, c
    i, f, g, o = (x_gates + h_gates).chunk(4)  # Hochreiter & Schmidhuber 1997, Gers et al. 2000
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def read_encoder(encoder: Recurrent, kind: str, row_KD: Tensor) -> tuple[Tensor, Tensor]:
    """(states_KD, the last layer's final state), both directions side by side."""
    network = encoder.network
    inputs_K, final = list(row_KD), []
    for layer in range(network.num_layers):
        final, directions = [], []
        for suffix in ("", "_reverse")[: encoder.n_directions]:
            W, U, b, d = (
                getattr(network, f"{name}_l{layer}{suffix}")
                for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            )
            zeros = torch.zeros(network.hidden_size)
            state, states = (zeros, zeros), []
            for x in inputs_K if not suffix else inputs_K[::-1]:
                state = cell_step(kind, W @ x + b, U @ state[0] + d, state)
                states.append(state[0])
            final.append(state[0])
            directions.append(states if not suffix else states[::-1])
        inputs_K = [torch.cat(both) for both in zip(*directions, strict=True)]
    return torch.stack(inputs_K), torch.cat(final)


def look(model: RNNSeq2Seq, config: RNNConfig, query: Tensor, states_KD: Tensor, summary: Tensor) -> Tensor:
    if config.attention == "none":
        return summary
    attention = model.attention
    assert attention is not None
    scores = []
    for state in states_KD:
        match config.attention:
            case "dot":
                score = query @ state
            case "scaled_dot":
                score = query @ state / len(query) ** 0.5
            case "general":
                score = query @ attention.score.weight[0] @ state
            case "additive":
                W_q, W_k = attention.q, attention.k
                mixed = W_q.weight @ query + W_q.bias + W_k.weight @ state + W_k.bias
                score = attention.score.v_HE[0] @ torch.tanh(mixed)
        scores.append(score)
    weights = torch.stack(scores).exp()
    weights = weights / weights.sum()
    return sum(weight * state for weight, state in zip(weights, states_KD, strict=True))


def advance(
    model: RNNSeq2Seq, config: RNNConfig, x: Tensor, extra: Tensor | None, layers: list[State]
) -> list[State]:
    cells, new = model.cells, []
    for number, state in enumerate(layers):
        enter = cells.enter if number == 0 else cells.between[number - 1]
        x_gates = enter.weight @ x + enter.bias
        if number == 0 and extra is not None:
            x_gates = x_gates + cells.extra.weight @ extra
        recur = cells.cells[number].recur
        new.append(cell_step(config.cell, x_gates, recur.weight @ state[0] + recur.bias, state))
        x = new[-1][0]
    return new


def twin_logits(model: RNNSeq2Seq, config: RNNConfig, source_K: Tensor, target_T: Tensor) -> Tensor:
    embed_source = (model.embed_source or model.embed_target).weight
    states_KD, summary = read_encoder(model.encoder, config.cell, embed_source[source_K])
    bridged = torch.tanh(model.bridge.weight @ summary + model.bridge.bias).split(config.d_hidden)
    per_layer = 2 if config.cell == "lstm" else 1
    layers = [(bridged[i * per_layer], bridged[(i + 1) * per_layer - 1]) for i in range(config.n_layers)]
    fed, context, logits = torch.zeros(config.d_hidden), torch.zeros(config.d_hidden), []
    for token in target_T:
        x = model.embed_target.weight[token]
        if config.attention == "none" or config.order == "bahdanau":
            context = look(model, config, layers[-1][0], states_KD, summary)
            layers = advance(model, config, x, context, layers)
        else:
            enters = {True: fed, "context": context, False: None}[config.input_feeding]
            layers = advance(model, config, x, enters, layers)
            context = look(model, config, layers[-1][0], states_KD, summary)
        h = layers[-1][0]
        if config.combine == "add":
            fed = h + context
        else:
            fed = torch.tanh(model.combine.weight @ torch.cat([h, context]) + model.combine.bias)
        output = model.embed_target.weight if model.output is None else model.output.weight
        logits.append(output @ fed + model.output_bias)
    return torch.stack(logits)


def check(config: RNNConfig, given: Inputs) -> None:
    model = stirred(config.build(DIMS))
    got_BTV = model(*given.pairs).view(*given.target_BT.shape, -1)
    for row, length in enumerate(given.lengths_B.tolist()):
        expected_TV = twin_logits(model, config, given.source_BK[row, :length], given.target_BT[row])
        torch.testing.assert_close(got_BTV[row], expected_TV, rtol=1e-4, atol=1e-5)


WAYS = [("none", "bahdanau", True)] + [
    (attention, order, feeding)
    for attention in ("dot", "scaled_dot", "general", "additive")
    for order, feeding in (("bahdanau", True), ("luong", True), ("luong", False), ("luong", "context"))
]


@pytest.mark.parametrize("n_layers", [1, 2])
@pytest.mark.parametrize("combine", ["concat", "add"])
@pytest.mark.parametrize(("attention", "order", "input_feeding"), WAYS)
@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
@torch.no_grad()
def test_equals_the_twin(
    cell: str, attention: str, order: str, input_feeding: bool | str, combine: str, n_layers: int
) -> None:
    config = rnn(
        cell=cell,
        attention=attention,
        order=order,
        input_feeding=input_feeding,
        combine=combine,
        n_layers=n_layers,
    )
    check(config, inputs(lengths=(3, 1), target_length=3))


@pytest.mark.parametrize(
    "changes", [{"bidirectional": False, "d_hidden": 5}, {"d_embed": 6, "tie_embeddings": True}]
)
@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
@torch.no_grad()
def test_one_direction_and_tied_embeddings(cell: str, changes: dict[str, object]) -> None:
    config = rnn(cell=cell, n_layers=2, **changes)
    assert (config.build(DIMS).output is None) == ("tie_embeddings" in changes)
    check(config, inputs(lengths=(5, 2, 3), target_length=4))


@pytest.mark.parametrize(
    ("kind", "theirs"), [("rnn", nn.RNNCell), ("gru", nn.GRUCell), ("lstm", nn.LSTMCell)]
)
def test_cells_equal_torchs(kind: CellKind, theirs: type[nn.Module]) -> None:
    d_in, d_hidden, rows = 5, 7, 3
    ours, twin = CellStack(kind, d_in, 0, d_hidden, 1, 0.0), theirs(d_in, d_hidden)
    with torch.no_grad():
        for mine, name in ((ours.enter, "ih"), (ours.cells[0].recur, "hh")):
            mine.weight.copy_(getattr(twin, f"weight_{name}"))
            mine.bias.copy_(getattr(twin, f"bias_{name}"))
    state, expected = tuple(torch.randn(rows, d_hidden) for _ in range(ours.n_states)), None
    expected = state if kind == "lstm" else state[0]
    states = (state,)
    for _ in range(3):
        x = torch.randn(rows, d_in)
        states = ours(ours.enter(x), None, states)
        expected = twin(x, expected)
        torch.testing.assert_close(states[0], expected if kind == "lstm" else (expected,))


@pytest.mark.parametrize("n_layers", [1, 2])
@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
def test_the_encoder_reads_each_row_as_if_alone(bidirectional: bool, kind: CellKind, n_layers: int) -> None:
    lengths = (3, 7, 1, 5)
    encoder = Recurrent(kind, 5, 6, n_layers, bidirectional=bidirectional, dropout=0.0)
    x_BTD = torch.randn(len(lengths), max(lengths), 5)
    states_BTD, final_BD = encoder(x_BTD, torch.tensor(lengths))
    assert states_BTD.shape == (4, 7, 6)
    for row, length in enumerate(lengths):
        alone_TD, last_D = encoder(x_BTD[row : row + 1, :length], torch.tensor([length]))
        torch.testing.assert_close(states_BTD[row, :length], alone_TD[0])
        torch.testing.assert_close(final_BD[row], last_D[0])
        assert not states_BTD[row, length:].any()
        torch.testing.assert_close(final_BD[row, :3], states_BTD[row, length - 1, :3])
        if bidirectional:
            torch.testing.assert_close(final_BD[row, 3:], states_BTD[row, 0, 3:])
