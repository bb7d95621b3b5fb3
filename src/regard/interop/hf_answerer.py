"""Export to a folder for `AutoModelForQuestionAnswering`: BERT with a start and an end score per token."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.interop import hf_bert
from regard.interop.answer_parity import WINDOWS, AnswerEngine, rebuild_task
from regard.interop.bert import ANSWERER, ANSWERS, MAY_BE_NONE
from regard.interop.hf import load_folder
from regard.layers.inputs import Inputs
from regard.models import Answerer, AnswererConfig
from regard.tasks import Answer


def write(task: Answer, model: Answerer, config: AnswererConfig, folder: Path) -> None:
    encoder = hf_bert.encoder_of(config, "an answerer")
    config_json = {
        "architectures": [ANSWERER],
        "classifier_dropout": config.dropout,
        "regard_task": task.config.model_dump(mode="json"),
        MAY_BE_NONE: task.answer.may_be_none,
    }
    hf_bert.write(task, model, encoder, folder, ANSWERS, config_json, _card(task), truncates=False)


def load_engine(folder: Path) -> AnswerEngine:
    """Load the folder with transformers, including its tokenizer."""
    name, model, tokenizer = load_folder(folder, "QuestionAnswering")
    windows = {name: model.config.regard_task[name] for name in WINDOWS}
    *before, after = tokenizer("")["input_ids"]
    inner = tokenizer.backend_tokenizer
    inner.encode_special_tokens = True  # as its config says: text that spells a special token is text
    may_be_none = getattr(model.config, MAY_BE_NONE)
    task = rebuild_task({"before": before, "after": after, **windows, "may_be_none": may_be_none}, inner)
    return AnswerEngine(name, task, _HFAnswerer(model))


class _HFAnswerer(nn.Module):
    """Their model with the signature of our Answerer."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self.segments = model.config.type_vocab_size > 1

    def forward(self, inputs: Inputs) -> tuple[Tensor, Tensor]:
        ids_RT, segments_RT = inputs["ids"], inputs["segments"]
        beyond_RT = torch.arange(ids_RT.shape[1]) >= inputs["lengths"][:, None]
        type_ids_RT = segments_RT if self.segments else torch.zeros_like(segments_RT)
        output = self.model(ids_RT, (~beyond_RT).long(), type_ids_RT)
        start_RT, end_RT = (
            scores_RT.masked_fill(beyond_RT, -torch.inf)
            for scores_RT in (output.start_logits, output.end_logits)
        )
        return start_RT, end_RT


def _card(task: Answer) -> str:
    return f"""---
library_name: transformers
tags: [question-answering]
---
# An answerer, trained and exported with regard

```python
from transformers import AutoModelForQuestionAnswering, AutoTokenizer

model = AutoModelForQuestionAnswering.from_pretrained(".", local_files_only=True)
tokenizer = AutoTokenizer.from_pretrained(".", local_files_only=True)
windows = {{"stride": {task.config.overlap}, "return_overflowing_tokens": True, "truncation": "only_second"}}
inputs = tokenizer(["your question"], ["your context"], return_tensors="pt", padding=True, **windows)
inputs.pop("overflow_to_sample_mapping")
output = model(**inputs)
print(output.start_logits, output.end_logits)
```

The answer is the span of the context with the largest sum of both logits, in any window, of at most
{task.config.max_answer} tokens.
"""
