"""A model's names and shapes, without the memory: to be measured, described, or filled from a file."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from regard.errors import RecipeError
from regard.models import (
    BertConfig,
    BertPretrainingConfig,
    EncoderConfig,
    EncodingConfig,
    GPTConfig,
    ModelConfig,
    TransformerConfig,
)
from regard.models.encoders import TransformerEncoderConfig
from regard.models.widths import Widths


def build_meta(config: ModelConfig, widths: Widths) -> nn.Module:
    try:
        return on_meta_device(lambda: config.build(widths))
    except RuntimeError as error:  # sizes whose product is no number of bytes
        raise RecipeError(f"model: {config} is beyond any machine ({error}); take smaller sizes") from error


def on_meta_device(build: Callable[[], nn.Module]) -> nn.Module:
    """What `build` builds, without memory."""
    with torch.device("meta"), _WithoutInit():
        return build()


def max_tokens(config: ModelConfig) -> int | None:
    """How many positions a model has for a text's pieces and its end; None if any number."""
    if isinstance(config, BertPretrainingConfig):
        return config.encoder.max_positions - 2  # of which a mark before the texts and one between takes two
    stack = config.encoder if isinstance(config, EncodingConfig) else config
    if isinstance(stack, BertConfig):
        return stack.max_positions - 1  # of which the first may be taken by a mark
    return max_positions(stack)


def max_positions(stack: ModelConfig | EncoderConfig) -> int | None:
    """How many it has learnt; None if it takes any number."""
    learning = TransformerConfig | TransformerEncoderConfig | GPTConfig | BertConfig
    return stack.max_positions if isinstance(stack, learning) and stack.position == "learned" else None


class _WithoutInit(TorchFunctionMode):
    """No first weights for tensors without memory: `normal_` on them would load half of torch (1.5 s)."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return kwargs["tensor"] if func is nn.init.normal_ else func(*args, **(kwargs or {}))
