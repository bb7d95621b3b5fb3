"""Import of a Hugging Face encoder-decoder into a model folder of ours, without transformers or pickle.

Only the three equivalent architectures (equivalents.py) are read, and only with a vocabulary that regard once
exported; the weights may have been trained further elsewhere. Sizes are checked against the file before
memory is allocated.
"""

import re
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from torch import Tensor

from regard.config import first_fault
from regard.errors import CheckpointError
from regard.interop.equivalents import (
    ACTIVATIONS,
    BLENDERBOT,
    EQUIVALENTS,
    Equivalent,
    correspondence,
    to_ours,
)
from regard.interop.tensors import WEIGHTS, check_tensors, open_tensors
from regard.interop.tokens import FILE, TARGET, read_tokenizer
from regard.models import Transformer, TransformerConfig, Widths
from regard.models.meta import build_meta
from regard.runs.store import read_json, save_model
from regard.tasks import Summarize, SummarizeConfig, Translate, TranslateConfig
from regard.text.tokenizer import BOS, EOS, PAD, Tokenizer
from regard.training.checkpoint import fill

TASKS: dict[str, tuple[type[Any], type[TranslateConfig | SummarizeConfig]]] = {
    "translate": (Translate, TranslateConfig),
    "summarize": (Summarize, SummarizeConfig),
}
POSITIONS = tuple(f"model.{stack}.embed_positions.weight" for stack in ("encoder", "decoder"))
IGNORED = re.compile(r"(?!)")
"""No tensor at all."""
REQUIRED = {
    "pad_token_id": PAD,
    "eos_token_id": EOS,
    "decoder_start_token_id": BOS,
    "scale_embedding": True,
}


def import_folder(folder: Path, out: Path) -> str:
    """Import a folder; returns its task."""
    content = read_json(folder / "config.json")
    model_type = content.get("model_type")
    equivalent = next((each for each in EQUIVALENTS if each.model_type == model_type), None)
    if equivalent is None:
        supported = ", ".join((*(each.model_type for each in EQUIVALENTS), "bert", "gpt2"))
        raise CheckpointError(
            f"{folder / 'config.json'}: model_type {model_type!r} cannot be imported, only {supported} can"
        )
    _check_config(folder / "config.json", content)
    source, target = _tokenizers(folder)
    config, widths = _model_config(
        folder, equivalent, content, len(source), len(target), joint=source is target
    )
    tensors = _tensors(folder / WEIGHTS, config, widths)
    if equivalent is BLENDERBOT and not torch.equal(*(tensors[name] for name in POSITIONS)):
        config = config.model_copy(update={"tie_embeddings": False})
        tensors = _untied(tensors)
    model = build_meta(config, widths).to_empty(device="cpu")
    assert isinstance(model, Transformer)
    fill(model, to_ours(tensors, config, widths), str(folder / WEIGHTS))
    task_config = _task_config(folder / "config.json", content, config, joint=widths.shared)
    task = TASKS[task_config.kind][0].of_vocabularies(task_config, source, target)
    save_model(out, task, task_config, model, config, {})
    return task_config.kind


def _check_config(path: Path, content: dict[str, Any]) -> None:
    for name, required in REQUIRED.items():
        if name in content and content[name] != required:
            raise CheckpointError(f"{path}: {name} is {content[name]!r}, regard's models have {required!r}")


def _tokenizers(folder: Path) -> tuple[Tokenizer, Tokenizer]:
    """Tokenizers of source and target; the same object if there is only one."""
    source = read_tokenizer(folder / FILE)
    separate = folder / TARGET / FILE
    return source, read_tokenizer(separate) if separate.is_file() else source


