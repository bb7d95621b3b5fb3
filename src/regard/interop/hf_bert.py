"""Shared parts of every BERT export to Hugging Face: the encoder's tensors, sizes and vocabulary."""

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

OUR_SPECIALS = ("pad_token", "unk_token", "bos_token", "eos_token")
BERT_SPECIALS = ("pad_token", "unk_token", "cls_token", "sep_token")


class _TaskWithTokenizer(Protocol):
    @property
    def tokenizer(self) -> Tokenizer: ...

    @property
    def config(self) -> Any: ...


def encoder_of(config: EncodingConfig, model_name: str) -> BertConfig:
    """Return the encoder's config; RunError unless it is a BERT."""
    if not isinstance(config.encoder, BertConfig):
        raise RunError(
            f"hf: {model_name} with a {config.encoder.kind} encoder has no counterpart in Hugging Face's "
            "models; export to onnx"
        )
    return config.encoder


def write(
    task: _TaskWithTokenizer,
    model: nn.Module,
    encoder: BertConfig,
    folder: Path,
    heads: dict[str, str],
    config_json: dict[str, Any],
    card: str,
    *,
    truncates: bool = True,
) -> None:
    """Write the folder; `heads` maps our names of the heads' tensors to theirs.

    `config_json` is what config.json says about the heads; with `truncates`, tokenizer.json truncates texts.
    """
    max_length = task.config.max_length
    save_file(_tensors(model, encoder, heads), folder / WEIGHTS, metadata={"format": "pt"})
    write_json(folder / "config.json", _config(encoder, task.tokenizer) | config_json)
    write_json(folder / "tokenizer_config.json", _tokenizer_config(task.tokenizer, encoder, max_length))
    write_tokenizer(task.tokenizer, folder, max_length if truncates else None)
    (folder / "README.md").write_text(card, "utf-8")


def label_maps(labels: Sequence[str]) -> dict[str, Any]:
    """Labels and their numbers as config.json has them."""
    return {
        "id2label": {str(number): label for number, label in enumerate(labels)},
        "label2id": {label: number for number, label in enumerate(labels)},
    }


def _tensors(model: nn.Module, encoder: BertConfig, heads: dict[str, str]) -> dict[str, Tensor]:
    """Tensors by their names in Hugging Face's BERT."""
    ours_by_name = {
        name: tensor.detach().to("cpu", torch.float32, copy=True)
        for name, tensor in model.state_dict().items()
    }
    tensors = {f"bert.{theirs}": ours_by_name[f"encoder.{ours}"] for ours, theirs in correspondence(encoder)}
    return tensors | {_with_prefix(theirs): ours_by_name[ours] for ours, theirs in heads.items()}


def _with_prefix(name: str) -> str:
    """Add the BERT's prefix, which the pooler has and other heads have not."""
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
        "pad_token_id": _special_tokens(tokenizer)["pad_token"][1],
        "torch_dtype": "float32",
    }


def _tokenizer_config(tokenizer: Tokenizer, encoder: BertConfig, max_length: int) -> dict[str, Any]:
    """Content of tokenizer_config.json; text that spells a special token stays text."""
    segments = ["token_type_ids"] if encoder.n_segments > 1 else []
    mask = {} if tokenizer.special.mask is None else {"mask_token": MASK}
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **{name: token for name, (token, _) in _special_tokens(tokenizer).items()},
        **mask,
        "model_input_names": ["input_ids", *segments, "attention_mask"],
        "model_max_length": max_length + len(tokenizer.with_special_tokens(())),
        "padding_side": "right",
        "truncation_side": "right",
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": True,
    }


def _special_tokens(tokenizer: Tokenizer) -> dict[str, tuple[str, int]]:
    """Special tokens and their ids, by transformers' names."""
    is_bert = bool(tokenizer.special.begin)
    ids = {token: number for number, token in enumerate(tokenizer.names)}
    names, tokens = (BERT_SPECIALS, NEEDED) if is_bert else (OUR_SPECIALS, SPECIALS)
    return {name: (token, ids[token]) for name, token in zip(names, tokens, strict=True)}
