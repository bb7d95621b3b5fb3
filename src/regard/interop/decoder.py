"""A language model that was trained before, with its vocabulary: of a run, or a GPT-2 of Hugging Face."""

from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from regard.errors import RunError
from regard.interop import gpt2
from regard.interop.tensors import WEIGHTS
from regard.models import GPTConfig
from regard.runs.store import load_model, read_json
from regard.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Decoder:
    folder: Path
    config: GPTConfig
    tokenizer: Tokenizer
    tensors: dict[str, Tensor]
    weights: Path
    """The file they are from."""


def read_decoder(folder: Path) -> Decoder:
    """CheckpointError or RunError, in one sentence, for whatever is none."""
    if not folder.is_dir():
        raise RunError(f"{folder}: no such folder; give a run, or a GPT-2 of Hugging Face")
    path = folder / "config.json"
    if path.is_file() and "model_type" in read_json(path):
        found = gpt2.read(folder)
        return Decoder(folder, found.config, found.tokenizer, found.tensors, folder / WEIGHTS)
    task, _, model, config, _ = load_model(folder)
    if not isinstance(config, GPTConfig):
        raise RunError(f"{folder}: its model ({config}) is no language model that another could begin with")
    tokenizer, *_ = task.tokenizers.values()  # all that it reads and writes has one
    inner = folder / "model" if (folder / "model").is_dir() else folder
    return Decoder(folder, config, tokenizer, dict(model.state_dict()), inner / WEIGHTS)
