"""Export to a folder for `AutoModelForSequenceClassification`: BERT with its pooler and one linear map.

Other classifiers are refused; transformers has no BERT that pools in another way. The classifier may read one
text or two, and predict one label or several.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard.errors import RunError
from regard.files.row import Asked
from regard.interop import hf_bert
from regard.interop.bert import CLASSIFIER, HEADS, ONE_LABEL, SEVERAL_LABELS
from regard.interop.hf import load_folder
from regard.interop.label_parity import LabelEngine
from regard.interop.parity import Floats
from regard.models import ClassifierConfig
from regard.tasks import Classify, Multilabel


def write(task: Classify | Multilabel, model: nn.Module, config: ClassifierConfig, folder: Path) -> None:
    encoder = hf_bert.encoder_of(config, "a classifier")
    if config.ngrams is not None:
        raise RunError(f"hf: model.ngrams has no counterpart in {CLASSIFIER}; export to onnx")
    if config.pooling != "pooler":
        raise RunError(
            f"hf: pooling = {config.pooling!r} has no counterpart in {CLASSIFIER}; train with "
            "pooling = 'pooler', or export to onnx"
        )
    config_json = {
        "architectures": [CLASSIFIER],
        "classifier_dropout": config.dropout,
        "problem_type": SEVERAL_LABELS if isinstance(task, Multilabel) else ONE_LABEL,
        **hf_bert.label_maps(task.labels),
        "regard_task": task.config.model_dump(mode="json"),
    }
    hf_bert.write(task, model, encoder, folder, HEADS, config_json, _card(task))


def load_engine(folder: Path) -> LabelEngine[Any]:
    """Load the folder with transformers, including its tokenizer."""
    name, model, tokenizer = load_folder(folder, "SequenceClassification")

    def logits(inputs: Sequence[Asked]) -> Floats:
        texts = [(text,) if isinstance(text, str) else (text["text"], text["second"]) for text in inputs]
        columns = [list(column) for column in zip(*texts, strict=True)]
        encoding = tokenizer(*columns, return_tensors="pt", padding=True, truncation=True)
        with torch.inference_mode():
            logits_BC: Floats = model(**encoding).logits.numpy()
        return logits_BC

    labels = [model.config.id2label[number] for number in range(model.config.num_labels)]
    return LabelEngine(name, labels, model.config.regard_task.get("threshold"), logits)


def _card(task: Classify | Multilabel) -> str:
    texts = ", ".join(f'["your {role}"]' for role in task.inputs)
    return f"""---
library_name: transformers
tags: [text-classification]
---
# A classifier, trained and exported with regard

```python
from transformers import AutoModelForSequenceClassification, AutoTokenizer

model = AutoModelForSequenceClassification.from_pretrained(".", local_files_only=True)
tokenizer = AutoTokenizer.from_pretrained(".", local_files_only=True)
inputs = tokenizer({texts}, return_tensors="pt", padding=True, truncation=True)
{SEVERAL if isinstance(task, Multilabel) else ONE}
```
"""


ONE = """best = model(**inputs).logits.argmax(-1).tolist()
print([model.config.id2label[number] for number in best])"""
SEVERAL = """likely = model(**inputs).logits.sigmoid() >= model.config.regard_task["threshold"]
print([[model.config.id2label[number] for number in row.nonzero().flatten().tolist()] for row in likely])"""
