"""Pretrained encoders with the field they read: from a run, a BERT folder, or an encoder folder.

An encoder folder is like a model folder (store.py), but its config.json has an encoder and no task;
`regard import` makes one of a BERT without a usable head.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, PositiveInt, ValidationError
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from regard import __version__, durable
from regard.errors import CheckpointError, RecipeError, RunError
from regard.fields.text import Text
from regard.interop import bert, vit
from regard.interop.tensors import WEIGHTS
from regard.layers.pooling import Pooler
from regard.models import EncoderConfig, EncodingConfig
from regard.models.layer_depth import MARKS
from regard.models.meta import max_positions, on_meta_device
from regard.runs.store import FORMAT_VERSION, check_format, check_size, load_model, read_json, write_json
from regard.text.tokenizer import Tokenizer
from regard.training.checkpoint import load_weights

PREFIX = "encoder."
POOLER = "pooling.dense."


@dataclass(frozen=True)
class PretrainedEncoder:
    folder: Path
    config: EncoderConfig
    field: Any
    """The fitted field that it reads."""
    tensors: dict[str, Tensor]
    """Tensors by the names of our models: encoder.…, and those of its heads, if any."""
    weights: Path
    """File of the tensors."""
    max_length: int
    """Longest text in tokens; longer ones are truncated."""
    name: str = "text"
    """The name of the field."""

    @property
    def vocabulary(self) -> Tokenizer | None:
        """The vocabulary that a training begins with; None for an encoder of something else than texts."""
        return self.field.tokenizer if isinstance(self.field, Text) else None

    @property
    def tokenizer(self) -> Tokenizer:
        """The vocabulary of an encoder of texts."""
        if not isinstance(self.field, Text):
            raise RecipeError(
                f"{self.folder}: its encoder reads {self.field.kind}, and has no vocabulary; give one"
                " of texts"
            )
        return self.field.tokenizer

    def build(self) -> nn.Module:
        """Build the encoder alone, with its weights."""
        model: nn.Module = on_meta_device(lambda: self.config.build(self.field.width)).to_empty(device="cpu")
        model.load_state_dict(self.encoder_tensors)
        return model.eval()

    @property
    def encoder_tensors(self) -> dict[str, Tensor]:
        """Tensors of the encoder alone, without those a task has added for its marks."""
        kept = (name for name in self.tensors if name.startswith(PREFIX) and name != MARKS)
        return {name.removeprefix(PREFIX): self.tensors[name] for name in kept}

    @property
    def pretraining_heads(self) -> tuple[str, ...]:
        """Names of the heads that a pretraining continues with; none without a masked-language-model head."""
        return tuple(bert.PRETRAINED) if bert.MASKED_LM.keys() <= self.tensors.keys() else ()

    def save(self, folder: Path) -> None:
        """Write an encoder folder, with BERT's pooler if there is one, without other heads."""
        kept = {name: tensor for name, tensor in self.tensors.items() if name.startswith((PREFIX, POOLER))}

        def fill(partial: Path) -> None:
            content = {
                "format_version": FORMAT_VERSION,
                "regard_version": __version__,
                "encoder": self.config.model_dump(mode="json"),
                "pooler": any(name.startswith(POOLER) for name in kept),
                "max_length": self.max_length,
            }
            write_json(partial / "config.json", content)
            save_file(kept, partial / WEIGHTS, metadata={"format": "pt"})
            self.tokenizer.save(partial / "tokenizer.json")

        try:
            durable.write_folder(folder, fill)
        except (OSError, SafetensorError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise RunError(f"{folder}: cannot be written ({why}); make room, or choose another") from None


def read_encoder(folder: Path) -> PretrainedEncoder:
    """Read an encoder; CheckpointError or RunError if the folder holds none."""
    if not folder.is_dir():
        raise RunError(f"{folder}: no such folder; give a run, or a BERT from Hugging Face")
    path = folder / "config.json"
    content = read_json(path) if path.is_file() else {}
    if "model_type" in content:
        if content["model_type"] in vit.MODEL_TYPES:
            return from_vit(folder, vit.read(folder))
        return from_bert(folder, bert.read(folder))
    if "encoder" in content:
        return _from_encoder_folder(folder, content)
    return _from_run(folder)


def from_bert(folder: Path, hf_folder: bert.BertFolder) -> PretrainedEncoder:
    return PretrainedEncoder(
        folder,
        hf_folder.config,
        Text(learnt=hf_folder.tokenizer),
        hf_folder.tensors,
        folder / WEIGHTS,
        hf_folder.max_length,
    )


def from_vit(folder: Path, hf_folder: vit.ViTFolder) -> PretrainedEncoder:
    field, weights = hf_folder.field, folder / WEIGHTS
    return PretrainedEncoder(
        folder, hf_folder.config, field, hf_folder.tensors, weights, field.most, field.name
    )


class _EncoderFolder(BaseModel):
    """Content of config.json as `save` writes it."""

    encoder: EncoderConfig
    pooler: bool = False
    max_length: PositiveInt


def _from_encoder_folder(folder: Path, content: dict[str, Any]) -> PretrainedEncoder:
    check_format(folder, content, "encoder")
    path = folder / "config.json"
    try:
        saved = _EncoderFolder.model_validate(content)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"]))
        raise CheckpointError(f"{path}: damaged ({where}: {fault['msg']})") from error
    config, tokenizer = saved.encoder, Tokenizer.load(folder / "tokenizer.json")
    n_positions, needed = max_positions(config), saved.max_length + len(tokenizer.with_special_tokens(()))
    if n_positions is not None and n_positions < needed:
        raise CheckpointError(
            f"{path}: damaged, its encoder has {n_positions} positions, but texts may have {needed} tokens"
        )
    try:
        parts = nn.ModuleDict({"encoder": on_meta_device(lambda: config.build({"vocab": len(tokenizer)}))})
        if saved.pooler:
            parts["pooling"] = on_meta_device(lambda: Pooler(config.d_out))
    except RuntimeError as error:  # sizes whose product is no number of bytes
        raise CheckpointError(f"{path}: damaged, the sizes of its encoder overflow ({error})") from error
    check_size(folder / WEIGHTS, parts)
    load_weights(folder / WEIGHTS, parts.to_empty(device="cpu"))
    field = Text(learnt=tokenizer)
    return PretrainedEncoder(folder, config, field, parts.state_dict(), folder / WEIGHTS, saved.max_length)


def _from_run(folder: Path) -> PretrainedEncoder:
    task: Any
    task, task_config, model, config, _ = load_model(folder)
    if not isinstance(config, EncodingConfig):
        raise RunError(f"{folder}: its model ({config}) has no encoder; init_from needs a model with one")
    name, field = next(iter(task.given.items()))
    if isinstance(field, Text):  # texts that are read together share one vocabulary
        name, field = "text", Text(learnt=field.tokenizer)
    inner = folder / "model" if (folder / "model").is_dir() else folder
    tensors, weights = dict(model.state_dict()), inner / WEIGHTS
    return PretrainedEncoder(folder, config.encoder, field, tensors, weights, task_config.max_length, name)
