"""A folder that `AutoModelForSequenceClassification` loads: BERT with its pooler and one map on top.

Only a classifier that is exactly that can leave; transformers has no BERT that pools otherwise.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from regard.data.vocabulary import SPECIALS
from regard.data.wordpiece import NEEDED
from regard.errors import RunError
from regard.export.bert import ACTIVATIONS, ARCHITECTURE, HEADS, MODEL_TYPE, SIZES, WEIGHTS, correspondence
from regard.export.hf import library, quietly, refuse_gaps
from regard.export.parity import Answer
from regard.export.tokens import write_tokenizer
from regard.models import BertConfig, ClassifierConfig
from regard.store import write_json
from regard.tasks import Classify


def write(task: Classify, model: nn.Module, config: ClassifierConfig, folder: Path) -> None:
    encoder = config.encoder
    if not isinstance(encoder, BertConfig):
        raise RunError(
            f"hf: a classifier with a {encoder.kind} encoder has no counterpart in Hugging Face's models; "
            "export to onnx"
        )
    if config.pooling != "pooler":
        raise RunError(
            f"hf: pooling = {config.pooling!r} has no counterpart in {ARCHITECTURE}; train with "
            "pooling = 'pooler', or export to onnx"
        )
    own = {
        name: tensor.detach().to("cpu", torch.float32, copy=True)
        for name, tensor in model.state_dict().items()
    }
    tensors = {f"bert.{theirs}": own[f"encoder.{ours}"] for ours, theirs in correspondence(encoder)}
    tensors |= {_with_prefix(theirs): own[ours] for ours, theirs in HEADS.items()}
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
    write_json(folder / "config.json", _config(task, config, encoder))
    write_json(folder / "tokenizer_config.json", _tokenizer_config(task))
    write_tokenizer(task.tokenizer, folder)
    (folder / "README.md").write_text(CARD, "utf-8")


def _with_prefix(name: str) -> str:
    """The pooler belongs to the BERT, the last map does not."""
    return f"bert.{name}" if name.startswith("pooler.") else name


def _config(task: Classify, config: ClassifierConfig, encoder: BertConfig) -> dict[str, Any]:
    activation = next(theirs for theirs, ours in ACTIVATIONS.items() if ours == encoder.activation)
    return {
        "model_type": MODEL_TYPE,
        "architectures": [ARCHITECTURE],
        "vocab_size": task.dims.source_vocab,
        **{theirs: getattr(encoder, ours) for ours, theirs in SIZES.items()},
        "hidden_act": activation,
        "layer_norm_eps": encoder.norm_eps,
        "hidden_dropout_prob": encoder.dropout,
        "attention_probs_dropout_prob": encoder.attention_dropout,
        "classifier_dropout": config.dropout,
        "pad_token_id": _marks(task)["pad_token"][1],
        "problem_type": "single_label_classification",
        "id2label": {str(number): label for number, label in enumerate(task.labels)},
        "label2id": {label: number for number, label in enumerate(task.labels)},
        "torch_dtype": "float32",
        "regard_task": task.config.model_dump(mode="json"),
    }


def _tokenizer_config(task: Classify) -> dict[str, Any]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **{name: piece for name, (piece, _) in _marks(task).items()},
        "model_max_length": task.config.max_length + len(task.tokenizer.framed(())),
        "padding_side": "right",
        "truncation_side": "right",
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": True,  # no text may end its own sentence
    }


def _marks(task: Classify) -> dict[str, tuple[str, int]]:
    """What transformers calls each mark; the piece and its number."""
    berts = bool(task.tokenizer.marks.begin)
    names = ("pad_token", "unk_token", "cls_token", "sep_token") if berts else HERE
    numbers = {piece: number for number, piece in enumerate(task.tokenizer.names)}
    return {
        name: (piece, numbers[piece])
        for name, piece in zip(names, NEEDED if berts else SPECIALS, strict=True)
    }


HERE = ("pad_token", "unk_token", "bos_token", "eos_token")
CARD = """---
library_name: transformers
tags: [text-classification]
---
# A classifier, trained and exported with regard

```python
from transformers import AutoModelForSequenceClassification, AutoTokenizer

model = AutoModelForSequenceClassification.from_pretrained(".", local_files_only=True)
tokenizer = AutoTokenizer.from_pretrained(".", local_files_only=True)
inputs = tokenizer(["your text"], return_tensors="pt", padding=True, truncation=True)
best = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"]).logits.argmax(-1)
print([model.config.id2label[i] for i in best.tolist()])
```
"""


class Engine:
    """The folder as transformers loads it, its own tokenizer included."""

    def __init__(self, folder: Path) -> None:
        transformers = library()
        self.name = f"transformers {transformers.__version__}"
        with quietly(transformers):
            self.model, loading = transformers.AutoModelForSequenceClassification.from_pretrained(
                folder, local_files_only=True, dtype=torch.float32, output_loading_info=True
            )
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        refuse_gaps(loading)

    def answer(self, texts: Sequence[str]) -> list[Answer]:
        best = self._log_probs(texts).argmax(-1).tolist()
        return [Answer(self.model.config.id2label[index], (index,)) for index in best]

    def score(self, texts: Sequence[str], answers: Sequence[Answer]) -> list[list[float]]:
        scores: list[list[float]] = self._log_probs(texts).tolist()
        return scores

    def _log_probs(self, texts: Sequence[str]) -> Tensor:
        found = self.tokenizer(list(texts), return_tensors="pt", padding=True, truncation=True)
        with torch.inference_mode():
            logits_BC = self.model(found["input_ids"], found["attention_mask"]).logits
        return torch.log_softmax(logits_BC, dim=-1)
