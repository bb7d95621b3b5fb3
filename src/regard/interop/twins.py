"""Which model of Hugging Face computes the same function as ours, and which of its tensors is which of ours.

Post-norm with sinusoids is Marian, pre-norm with sinusoids is Pegasus, pre-norm with learned positions is
Blenderbot. (BART and mBART, which are better known, normalise the embeddings; ours does not.) They lay the
sinusoids' sines before their cosines where the paper and we alternate them: the channels of the residual
stream are numbered anew, which no layer notices. The same table is read backwards by import.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.errors import RunError
from regard.models import Dims, TransformerConfig
from regard.models.outline import outline

ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_tanh": "gelu_pytorch_tanh"}
NORM_EPS = 1e-5
"""Theirs is not a setting."""


@dataclass(frozen=True)
class Twin:
    model_type: str
    architecture: str
    norm: str
    position: str
    separate: bool
    """Whether it can have two vocabularies, or tables of its own for source, target and output."""


MARIAN = Twin("marian", "MarianMTModel", "post", "sinusoidal", separate=True)
PEGASUS = Twin("pegasus", "PegasusForConditionalGeneration", "pre", "sinusoidal", separate=False)
BLENDERBOT = Twin("blenderbot", "BlenderbotForConditionalGeneration", "pre", "learned", separate=False)
TWINS = (MARIAN, PEGASUS, BLENDERBOT)


def twin_of(config: TransformerConfig, dims: Dims) -> Twin:
    found = next(
        (twin for twin in TWINS if (twin.norm, twin.position) == (config.norm, config.position)), None
    )
    if found is None:
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
    if not found.separate and not (dims.joint and config.tie_embeddings):
        raise _no_counterpart(
            "norm = 'pre' with more than one embedding table",
            "task.joint = true with tie_embeddings = true, or norm = 'post' with sinusoidal positions",
        )
    return found


def _no_counterpart(what: str, instead: str) -> RunError:
    return RunError(
        f"hf: {what} has no counterpart in Hugging Face's models; train with {instead}, or export to onnx"
    )


def to_foreign(own: dict[str, Tensor], config: TransformerConfig, dims: Dims) -> dict[str, Tensor]:
    """Our tensors under their names and in their order of channels; `config` is plain (plain.py)."""
    order = _order(config)
    return {theirs: _reordered(own[ours], axis, order) for ours, theirs, axis in correspondence(config, dims)}


def to_ours(foreign: dict[str, Tensor], config: TransformerConfig, dims: Dims) -> dict[str, Tensor]:
    """The inverse; what is not there is left out."""
    back = _order(config).argsort()
    return {
        ours: _reordered(foreign[theirs], axis, back)
        for ours, theirs, axis in correspondence(config, dims)
        if theirs in foreign
    }


def correspondence(config: TransformerConfig, dims: Dims) -> Iterator[tuple[str, str, int | None]]:
    """Our name, their name, and along which axis the channels of the residual stream lie."""
    shared = dims.joint and config.tie_embeddings
    for name in outline(config, dims).state_dict():
        *path, last, kind = name.split(".")
        if path and path[0] in ("encoder", "decoder"):
            yield name, _inside(path, last, kind), _residual_axis(last, kind)
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


def _inside(path: list[str], last: str, kind: str) -> str:
    steps = [_PARTS.get(step, step) for step in (*path, last) if step != "ff"]
    return ".".join(("model", *steps, kind))


def _residual_axis(last: str, kind: str) -> int | None:
    if last in ("q", "k", "v", "inner"):
        return 1 if kind == "weight" else None
    return 0


def _order(config: TransformerConfig) -> Tensor:
    """Which of our channels stands at each place of theirs."""
    channels = torch.arange(config.d_model)
    return torch.cat([channels[::2], channels[1::2]]) if config.position == "sinusoidal" else channels


def _reordered(tensor: Tensor, axis: int | None, order: Tensor) -> Tensor:
    return tensor.clone() if axis is None else tensor.index_select(axis, order).contiguous()
