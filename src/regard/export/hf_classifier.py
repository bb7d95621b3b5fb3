"""A folder that `AutoModelForSequenceClassification` loads: BERT with its pooler and one map on top.

Only a classifier that is exactly that can leave; transformers has no BERT that pools otherwise.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from regard.errors import RunError
from regard.export import hf_bert
from regard.export.bert import ARCHITECTURE, HEADS
from regard.export.hf import library, quietly, refuse_gaps
from regard.export.parity import Answer
from regard.export.tensors import WEIGHTS
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
    save_file(hf_bert.tensors(model, encoder, HEADS), folder / WEIGHTS, metadata={"format": "pt"})
    write_json(folder / "config.json", _config(task, config, encoder))
    told = hf_bert.tokenizer_config(task.tokenizer, encoder, task.config.max_length)
    write_json(folder / "tokenizer_config.json", told)
    write_tokenizer(task.tokenizer, folder, task.config.max_length)
    (folder / "README.md").write_text(CARD, "utf-8")


def _config(task: Classify, config: ClassifierConfig, encoder: BertConfig) -> dict[str, Any]:
    return hf_bert.config(encoder, task.tokenizer, ARCHITECTURE) | {
        "classifier_dropout": config.dropout,
        "problem_type": "single_label_classification",
        "id2label": {str(number): label for number, label in enumerate(task.labels)},
        "label2id": {label: number for number, label in enumerate(task.labels)},
        "regard_task": task.config.model_dump(mode="json"),
    }


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
