"""Stacks of layers: the encoder of BERT and of the Transformer, and its decoder."""

import torch
from torch import Tensor, nn

from regard.attention import FULL, Learned, Mask, Past, Sinusoidal, Static, Unpadded
from regard.layers.block import Block, BlockConfig
from regard.layers.embed import Embed


def embedding(config: BlockConfig, n_tokens: int, *, scale: bool = True) -> Embed:
    """The embeddings of a stack: its width, its absolute positions if it has any."""
    position: Sinusoidal | Learned | None = None
    if config.position == "sinusoidal":
        position = Sinusoidal(config.d_model)
    elif config.position == "learned":
        position = Learned(config.max_positions, config.d_model)
    return Embed(
        n_tokens,
        config.d_model,
        position=position,
        scale=scale,
        dropout=config.dropout,
        word_dropout=config.word_dropout,
    )


def positions_like(tokens_BT: Tensor, start: int = 0) -> Tensor:
    """positions_1T of tokens that begin at `start`."""
    return torch.arange(start, start + tokens_BT.shape[1], device=tokens_BT.device)[None]


class Stack(nn.Module):
    def __init__(
        self, config: BlockConfig, n_layers: int, *, causal: bool = False, cross: bool = False
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Block(config, causal=causal, cross=cross) for _ in range(n_layers))
        self.norm = nn.LayerNorm(config.d_model, config.norm_eps) if config.norm == "pre" else None

    def forward(
        self,
        x_BTD: Tensor,
        *,
        mask: Mask = FULL,
        positions_BT: Tensor | None = None,
        past: tuple[Past, ...] | None = None,
        memory: tuple[Static, ...] | None = None,
        memory_mask: Mask = FULL,
        unpadded: Unpadded | None = None,
    ) -> tuple[Tensor, tuple[Past, ...]]:
        """The last layer's states, and every layer's keys and values.

        If x is unpadded (one row of real positions), so are the states.
        """
        grown: list[Past] = []
        for i, layer in enumerate(self.layers):
            x_BTD, cache = layer(
                x_BTD,
                mask=mask,
                positions_BT=positions_BT,
                past=None if past is None else past[i],
                memory=None if memory is None else memory[i],
                memory_mask=memory_mask,
                unpadded=unpadded,
            )
            grown.append(cache)
        return (x_BTD if self.norm is None else self.norm(x_BTD)), tuple(grown)

    def project_kv(self, memory_BKD: Tensor, *, unpadded: Unpadded | None = None) -> tuple[Static, ...]:
        """The keys and values of the memory, for each layer's cross-attention."""
        blocks = (layer for layer in self.layers if isinstance(layer, Block) and layer.cross)
        return tuple(layer.project_kv(memory_BKD, unpadded=unpadded) for layer in blocks)
