"""Import: a folder of Hugging Face back into a model folder of ours, without transformers and without pickle.

Only what the three twins (twins.py) have is read, and only with a vocabulary that regard once exported; the
weights may have been trained further elsewhere. Sizes are compared with the file before memory is taken.
"""

import re
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from torch import Tensor

from regard.config import first_fault
from regard.errors import CheckpointError
from regard.interop.tensors import WEIGHTS, opened, refuse_others
from regard.interop.tokens import FILE, TARGET, read_tokenizer
from regard.interop.twins import ACTIVATIONS, BLENDERBOT, TWINS, Twin, correspondence, to_ours
from regard.models import Dims, Transformer, TransformerConfig
from regard.models.outline import outline
from regard.runs.store import read_json, save_model
from regard.tasks import Summarize, SummarizeConfig, Translate, TranslateConfig
from regard.text.tokenizer import BOS, EOS, PAD, Tokenizer
from regard.training.checkpoint import fill

TASKS: dict[str, tuple[type[Any], type[TranslateConfig | SummarizeConfig]]] = {
    "translate": (Translate, TranslateConfig),
    "summarize": (Summarize, SummarizeConfig),
}
POSITIONS = tuple(f"model.{stack}.embed_positions.weight" for stack in ("encoder", "decoder"))
NONE = re.compile(r"(?!)")
"""No tensor may be there that is not asked for."""
REQUIRED = {
    "pad_token_id": PAD,
    "eos_token_id": EOS,
    "decoder_start_token_id": BOS,
    "scale_embedding": True,
}


def import_folder(folder: Path, out: Path) -> str:
    """Its kind of task."""
    given = read_json(folder / "config.json")
    twin = next((twin for twin in TWINS if twin.model_type == given.get("model_type")), None)
    if twin is None:
        known = ", ".join((*(twin.model_type for twin in TWINS), "bert", "gpt2"))
        raise CheckpointError(
            f"{folder / 'config.json'}: model_type {given.get('model_type')!r} is not one that regard has "
            f"({known} are)"
        )
    _require_ours(folder / "config.json", given)
    source, target = _tokenizers(folder)
    config, dims = _model_config(folder, twin, given, len(source), len(target), joint=source is target)
    foreign = _tensors(folder / WEIGHTS, config, dims)
    if twin is BLENDERBOT and not torch.equal(*(foreign[name] for name in POSITIONS)):
        config = config.model_copy(update={"tie_embeddings": False})
        foreign = _untied(foreign)
    model = outline(config, dims).to_empty(device="cpu")
    assert isinstance(model, Transformer)
    fill(model, to_ours(foreign, config, dims), str(folder / WEIGHTS))
    task_config = _task_config(folder / "config.json", given, config, joint=dims.joint)
    task = TASKS[task_config.kind][0](task_config, source, target)
    save_model(out, task, task_config, model, config, {})
    return task_config.kind


def _require_ours(path: Path, given: dict[str, Any]) -> None:
    for name, wanted in REQUIRED.items():
        if name in given and given[name] != wanted:
            raise CheckpointError(f"{path}: {name} is {given[name]!r}, regard's models have {wanted!r}")


def _tokenizers(folder: Path) -> tuple[Tokenizer, Tokenizer]:
    """Of the source and the target, one for both where there is only one."""
    source = read_tokenizer(folder / FILE)
    separate = folder / TARGET / FILE
    return source, read_tokenizer(separate) if separate.is_file() else source


def _model_config(
    folder: Path, twin: Twin, given: dict[str, Any], n_source: int, n_target: int, *, joint: bool
) -> tuple[TransformerConfig, Dims]:
    path = folder / "config.json"
    names = {theirs: ours for ours, theirs in ACTIVATIONS.items()}
    for name in ("attention_heads", "ffn_dim"):
        if given.get(f"encoder_{name}") != given.get(f"decoder_{name}"):
            raise CheckpointError(
                f"{path}: encoder_{name} and decoder_{name} differ, regard has one for both"
            )
    told = given.get("vocab_size"), given.get("decoder_vocab_size") or given.get("vocab_size")
    if told != (n_source, n_target):
        raise CheckpointError(
            f"{path}: its vocabulary has {told}, the tokenizers have {(n_source, n_target)}"
        )
    tied = given.get("tie_word_embeddings", True) is True
    shared = given.get("share_encoder_decoder_embeddings", True) is True
    if joint and tied != shared:
        raise CheckpointError(f"{path}: only some of the embeddings are tied, regard ties all or none")
    try:
        config = TransformerConfig(
            d_model=given["d_model"],
            n_heads=given["encoder_attention_heads"],
            d_ff=given["encoder_ffn_dim"],
            n_encoder_layers=given["encoder_layers"],
            n_decoder_layers=given["decoder_layers"],
            activation=names[given["activation_function"]],
            norm=twin.norm,
            position=twin.position,
            max_positions=given["max_position_embeddings"],
            tie_embeddings=tied,
            dropout=given.get("dropout", 0.1),
            inner_dropout=given.get("activation_dropout", 0.0),
            attention_dropout=given.get("attention_dropout", 0.0),
        )
    except KeyError as error:
        raise CheckpointError(
            f"{path}: {error.args[0]!r} is missing, or is nothing that regard has"
        ) from None
    except (ValidationError, TypeError) as error:
        raise CheckpointError(f"{path}: {_first_line(error)}") from None
    return config, Dims(n_source, n_target, joint=joint)


def _task_config(
    path: Path, given: dict[str, Any], config: TransformerConfig, *, joint: bool
) -> TranslateConfig | SummarizeConfig:
    """As regard wrote it beside the model; a folder without it has the usual one."""
    try:
        written = given.get("regard_task") or {"max_length": min(config.max_positions - 1, 256)}
        kind = str(written.get("kind")) if isinstance(written, dict) else ""
        _, config_of = TASKS.get(kind, TASKS["translate"])
        task_config = config_of.model_validate(written | {"joint": joint})
    except (ValidationError, TypeError) as error:
        raise CheckpointError(f"{path}: regard_task: {_first_line(error)}") from None
    if task_config.max_length >= config.max_positions:
        raise CheckpointError(
            f"{path}: max_position_embeddings is {config.max_positions}, but texts may have "
            f"{task_config.max_length} pieces and an end"
        )
    return task_config


def _tensors(path: Path, config: TransformerConfig, dims: Dims) -> dict[str, Tensor]:
    """The file's tensors, once names, shapes and sizes are known to be those that the config asks for."""
    own = outline(config, dims).state_dict()
    shapes = {theirs: tuple(own[ours].shape) for ours, theirs, _ in correspondence(config, dims)}
    shapes["final_logits_bias"] = (1, dims.target_vocab)
    with opened(path, str) as file:
        refuse_others(file, shapes, NONE)
        tensors = {name: file.tensor(name) for name in shapes}
    if tensors.pop("final_logits_bias").any():
        raise CheckpointError(
            f"{path}: final_logits_bias is not zero, and regard's Transformer has no such bias"
        )
    return tensors


def _untied(foreign: dict[str, Tensor]) -> dict[str, Tensor]:
    """Positions that were trained apart need embeddings of their own."""
    rest = dict(foreign)
    table = rest.pop("model.shared.weight")
    tables = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")
    return rest | {name: table.clone() for name in tables}


def _first_line(error: Exception) -> str:
    return first_fault(error) if isinstance(error, ValidationError) else str(error)
