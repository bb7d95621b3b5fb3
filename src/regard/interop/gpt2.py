"""Hugging Face's GPT-2: how its tensors correspond to ours, and its folders read without transformers.

Its queries, keys and values share one matrix, and its linear maps are transposed (Conv1D). A setting by which
it would compute something else than our GPT is refused by name.
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
from regard.interop.tensors import WEIGHTS, Shape, TensorFile, check_tensors, open_tensors
from regard.interop.tokens import FILE, read_tokenizer
from regard.models import GPTConfig, Widths
from regard.models.meta import build_meta
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
"""Names of our settings in config.json."""
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
IGNORED = re.compile(rf"h\.\d+\.attn\.(masked_)?bias|{re.escape(OUTPUT)}")
"""Causal masks in old files, and an output matrix that config.json ties to the embeddings."""


@dataclass(frozen=True)
class GPT2Folder:
    config: GPTConfig
    tokenizer: Tokenizer
    tensors: dict[str, Tensor]
    """Tensors by our names."""
    content: dict[str, Any]
    """Content of config.json."""
    n_rows: int
    """Rows of the embedding table, which may exceed the vocabulary."""


@dataclass(frozen=True)
class Match:
    """One of their tensors, and those of ours that are concatenated in it."""

    ours: tuple[str, ...]
    theirs: str
    transposed: bool = False

    def to_theirs(self, our_tensors: dict[str, Tensor]) -> Tensor:
        joined = torch.cat([our_tensors[name] for name in self.ours])
        return joined.T.contiguous() if self.transposed else joined

    def to_ours(self, theirs: Tensor) -> dict[str, Tensor]:
        parts = (theirs.T if self.transposed else theirs).chunk(len(self.ours))
        return {name: part.contiguous() for name, part in zip(self.ours, parts, strict=True)}


def correspondence(config: GPTConfig) -> Iterator[Match]:
    yield Match(("embed.weight",), "wte.weight")
    yield Match(("embed.position.weight",), "wpe.weight")
    if not config.tie_embeddings:
        yield Match(("output.weight",), OUTPUT)
    for layer in range(config.n_layers):
        our_layer, their_layer = f"stack.layers.{layer}", f"h.{layer}"
        for ours, theirs in NORMS.items():
            for kind in ("weight", "bias"):
                yield Match((f"{our_layer}.{ours}.{kind}",), f"{their_layer}.{theirs}.{kind}")
        for parts, theirs in DENSE.items():
            weights = tuple(f"{our_layer}.{part}.weight" for part in parts)
            yield Match(weights, f"{their_layer}.{theirs}.weight", transposed=True)
            yield Match(tuple(f"{our_layer}.{part}.bias" for part in parts), f"{their_layer}.{theirs}.bias")
    yield from (Match((f"stack.norm.{kind}",), f"ln_f.{kind}") for kind in ("weight", "bias"))


def read(folder: Path) -> GPT2Folder:
    path = folder / "config.json"
    content = read_json(path)
    config = _config(path, content)
    tokenizer = _tokenizer(folder)
    n_rows, end = content.get("vocab_size"), content.get("eos_token_id", tokenizer.special.end)
    if not isinstance(n_rows, int) or n_rows < len(tokenizer):
        raise CheckpointError(
            f"{folder}: the vocabulary has {len(tokenizer)} tokens, config.json says vocab_size {n_rows!r}"
        )
    if any(token != tokenizer.special.end and token in range(len(tokenizer)) for token in _as_list(end)):
        raise CheckpointError(
            f"{path}: eos_token_id is {end}, but EOS of this vocabulary is {tokenizer.special.end}"
        )
    tensors = _tensors(folder / WEIGHTS, config, len(tokenizer), n_rows)
    return GPT2Folder(config, tokenizer, tensors, content, n_rows)


def _as_list(end: Any) -> list[Any]:
    """EOS tokens as a list; newer files may name several."""
    return end if isinstance(end, list) else [end]


def _tokenizer(folder: Path) -> Tokenizer:
    """Read a GPT-2's own tokenizer, or one of ours that regard exported with its model."""
    try:
        return Tokenizer.from_gpt2(folder)
    except CheckpointError as first:
        with suppress(CheckpointError):
            return read_tokenizer(folder / FILE)
        raise first


def _config(path: Path, content: dict[str, Any]) -> GPTConfig:
    if content.get("model_type") != MODEL_TYPE:
        raise CheckpointError(f"{path}: model_type is {content.get('model_type')!r}, not {MODEL_TYPE!r}")
    for name, required in REQUIRED.items():
        if content.get(name, required) != required:
            raise CheckpointError(f"{path}: {name} is {content[name]!r}, regard's GPT has {required!r}")
    activation = content.get("activation_function", "gelu_new")
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise CheckpointError(f"{path}: activation_function {activation!r} is not supported by regard")
    try:
        sizes = {ours: content[theirs] for ours, theirs in SIZES.items()}
        width, inner = sizes["d_model"], content.get("n_inner")
        return GPTConfig(
            **sizes,
            d_ff=4 * width if inner is None and isinstance(width, int) else inner,
            activation=ACTIVATIONS[activation],
            norm_eps=content.get("layer_norm_epsilon", 1e-5),
            tie_embeddings=content.get("tie_word_embeddings", True),
            dropout=content.get("resid_pdrop", 0.1),
        )
    except KeyError as error:
        raise CheckpointError(f"{path}: {error.args[0]} is missing") from None
    except ValidationError as error:
        raise CheckpointError(f"{path}: {first_fault(error, NAMES)}") from None


def _tensors(path: Path, config: GPTConfig, n_tokens: int, n_rows: int) -> dict[str, Tensor]:
    """Read the tensors under our names, after checking them against config.json; spare rows are dropped."""
    expected = build_meta(config, Widths({"vocab": n_tokens}, {"vocab": n_tokens}, shared=True)).state_dict()
    shapes: dict[str, Shape] = {}
    for match in correspondence(config):
        first, *rest = expected[match.ours[0]].shape
        shape = (len(match.ours) * first, *rest)
        shapes[match.theirs] = shape[::-1] if match.transposed else shape
    for table in {"wte.weight", OUTPUT} & shapes.keys():
        shapes[table] = (n_rows, config.d_model)
    tensors: dict[str, Tensor] = {}
    with open_tensors(path, lambda name: name.removeprefix("transformer.")) as file:
        check_tensors(file, shapes, IGNORED)
        if config.tie_embeddings and OUTPUT in file.shapes:
            _require_tied(file)
        for match in correspondence(config):
            theirs = file.tensor(match.theirs)
            has_rows = match.theirs in ("wte.weight", OUTPUT)
            tensors |= match.to_ours(theirs[:n_tokens] if has_rows else theirs)
    return tensors


def _require_tied(file: TensorFile) -> None:
    """Raise CheckpointError if output and embeddings differ; transformers would not tie them either."""
    if not torch.equal(file.tensor(OUTPUT), file.tensor("wte.weight")):
        raise CheckpointError(
            f"{file.path}: tensor {OUTPUT} differs from wte.weight, though config.json ties them; "
            "set tie_word_embeddings to false there"
        )
