"""Export to a folder for `AutoModelForPreTraining`: BERT with its masked-word and next-sentence heads.

The parity check masks the token in the middle of each text and compares both heads' log-probabilities.
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
from regard.interop.hf import load_folder
from regard.interop.parity import Answer
from regard.layers.inputs import tokens
from regard.models import BertPretrainingConfig
from regard.tasks import Pretrain
from regard.tasks.shared import moved
from regard.tasks.task import padded


def write(task: Pretrain, model: nn.Module, config: BertPretrainingConfig, folder: Path) -> None:
    config_json = {
        "architectures": [PRETRAINING[0]],
        "tie_word_embeddings": True,
        "regard_task": task.config.model_dump(mode="json"),
    }
    hf_bert.write(task, model, config.encoder, folder, PRETRAINED, config_json, CARD)


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

Special tokens in a text are read as text, so put `tokenizer.mask_token_id` where a word is to be predicted.
"""


@dataclass
class MaskedWordEngine:
    """Either side as a parity engine: it predicts the token in the middle of a text."""

    name: str
    vocabulary: list[str]
    log_probs: Callable[[Sequence[str]], Tensor]
    """Log-probabilities of every token, then of both next-sentence classes."""

    def answer(self, texts: Sequence[str]) -> list[Answer]:
        best = self.log_probs(texts)[:, :-2].argmax(-1).tolist()
        return [Answer(self.vocabulary[token], (token,)) for token in best]

    def score(self, texts: Sequence[str], answers: Sequence[Answer]) -> list[list[float]]:
        scores: list[list[float]] = self.log_probs(texts).tolist()
        return scores


def our_engine(task: Pretrain, model: nn.Module) -> MaskedWordEngine:
    """Our BERT as a parity engine."""

    def log_probs(texts: Sequence[str]) -> Tensor:
        truncated = (ids[: task.config.max_length] for ids in task.tokenizer.ids(texts))
        framed = [np.array(task.tokenizer.with_special_tokens(ids)) for ids in truncated]
        for ids in framed:
            ids[len(ids) // 2] = task.input.blank
        ids_BT, lengths_B = padded(framed), torch.tensor([len(ids) for ids in framed])
        at_B = torch.arange(len(framed)) * ids_BT.shape[1] + lengths_B // 2
        inputs = {**tokens(ids_BT, lengths_B, torch.zeros_like(ids_BT)), "places": at_B[:, None]}
        device = next(model.parameters()).device
        with torch.inference_mode():
            words_BV, next_B2 = model(moved(inputs, device))
        return _log_probs(words_BV.cpu(), next_B2.cpu())

    return MaskedWordEngine("regard", task.tokenizer.names, log_probs)


def load_engine(task: Pretrain, folder: Path) -> MaskedWordEngine:
    """Load the folder with transformers, including its tokenizer."""
    name, model, tokenizer = load_folder(folder, "PreTraining")

    def log_probs(texts: Sequence[str]) -> Tensor:
        encoding: Any = tokenizer(list(texts), return_tensors="pt", padding=True, truncation=True)
        tokens_BT, keep_BT = encoding["input_ids"], encoding["attention_mask"]
        rows_B, middle_B = torch.arange(len(tokens_BT)), keep_BT.sum(1) // 2
        tokens_BT[rows_B, middle_B] = tokenizer.mask_token_id
        with torch.inference_mode():
            output = model(tokens_BT, keep_BT)
        return _log_probs(output.prediction_logits[rows_B, middle_B], output.seq_relationship_logits)

    return MaskedWordEngine(name, task.tokenizer.names, log_probs)


def _log_probs(words_BV: Tensor, next_B2: Tensor) -> Tensor:
    return torch.cat([torch.log_softmax(words_BV, -1), torch.log_softmax(next_B2, -1)], dim=1)
