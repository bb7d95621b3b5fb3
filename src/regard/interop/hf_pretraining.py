"""A folder that `AutoModelForPreTraining` loads: BERT with its heads for hidden words and for what follows.

It is checked by hiding the piece in the middle of each text: both sides must say the same of all pieces, and
of whether something follows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.interop import hf_bert
from regard.interop.bert import PRETRAINED, PRETRAINING
from regard.interop.hf import loaded
from regard.interop.parity import Answer
from regard.models import BertPretrainingConfig
from regard.tasks import Pretrain
from regard.tasks.task import padded


def write(task: Pretrain, model: nn.Module, config: BertPretrainingConfig, folder: Path) -> None:
    told = {
        "architectures": [PRETRAINING[0]],
        "tie_word_embeddings": True,
        "regard_task": task.config.model_dump(mode="json"),
    }
    hf_bert.write(task, model, config.encoder, folder, PRETRAINED, told, CARD)


CARD = """---
library_name: transformers
tags: [fill-mask]
---
# A BERT, pretrained and exported with regard

```python
from transformers import AutoModelForMaskedLM, AutoTokenizer

model = AutoModelForMaskedLM.from_pretrained(".", local_files_only=True)
tokenizer = AutoTokenizer.from_pretrained(".", local_files_only=True)
```

Text is read without looking for marks in it: put `tokenizer.mask_token_id` where a word is to be found.
"""


@dataclass
class Side:
    """Who tells the piece in the middle of a text."""

    name: str
    pieces: list[str]
    log_probs: Callable[[Sequence[str]], Tensor]
    """Of every piece, then of what follows and what does not."""

    def answer(self, texts: Sequence[str]) -> list[Answer]:
        best = self.log_probs(texts)[:, :-2].argmax(-1).tolist()
        return [Answer(self.pieces[piece], (piece,)) for piece in best]

    def score(self, texts: Sequence[str], answers: Sequence[Answer]) -> list[list[float]]:
        scores: list[list[float]] = self.log_probs(texts).tolist()
        return scores


def here(task: Pretrain, model: nn.Module) -> Side:
    def log_probs(texts: Sequence[str]) -> Tensor:
        cut = (ids[: task.config.max_length] for ids in task.tokenizer.ids(texts))
        framed = [np.array(task.tokenizer.framed(ids)) for ids in cut]
        for tokens in framed:
            tokens[len(tokens) // 2] = task.masking.mask
        tokens_BT, lengths_B = padded(framed), torch.tensor([len(tokens) for tokens in framed])
        at_B = torch.arange(len(framed)) * tokens_BT.shape[1] + lengths_B // 2
        inputs = (tokens_BT, lengths_B, torch.zeros_like(tokens_BT), at_B)
        device = next(model.parameters()).device
        with torch.inference_mode():
            told_BV, scores_B2 = model(*(tensor.to(device) for tensor in inputs))
        return _joined(told_BV.cpu(), scores_B2.cpu())

    return Side("regard", task.tokenizer.names, log_probs)


def there(task: Pretrain, folder: Path) -> Side:
    """The folder as transformers loads it, its own tokenizer included."""
    name, model, tokenizer = loaded(folder, "PreTraining")

    def log_probs(texts: Sequence[str]) -> Tensor:
        found: Any = tokenizer(list(texts), return_tensors="pt", padding=True, truncation=True)
        tokens_BT, keep_BT = found["input_ids"], found["attention_mask"]
        rows_B, middle_B = torch.arange(len(tokens_BT)), keep_BT.sum(1) // 2
        tokens_BT[rows_B, middle_B] = tokenizer.mask_token_id
        with torch.inference_mode():
            told = model(tokens_BT, keep_BT)
        return _joined(told.prediction_logits[rows_B, middle_B], told.seq_relationship_logits)

    return Side(name, task.tokenizer.names, log_probs)


def _joined(told_BV: Tensor, scores_B2: Tensor) -> Tensor:
    return torch.cat([torch.log_softmax(told_BV, -1), torch.log_softmax(scores_B2, -1)], dim=1)
