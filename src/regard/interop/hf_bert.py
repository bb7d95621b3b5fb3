"""What every BERT that leaves for Hugging Face has alike: the encoder's tensors, sizes and vocabulary."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from regard.errors import RunError
from regard.interop.bert import ACTIVATIONS, MODEL_TYPE, SIZES, correspondence
from regard.interop.tensors import WEIGHTS
from regard.interop.tokens import write_tokenizer
from regard.models import BertConfig, EncodingConfig
from regard.runs.store import write_json
from regard.text.tokenizer import Tokenizer
from regard.text.vocabulary import SPECIALS
from regard.text.wordpiece import MASK, NEEDED

HERE = ("pad_token", "unk_token", "bos_token", "eos_token")
THERE = ("pad_token", "unk_token", "cls_token", "sep_token")


class _Reading(Protocol):
    tokenizer: Tokenizer

    @property
    def config(self) -> Any: ...


def encoder_of(config: EncodingConfig, what: str) -> BertConfig:
    """RunError unless it is a BERT."""
    if not isinstance(config.encoder, BertConfig):
        raise RunError(
            f"hf: {what} with a {config.encoder.kind} encoder has no counterpart in Hugging Face's models; "
            "export to onnx"
        )
    return config.encoder


def write(
    task: _Reading,
    model: nn.Module,
    encoder: BertConfig,
    folder: Path,
    heads: dict[str, str],
    told: dict[str, Any],
    card: str,
    *,
    cuts: bool = True,
) -> None:
    """`heads` are our names and theirs of what stands above the encoder, `told` what config.json says of it.

    `cuts`: tokenizer.json leaves out what is not read of long texts.
    """
    most = task.config.max_length
    save_file(_tensors(model, encoder, heads), folder / WEIGHTS, metadata={"format": "pt"})
    write_json(folder / "config.json", _config(encoder, task.tokenizer) | told)
    write_json(folder / "tokenizer_config.json", _tokenizer_config(task.tokenizer, encoder, most))
    write_tokenizer(task.tokenizer, folder, most if cuts else None)
    (folder / "README.md").write_text(card, "utf-8")


def named_labels(labels: Sequence[str]) -> dict[str, Any]:
    """As config.json numbers them."""
    return {
        "id2label": {str(number): label for number, label in enumerate(labels)},
        "label2id": {label: number for number, label in enumerate(labels)},
    }


def _tensors(model: nn.Module, encoder: BertConfig, heads: dict[str, str]) -> dict[str, Tensor]:
    """By their names."""
    own = {
        name: tensor.detach().to("cpu", torch.float32, copy=True)
        for name, tensor in model.state_dict().items()
    }
    found = {f"bert.{theirs}": own[f"encoder.{ours}"] for ours, theirs in correspondence(encoder)}
    return found | {_with_prefix(theirs): own[ours] for ours, theirs in heads.items()}


def _with_prefix(name: str) -> str:
    """The pooler belongs to the BERT, the last map does not."""
    return f"bert.{name}" if name.startswith("pooler.") else name


def _config(encoder: BertConfig, tokenizer: Tokenizer) -> dict[str, Any]:
    activation = next(theirs for theirs, ours in ACTIVATIONS.items() if ours == encoder.activation)
    return {
        "model_type": MODEL_TYPE,
        "vocab_size": len(tokenizer),
        **{theirs: getattr(encoder, ours) for ours, theirs in SIZES.items()},
        "hidden_act": activation,
        "layer_norm_eps": encoder.norm_eps,
        "hidden_dropout_prob": encoder.dropout,
        "attention_probs_dropout_prob": encoder.attention_dropout,
        "pad_token_id": _marks(tokenizer)["pad_token"][1],
        "torch_dtype": "float32",
    }


def _tokenizer_config(tokenizer: Tokenizer, encoder: BertConfig, max_length: int) -> dict[str, Any]:
    """Of texts of so many pieces; no text may end its own sentence."""
    segments = ["token_type_ids"] if encoder.n_segments > 1 else []
    mask = {} if tokenizer.marks.mask is None else {"mask_token": MASK}
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **{name: piece for name, (piece, _) in _marks(tokenizer).items()},
        **mask,
        "model_input_names": ["input_ids", *segments, "attention_mask"],
        "model_max_length": max_length + len(tokenizer.framed(())),
        "padding_side": "right",
        "truncation_side": "right",
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": True,
    }


def _marks(tokenizer: Tokenizer) -> dict[str, tuple[str, int]]:
    """What transformers calls each mark; the piece and its number."""
    berts = bool(tokenizer.marks.begin)
    numbers = {piece: number for number, piece in enumerate(tokenizer.names)}
    pairs = zip(THERE if berts else HERE, NEEDED if berts else SPECIALS, strict=True)
    return {name: (piece, numbers[piece]) for name, piece in pairs}
