"""Hugging Face's GPT-2: which of its tensors is which of ours, and its folders read without transformers.

Queries, keys and values lie side by side in one matrix there, and dense maps are turned (Conv1D). Where it
differs from our GPT in what it computes it is refused by the name of the setting.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from torch import Tensor

from regard.config import first_fault
from regard.errors import CheckpointError
from regard.interop.bert import ACTIVATIONS
from regard.interop.tensors import WEIGHTS, Opened, Shape, opened, refuse_others
from regard.interop.tokens import FILE, read_tokenizer
from regard.models import Dims, GPTConfig
from regard.models.outline import outline
from regard.runs.store import read_json
from regard.text.tokenizer import Tokenizer

MODEL_TYPE = "gpt2"
ARCHITECTURE = "GPT2LMHeadModel"
SIZES = {"d_model": "n_embd", "n_heads": "n_head", "n_layers": "n_layer", "max_positions": "n_positions"}
NAMES = SIZES | {
    "d_ff": "n_inner",
    "norm_eps": "layer_norm_epsilon",
    "tie_embeddings": "tie_word_embeddings",
    "dropout": "resid_pdrop",
}
"""What config.json calls our settings."""
REQUIRED = {
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "reorder_and_upcast_attn": False,
    "add_cross_attention": False,
}
NORMS = {"self_norm": "ln_1", "ff_norm": "ln_2"}
DENSE = {
    ("self.q", "self.k", "self.v"): "attn.c_attn",
    ("self.o",): "attn.c_proj",
    ("ff.inner",): "mlp.c_fc",
    ("ff.outer",): "mlp.c_proj",
}
OUTPUT = "lm_head.weight"
PASSED_OVER = re.compile(rf"h\.\d+\.attn\.(masked_)?bias|{re.escape(OUTPUT)}")
"""Masks that old files hold; an output that config.json ties to the embeddings."""


@dataclass(frozen=True)
class Folder:
    config: GPTConfig
    tokenizer: Tokenizer
    tensors: dict[str, Tensor]
    """By our names."""
    told: dict[str, Any]
    """config.json."""
    n_rows: int
    """Of its table of pieces, which may have more than there are pieces."""


@dataclass(frozen=True)
class Match:
    """Some of our tensors, which lie one above the other in one of theirs."""

    ours: tuple[str, ...]
    theirs: str
    turned: bool = False

    def to_foreign(self, own: dict[str, Tensor]) -> Tensor:
        joined = torch.cat([own[name] for name in self.ours])
        return joined.T.contiguous() if self.turned else joined

    def to_ours(self, theirs: Tensor) -> dict[str, Tensor]:
        parts = (theirs.T if self.turned else theirs).chunk(len(self.ours))
        return {name: part.contiguous() for name, part in zip(self.ours, parts, strict=True)}


def correspondence(config: GPTConfig) -> Iterator[Match]:
    yield Match(("embed.weight",), "wte.weight")
    yield Match(("embed.position.weight",), "wpe.weight")
    if not config.tie_embeddings:
        yield Match(("output.weight",), OUTPUT)
    for layer in range(config.n_layers):
        here, there = f"stack.layers.{layer}", f"h.{layer}"
        for ours, theirs in NORMS.items():
            yield from (
                Match((f"{here}.{ours}.{it}",), f"{there}.{theirs}.{it}") for it in ("weight", "bias")
            )
        for parts, theirs in DENSE.items():
            yield Match(tuple(f"{here}.{part}.weight" for part in parts), f"{there}.{theirs}.weight", True)
            yield Match(tuple(f"{here}.{part}.bias" for part in parts), f"{there}.{theirs}.bias")
    yield from (Match((f"stack.norm.{it}",), f"ln_f.{it}") for it in ("weight", "bias"))


def read(folder: Path) -> Folder:
    path = folder / "config.json"
    told = read_json(path)
    config = _config(path, told)
    tokenizer = _tokenizer(folder)
    n_rows, end = told.get("vocab_size"), told.get("eos_token_id", tokenizer.marks.end)
    if not isinstance(n_rows, int) or n_rows < len(tokenizer):
        raise CheckpointError(
            f"{folder}: the vocabulary has {len(tokenizer)} pieces, the model in config.json {n_rows!r}"
        )
    if any(one != tokenizer.marks.end and one in range(len(tokenizer)) for one in _several(end)):
        raise CheckpointError(
            f"{path}: eos_token_id is {end}, but the end of this vocabulary is {tokenizer.marks.end}"
        )
    tensors = _tensors(folder / WEIGHTS, config, len(tokenizer), n_rows)
    return Folder(config, tokenizer, tensors, told, n_rows)


def _several(end: Any) -> list[Any]:
    """Newer files may name several ends."""
    return end if isinstance(end, list) else [end]


def _tokenizer(folder: Path) -> Tokenizer:
    """A GPT-2's own, or one that regard exported with the model it was learnt for."""
    try:
        return Tokenizer.of_gpt2(folder)
    except CheckpointError as first:
        with suppress(CheckpointError):
            return read_tokenizer(folder / FILE)
        raise first


