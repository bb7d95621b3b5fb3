"""Models as exportable graphs: one that reads a source, one that takes a decoding step.

Every tensor of a decoder's state has a name; the reading graph returns all of them, the step takes all and
returns those that change. A user of the graphs needs to know nothing else about the model.
"""

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from regard.attention import Growing, Static
from regard.layers.copying import Copyable
from regard.layers.inputs import tokens
from regard.layers.recurrent import Recurrent
from regard.models import RNNSeq2Seq, Transformer, rnn_seq2seq, transformer

NamedState = dict[str, Tensor]
COPY_TOKENS = "copy_tokens"
"""The only tensor with one entry per source token and no width."""
CHANGING = ("past", "cell", "fed")
"""Prefixes of the tensors that a step changes."""


class ReadGraph(nn.Module):
    """tokens_BK, lengths_B → the tensors of the state before the first token."""

    def __init__(self, model: Transformer | RNNSeq2Seq) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens_BK: Tensor, lengths_B: Tensor) -> tuple[Tensor, ...]:
        return tuple(name_state(self.model, self.model.start(tokens(tokens_BK, lengths_B))).values())


class StepGraph(nn.Module):
    """last_B, lengths_B and the state's tensors → logits_BV and the tensors that changed."""

    def __init__(self, model: Transformer | RNNSeq2Seq, names: Sequence[str]) -> None:
        super().__init__()
        self.model, self.names = model, tuple(names)

    def forward(self, last_B: Tensor, lengths_B: Tensor, tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        model: Any = self.model
        by_name = dict(zip(self.names, tensors, strict=True))
        logits_BV, state = model.step(last_B, _rebuild_state(model, by_name, lengths_B))
        after = name_state(model, state)
        return logits_BV, *(after[name] for name in self.names if name.startswith(CHANGING))


def name_state(model: Transformer | RNNSeq2Seq, state: Any) -> NamedState:
    """Decoder state as named tensors; before the first step, a Transformer's past has length 0."""
    source = state.source
    copyable = {} if source is None else {"copy_k": source.k_BGKE, COPY_TOKENS: source.tokens_BK}
    if isinstance(model, Transformer):
        past = state.past or tuple(_empty_like(memory) for memory in state.memory)
        return copyable | {
            f"{kind}_{part}_{layer}": tensor
            for kind, caches in (("memory", state.memory), ("past", past))
            for layer, cache in enumerate(caches)
            for part, tensor in (("k", cache.k_BGKE), ("v", cache.v_BGKW))
        }
    tensors: NamedState = copyable | {"summary": state.memory.summary_BD, "fed": state.fed_BD}
    if state.context_BD is not None:
        tensors["fed_context"] = state.context_BD
    if state.memory.states is not None:
        tensors |= {"memory_k": state.memory.states.k_BGKE, "memory_v": state.memory.states.v_BGKW}
    for layer, parts in enumerate(state.layers):
        tensors |= {f"cell_{layer}_{number}": part for number, part in enumerate(parts)}
    return tensors


def _rebuild_state(model: Transformer | RNNSeq2Seq, tensors: NamedState, lengths_B: Tensor) -> Any:
    """Invert `name_state`."""
    source = Copyable(tensors["copy_k"], tensors[COPY_TOKENS], lengths_B) if "copy_k" in tensors else None
    if isinstance(model, Transformer):
        n_layers = len(model.decoder.layers)
        n_past = tensors["past_k_0"].shape[2]
        positions_1K = torch.arange(n_past)[None]
        memory = (Static(tensors[f"memory_k_{n}"], tensors[f"memory_v_{n}"]) for n in range(n_layers))
        past = (
            Growing(tensors[f"past_k_{n}"], tensors[f"past_v_{n}"], positions_1K) for n in range(n_layers)
        )
        return transformer.TransformerState(tuple(memory), lengths_B, tuple(past), source=source)
    states = Static(tensors["memory_k"], tensors["memory_v"]) if "memory_k" in tensors else None
    per_layer = model.cells.n_states // model.cells.n_layers
    layers = tuple(
        tuple(tensors[f"cell_{layer}_{number}"] for number in range(per_layer))
        for layer in range(model.cells.n_layers)
    )
    return rnn_seq2seq.RNNState(
        rnn_seq2seq.Memory(states, lengths_B, tensors["summary"]),
        layers,
        tensors["fed"],
        tensors.get("fed_context"),
        source=source,
    )


def _empty_like(memory: Static) -> Growing:
    return Growing(memory.k_BGKE[:, :, :0], memory.v_BGKW[:, :, :0])


def exportable(model: nn.Module) -> Any:
    """Copy to the CPU with ONNX's own recurrent layers; torch's would be unrolled to one length."""
    copied = copy.deepcopy(model).cpu().float().eval()
    for parent in list(copied.modules()):
        for name, child in parent.named_children():
            if isinstance(child, Recurrent):
                setattr(parent, name, _NativeRecurrent(child))
    return copied


OPERATORS = {nn.RNN: ("RNN", (0,)), nn.GRU: ("GRU", (1, 0, 2)), nn.LSTM: ("LSTM", (0, 3, 1, 2))}
"""ONNX's name, and torch's gate numbers in ONNX's order."""


class _NativeRecurrent(nn.Module):
    """`Recurrent` with ONNX's operators, which take lengths and order the gates differently."""

    def __init__(self, recurrent: Recurrent) -> None:
        super().__init__()
        network: Any = recurrent.network
        self.operator, gates = OPERATORS[type(network)]
        self.n_directions = recurrent.n_directions
        self.d_each, self.n_layers = network.hidden_size, network.num_layers
        for layer in range(self.n_layers):
            directions = [f"l{layer}{suffix}" for suffix in ("", "_reverse")[: self.n_directions]]

            def sorted_gates(name: str, directions: Sequence[str] = directions) -> Tensor:
                each = [
                    getattr(network, f"{name}_{direction}").detach().chunk(len(gates))
                    for direction in directions
                ]
                return torch.stack([torch.cat([parts[gate] for gate in gates]) for parts in each])

            self.register_buffer(f"enter_{layer}", sorted_gates("weight_ih"))
            self.register_buffer(f"recur_{layer}", sorted_gates("weight_hh"))
            biases = [sorted_gates(name) for name in ("bias_ih", "bias_hh")]
            self.register_buffer(f"bias_{layer}", torch.cat(biases, dim=1))

    def forward(self, x_BTD: Tensor, lengths_B: Tensor) -> tuple[Tensor, Tensor]:
        x_TBD, lengths = x_BTD.transpose(0, 1), lengths_B.to(torch.int32)
        n_batch, length = x_BTD.shape[:2]
        attributes: dict[str, Any] = {
            "hidden_size": self.d_each,
            "direction": "bidirectional" if self.n_directions == 2 else "forward",
        }
        if self.operator == "GRU":
            attributes["linear_before_reset"] = 1
        final_shape = (self.n_directions, n_batch, self.d_each)
        n_finals = 2 if self.operator == "LSTM" else 1
        for layer in range(self.n_layers):
            weights = (getattr(self, f"{name}_{layer}") for name in ("enter", "recur", "bias"))
            states, final, *_ = torch.onnx.ops.symbolic_multi_out(
                self.operator,
                (x_TBD, *weights, lengths),
                attributes,
                dtypes=(torch.float32,) * (1 + n_finals),
                shapes=((length, self.n_directions, n_batch, self.d_each), *([final_shape] * n_finals)),
                version=14,
            )
            x_TBD = states.transpose(1, 2).flatten(2)
        return x_TBD.transpose(0, 1), final.transpose(0, 1).flatten(1)
