"""A folder that `AutoModelForSequenceClassification` loads: BERT with its pooler and one map on top.

Only a classifier that is exactly that can leave; transformers has no BERT that pools otherwise. It may read
one text or two, and give one label or several.
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
from regard.interop.hf import loaded
from regard.interop.labelling import Side
from regard.interop.parity import Floats
from regard.models import ClassifierConfig
from regard.tasks import Classify, Multilabel


def write(task: Classify | Multilabel, model: nn.Module, config: ClassifierConfig, folder: Path) -> None:
    encoder = hf_bert.encoder_of(config, "a classifier")
    if config.pooling != "pooler":
        raise RunError(
            f"hf: pooling = {config.pooling!r} has no counterpart in {CLASSIFIER}; train with "
            "pooling = 'pooler', or export to onnx"
        )
    told = {
        "architectures": [CLASSIFIER],
        "classifier_dropout": config.dropout,
        "problem_type": SEVERAL_LABELS if isinstance(task, Multilabel) else ONE_LABEL,
        **hf_bert.named_labels(task.labels),
        "regard_task": task.config.model_dump(mode="json"),
    }
    hf_bert.write(task, model, encoder, folder, HEADS, told, _card(task))


def there(folder: Path) -> Side[Any]:
    """The folder as transformers loads it, its own tokenizer included."""
    name, model, tokenizer = loaded(folder, "SequenceClassification")

    def logits(asked: Sequence[Asked]) -> Floats:
        texts = [(one,) if isinstance(one, str) else (one["text"], one["second"]) for one in asked]
        columns = [list(column) for column in zip(*texts, strict=True)]
        given = tokenizer(*columns, return_tensors="pt", padding=True, truncation=True)
        with torch.inference_mode():
            found: Floats = model(**given).logits.numpy()
        return found

    labels = [model.config.id2label[number] for number in range(model.config.num_labels)]
    return Side(name, labels, model.config.regard_task.get("threshold"), logits)


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
SEVERAL = """given = model(**inputs).logits.sigmoid() >= model.config.regard_task["threshold"]
print([[model.config.id2label[number] for number in row.nonzero().flatten().tolist()] for row in given])"""
