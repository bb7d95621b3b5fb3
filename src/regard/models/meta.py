"""Models on the meta device, names and shapes without memory: to be measured, described, or loaded into."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from regard.errors import RecipeError
from regard.models import (
    BERT4RecConfig,
    BertConfig,
    BertPretrainingConfig,
    EncoderConfig,
    EncodingConfig,
    GPTConfig,
    ModelConfig,
    SASRecConfig,
    TransformerConfig,
)
from regard.models.encoders import TransformerEncoderConfig
from regard.models.widths import Widths


def build_meta(config: ModelConfig, widths: Widths) -> nn.Module:
    """The model of a config on the meta device."""
    try:
        return on_meta_device(lambda: config.build(widths))
    except RuntimeError as error:  # sizes whose product is no number of bytes
        raise RecipeError(
            f"model: {config} is too large for any machine ({error}); choose smaller sizes"
        ) from error


def on_meta_device(build: Callable[[], nn.Module]) -> nn.Module:
    """The result of `build` on the meta device."""
    with torch.device("meta"), _WithoutInit():
        return build()


def max_tokens(config: ModelConfig) -> int | None:
    """The number of positions a model has for a text's tokens and its end; None if any number."""
    if isinstance(config, BertPretrainingConfig):
        return config.encoder.max_positions - 2  # less a mark before the texts and one between them
    stack = config.encoder if isinstance(config, EncodingConfig) else config
    if isinstance(stack, BertConfig):
        return stack.max_positions - 1  # less the mark that may come first
    return max_positions(stack)


def max_positions(stack: ModelConfig | EncoderConfig) -> int | None:
    """The number of learned positions; None if it takes any number."""
    learning = (
        TransformerConfig | TransformerEncoderConfig | GPTConfig | BertConfig | SASRecConfig | BERT4RecConfig
    )
    return stack.max_positions if isinstance(stack, learning) and stack.position == "learned" else None


class _WithoutInit(TorchFunctionMode):
    """Skips the initial weights of meta tensors: `normal_` on them would load half of torch (1.5 s)."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return kwargs["tensor"] if func is nn.init.normal_ else func(*args, **(kwargs or {}))