def _model_config(
    folder: Path,
    equivalent: Equivalent,
    content: dict[str, Any],
    n_source: int,
    n_target: int,
    *,
    joint: bool,
) -> tuple[TransformerConfig, Widths]:
    path = folder / "config.json"
    names = {theirs: ours for ours, theirs in ACTIVATIONS.items()}
    for name in ("attention_heads", "ffn_dim"):
        if content.get(f"encoder_{name}") != content.get(f"decoder_{name}"):
            raise CheckpointError(
                f"{path}: encoder_{name} and decoder_{name} differ, regard has one for both"
            )
    vocab_size = content.get("vocab_size")
    sizes = vocab_size, content.get("decoder_vocab_size") or vocab_size
    if sizes != (n_source, n_target):
        raise CheckpointError(
            f"{path}: the vocabulary sizes are {sizes}, but those of the tokenizers {(n_source, n_target)}"
        )
    tied = content.get("tie_word_embeddings", True) is True
    shared = content.get("share_encoder_decoder_embeddings", True) is True
    if joint and tied != shared:
        raise CheckpointError(f"{path}: only some of the embeddings are tied, regard ties all or none")
    try:
        config = TransformerConfig(
            d_model=content["d_model"],
            n_heads=content["encoder_attention_heads"],
            d_ff=content["encoder_ffn_dim"],
            n_encoder_layers=content["encoder_layers"],
            n_decoder_layers=content["decoder_layers"],
            activation=names[content["activation_function"]],
            norm=equivalent.norm,
            position=equivalent.position,
            max_positions=content["max_position_embeddings"],
            tie_embeddings=tied,
            dropout=content.get("dropout", 0.1),
            inner_dropout=content.get("activation_dropout", 0.0),
            attention_dropout=content.get("attention_dropout", 0.0),
        )
    except KeyError as error:
        raise CheckpointError(f"{path}: {error.args[0]!r} is missing, or not supported by regard") from None
    except (ValidationError, TypeError) as error:
        raise CheckpointError(f"{path}: {_first_line(error)}") from None
    return config, Widths({"vocab": n_source}, {"vocab": n_target}, shared=joint)


def _task_config(
    path: Path, content: dict[str, Any], config: TransformerConfig, *, joint: bool
) -> TranslateConfig | SummarizeConfig:
    """Read the task config that regard wrote into config.json, or take the default."""
    try:
        settings = content.get("regard_task") or {"max_length": min(config.max_positions - 1, 256)}
        kind = str(settings.get("kind")) if isinstance(settings, dict) else ""
        _, config_class = TASKS.get(kind, TASKS["translate"])
        task_config = config_class.model_validate(settings | {"joint": joint})
    except (ValidationError, TypeError) as error:
        raise CheckpointError(f"{path}: regard_task: {_first_line(error)}") from None
    if task_config.max_length >= config.max_positions:
        raise CheckpointError(
            f"{path}: max_position_embeddings is {config.max_positions}, but texts may have "
            f"{task_config.max_length} tokens and EOS"
        )
    return task_config


def _tensors(path: Path, config: TransformerConfig, widths: Widths) -> dict[str, Tensor]:
    """Read the file's tensors after checking names and shapes against the config."""
    expected = build_meta(config, widths).state_dict()
    shapes = {theirs: tuple(expected[ours].shape) for ours, theirs, _ in correspondence(config, widths)}
    shapes["final_logits_bias"] = (1, widths.target["vocab"])
    with open_tensors(path, str) as file:
        check_tensors(file, shapes, IGNORED)
        tensors = {name: file.tensor(name) for name in shapes}
    if tensors.pop("final_logits_bias").any():
        raise CheckpointError(
            f"{path}: final_logits_bias is not zero, and regard's Transformer has no such bias"
        )
    return tensors


def _untied(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Copy the shared embeddings for each side; positions that differ need embeddings of their own."""
    rest = dict(tensors)
    table = rest.pop("model.shared.weight")
    tables = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")
    return rest | {name: table.clone() for name in tables}


def _first_line(error: Exception) -> str:
    return first_fault(error) if isinstance(error, ValidationError) else str(error)