def _config(path: Path, told: dict[str, Any]) -> GPTConfig:
    if told.get("model_type") != MODEL_TYPE:
        raise CheckpointError(f"{path}: model_type is {told.get('model_type')!r}, not {MODEL_TYPE!r}")
    for name, wanted in REQUIRED.items():
        if told.get(name, wanted) != wanted:
            raise CheckpointError(f"{path}: {name} is {told[name]!r}, regard's GPT has {wanted!r}")
    activation = told.get("activation_function", "gelu_new")
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise CheckpointError(f"{path}: activation_function {activation!r} is nothing that regard has")
    try:
        sizes = {ours: told[theirs] for ours, theirs in SIZES.items()}
        width, inner = sizes["d_model"], told.get("n_inner")
        return GPTConfig(
            **sizes,
            d_ff=4 * width if inner is None and isinstance(width, int) else inner,
            activation=ACTIVATIONS[activation],
            norm_eps=told.get("layer_norm_epsilon", 1e-5),
            tie_embeddings=told.get("tie_word_embeddings", True),
            dropout=told.get("resid_pdrop", 0.1),
        )
    except KeyError as error:
        raise CheckpointError(f"{path}: {error.args[0]} is missing") from None
    except ValidationError as error:
        raise CheckpointError(f"{path}: {first_fault(error, NAMES)}") from None


def _tensors(path: Path, config: GPTConfig, n_pieces: int, n_rows: int) -> dict[str, Tensor]:
    """Ours, once every name and shape is known to be as config.json has it; rows of no piece are left out."""
    own = outline(config, Dims(n_pieces, n_pieces, joint=True)).state_dict()
    shapes: dict[str, Shape] = {}
    for match in correspondence(config):
        first, *rest = own[match.ours[0]].shape
        shape = (len(match.ours) * first, *rest)
        shapes[match.theirs] = shape[::-1] if match.turned else shape
    for table in {"wte.weight", OUTPUT} & shapes.keys():
        shapes[table] = (n_rows, config.d_model)
    found: dict[str, Tensor] = {}
    with opened(path, lambda name: name.removeprefix("transformer.")) as file:
        refuse_others(file, shapes, PASSED_OVER)
        if config.tie_embeddings and OUTPUT in file.shapes:
            _refuse_apart(file)
        for match in correspondence(config):
            theirs = file.tensor(match.theirs)
            found |= match.to_ours(theirs[:n_pieces] if match.theirs in ("wte.weight", OUTPUT) else theirs)
    return found


def _refuse_apart(file: Opened) -> None:
    """Transformers would not tie them either."""
    if not torch.equal(file.tensor(OUTPUT), file.tensor("wte.weight")):
        raise CheckpointError(
            f"{file.path}: tensor {OUTPUT} differs from wte.weight, though config.json ties them; "
            "set tie_word_embeddings to false there"
        )
