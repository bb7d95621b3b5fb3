"""An encoder that was trained before, with its vocabulary: of a run, of a BERT folder, or on its own.

On its own it lies in a folder like a model's (store.py), whose config.json has an encoder and no task: that
is what `regard import` makes of a BERT without a head that answers.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, PositiveInt, ValidationError
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from regard import __version__, durable
from regard.errors import CheckpointError, RunError
from regard.interop import bert
from regard.interop.tensors import WEIGHTS
from regard.layers.pooling import Pooler
from regard.models import EncoderConfig, EncodingConfig
from regard.models.height import MARKS
from regard.models.outline import positions, unfilled
from regard.runs.store import FORMAT_VERSION, check_format, check_size, load_model, read_json, write_json
from regard.text.tokenizer import Tokenizer
from regard.training.checkpoint import load_weights

PART = "encoder."
POOLER = "pooling.dense."


@dataclass(frozen=True)
class Encoder:
    folder: Path
    config: EncoderConfig
    tokenizer: Tokenizer
    tensors: dict[str, Tensor]
    """By the names of our models: encoder.…, and what comes after it, where there is more."""
    weights: Path
    """The file they are from."""
    max_length: int
    """Pieces of a text; what comes after them is not read."""

    def build(self) -> nn.Module:
        """The module, alone and filled."""
        model: nn.Module = unfilled(lambda: self.config.build(len(self.tokenizer))).to_empty(device="cpu")
        model.load_state_dict(self.own)
        return model.eval()

    @property
    def own(self) -> dict[str, Tensor]:
        """Of the encoder alone, without the marks of a task."""
        kept = (name for name in self.tensors if name.startswith(PART) and name != MARKS)
        return {name.removeprefix(PART): self.tensors[name] for name in kept}

    @property
    def pretrained(self) -> tuple[str, ...]:
        """What stands above it that a pretraining goes on with, if it tells hidden words."""
        return tuple(bert.PRETRAINED) if bert.HIDDEN.keys() <= self.tensors.keys() else ()

    def save(self, folder: Path) -> None:
        """With BERT's pooler, if it has one; without a last map."""
        kept = {name: it for name, it in self.tensors.items() if name.startswith((PART, POOLER))}

        def fill(partial: Path) -> None:
            told = {
                "format_version": FORMAT_VERSION,
                "regard_version": __version__,
                "encoder": self.config.model_dump(mode="json"),
                "pooler": any(name.startswith(POOLER) for name in kept),
                "max_length": self.max_length,
            }
            write_json(partial / "config.json", told)
            save_file(kept, partial / WEIGHTS, metadata={"format": "pt"})
            self.tokenizer.save(partial / "tokenizer.json")

        try:
            durable.write_folder(folder, fill)
        except (OSError, SafetensorError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise RunError(f"{folder}: cannot be written ({why}); make room, or choose another") from None


def read_encoder(folder: Path) -> Encoder:
    """CheckpointError or RunError, in one sentence, for whatever is none."""
    if not folder.is_dir():
        raise RunError(f"{folder}: no such folder; give a run, or a BERT of Hugging Face")
    path = folder / "config.json"
    told = read_json(path) if path.is_file() else {}
    if "model_type" in told:
        return of_bert(folder, bert.read(folder))
    if "encoder" in told:
        return _alone(folder, told)
    return _of_run(folder)


def of_bert(folder: Path, found: bert.Folder) -> Encoder:
    weights = folder / WEIGHTS
    return Encoder(folder, found.config, found.tokenizer, found.tensors, weights, found.max_length)


class _Alone(BaseModel):
    """What `save` tells in config.json."""

    encoder: EncoderConfig
    pooler: bool = False
    max_length: PositiveInt


def _alone(folder: Path, told: dict[str, Any]) -> Encoder:
    check_format(folder, told, "encoder")
    path = folder / "config.json"
    try:
        found = _Alone.model_validate(told)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"]))
        raise CheckpointError(f"{path}: damaged ({where}: {fault['msg']})") from error
    config, tokenizer = found.encoder, Tokenizer.load(folder / "tokenizer.json")
    most, needed = positions(config), found.max_length + len(tokenizer.framed(()))
    if most is not None and most < needed:
        raise CheckpointError(
            f"{path}: damaged, its encoder has {most} positions, but texts may have {needed} pieces and marks"
        )
    try:
        parts = nn.ModuleDict({"encoder": unfilled(lambda: config.build(len(tokenizer)))})
        if found.pooler:
            parts["pooling"] = unfilled(lambda: Pooler(config.d_out))
    except RuntimeError as error:  # sizes whose product is no number of bytes
        raise CheckpointError(f"{path}: damaged, its encoder is beyond any machine ({error})") from error
    check_size(folder / WEIGHTS, parts)
    load_weights(folder / WEIGHTS, parts.to_empty(device="cpu"))
    return Encoder(folder, config, tokenizer, parts.state_dict(), folder / WEIGHTS, found.max_length)


def _of_run(folder: Path) -> Encoder:
    task, task_config, model, config, _ = load_model(folder)
    if not isinstance(config, EncodingConfig):
        raise RunError(f"{folder}: its model ({config}) has no encoder that another could begin with")
    tokenizer, *_ = task.tokenizers.values()  # of every role the same
    inner = folder / "model" if (folder / "model").is_dir() else folder
    tensors, weights = dict(model.state_dict()), inner / WEIGHTS
    return Encoder(folder, config.encoder, tokenizer, tensors, weights, task_config.max_length)
