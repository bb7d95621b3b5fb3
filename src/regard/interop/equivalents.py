"""Hugging Face architectures equivalent to our Transformer, and how their tensors correspond to ours.

Post-norm with sinusoids is Marian, pre-norm with sinusoids is Pegasus, pre-norm with learned positions is
Blenderbot. (BART and mBART, which are better known, normalise the embeddings; ours does not.) They put all
sines of the sinusoids before the cosines where the paper and we alternate them, so the channels of the
residual stream are permuted, which no layer notices. Import uses the same table in reverse.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.errors import RunError
from regard.models import TransformerConfig, Widths
from regard.models.meta import build_meta

ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_tanh": "gelu_pytorch_tanh"}
NORM_EPS = 1e-5
"""Their epsilon, which is not configurable."""


@dataclass(frozen=True)
class Equivalent:
    model_type: str
    architecture: str
    norm: str
    position: str
    separate: bool
    """True if it supports two vocabularies, or separate tables for source, target and output."""


MARIAN = Equivalent("marian", "MarianMTModel", "post", "sinusoidal", separate=True)
PEGASUS = Equivalent("pegasus", "PegasusForConditionalGeneration", "pre", "sinusoidal", separate=False)
BLENDERBOT = Equivalent("blenderbot", "BlenderbotForConditionalGeneration", "pre", "learned", separate=False)
EQUIVALENTS = (MARIAN, PEGASUS, BLENDERBOT)


def find_equivalent(config: TransformerConfig, widths: Widths) -> Equivalent:
    """Find the architecture that computes the same function; RunError if there is none."""
    equivalent = next(
        (each for each in EQUIVALENTS if (each.norm, each.position) == (config.norm, config.position)), None
    )
    if equivalent is None:
        raise _no_counterpart(
            f"norm = {config.norm!r} with position = {config.position!r}",
            "sinusoidal positions, or learned ones with norm = 'pre'",
        )
    if config.copies:
        raise _no_counterpart("copies = true", "copies = false")
    if config.activation not in ACTIVATIONS:
        raise _no_counterpart(f"activation = {config.activation!r}", "relu or gelu")
    if config.norm_eps != NORM_EPS:
        raise _no_counterpart(f"norm_eps = {config.norm_eps:g}", f"{NORM_EPS:g}")
    if not equivalent.separate and not (widths.shared and config.tie_embeddings):
        raise _no_counterpart(
            "norm = 'pre' with more than one embedding table",
            "task.joint = true with tie_embeddings = true, or norm = 'post' with sinusoidal positions",
        )
    return equivalent


def _no_counterpart(setting: str, instead: str) -> RunError:
    return RunError(
        f"hf: {setting} has no counterpart in Hugging Face's models; train with {instead}, or export to onnx"
    )


def to_theirs(our_tensors: dict[str, Tensor], config: TransformerConfig, widths: Widths) -> dict[str, Tensor]:
    """Rename our tensors and permute their channels; they must be expanded (expanded_weights.py)."""
    order = _channel_order(config)
    return {
        theirs: _reordered(our_tensors[ours], axis, order)
        for ours, theirs, axis in correspondence(config, widths)
    }


def to_ours(their_tensors: dict[str, Tensor], config: TransformerConfig, widths: Widths) -> dict[str, Tensor]:
    """Invert `to_theirs`, skipping tensors that are absent."""
    inverse = _channel_order(config).argsort()
    return {
        ours: _reordered(their_tensors[theirs], axis, inverse)
        for ours, theirs, axis in correspondence(config, widths)
        if theirs in their_tensors
    }


def correspondence(config: TransformerConfig, widths: Widths) -> Iterator[tuple[str, str, int | None]]:
    """Our name, their name, and the axis of the residual stream's channels for each tensor."""
    shared = widths.shared and config.tie_embeddings
    for name in build_meta(config, widths).state_dict():
        *path, last, kind = name.split(".")
        if path and path[0] in ("encoder", "decoder"):
            yield name, _layer_name(path, last, kind), _residual_axis(last, kind)
        elif last == "position":
            side = path[0].removeprefix("embed_")
            for stack in ("encoder", "decoder") if shared else (_STACKS[side],):
                yield name, f"model.{stack}.embed_positions.weight", 1
        elif shared:
            yield name, "model.shared.weight", 1
        else:
            yield name, _TABLES[last], 1


_STACKS = {"source": "encoder", "target": "decoder"}
_TABLES = {
    "embed_source": "model.encoder.embed_tokens.weight",
    "embed_target": "model.decoder.embed_tokens.weight",
    "output": "lm_head.weight",
}
_PARTS = {
    "self": "self_attn",
    "self_norm": "self_attn_layer_norm",
    "cross": "encoder_attn",
    "cross_norm": "encoder_attn_layer_norm",
    "ff_norm": "final_layer_norm",
    "norm": "layer_norm",
    "inner": "fc1",
    "outer": "fc2",
    "q": "q_proj",
    "k": "k_proj",
    "v": "v_proj",
    "o": "out_proj",
}


def _layer_name(path: list[str], last: str, kind: str) -> str:
    steps = [_PARTS.get(step, step) for step in (*path, last) if step != "ff"]
    return ".".join(("model", *steps, kind))


def _residual_axis(last: str, kind: str) -> int | None:
    if last in ("q", "k", "v", "inner"):
        return 1 if kind == "weight" else None
    return 0


def _channel_order(config: TransformerConfig) -> Tensor:
    """Our channel number for each of their channels."""
    channels = torch.arange(config.d_model)
    return torch.cat([channels[::2], channels[1::2]]) if config.position == "sinusoidal" else channels


def _reordered(tensor: Tensor, axis: int | None, order: Tensor) -> Tensor:
    return tensor.clone() if axis is None else tensor.index_select(axis, order).contiguous()
