"""Pretrained language models with their vocabulary: from a run, or a GPT-2 from Hugging Face."""

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
class PretrainedDecoder:
    folder: Path
    config: GPTConfig
    tokenizer: Tokenizer
    tensors: dict[str, Tensor]
    weights: Path
    """File of the tensors."""

    @property
    def vocabulary(self) -> Tokenizer:
        """The vocabulary that a training begins with."""
        return self.tokenizer


def read_decoder(folder: Path) -> PretrainedDecoder:
    """Read a language model; CheckpointError or RunError if the folder holds none."""
    if not folder.is_dir():
        raise RunError(f"{folder}: no such folder; give a run, or a GPT-2 from Hugging Face")
    path = folder / "config.json"
    if path.is_file() and "model_type" in read_json(path):
        hf_folder = gpt2.read(folder)
        return PretrainedDecoder(
            folder, hf_folder.config, hf_folder.tokenizer, hf_folder.tensors, folder / WEIGHTS
        )
    task, _, model, config, _ = load_model(folder)
    if not isinstance(config, GPTConfig):
        raise RunError(
            f"{folder}: its model ({config}) is not a language model; init_from needs one for a GPT"
        )
    tokenizer, *_ = task.tokenizers.values()  # input and output share one
    inner = folder / "model" if (folder / "model").is_dir() else folder
    return PretrainedDecoder(folder, config, tokenizer, dict(model.state_dict()), inner / WEIGHTS)
