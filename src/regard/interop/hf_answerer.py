"""A folder that `AutoModelForQuestionAnswering` loads: BERT with a score to begin and one to end."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.interop import hf_bert
from regard.interop.answering import WINDOWS, Side, reading
from regard.interop.bert import ANSWERER, ANSWERS, MAY_BE_NONE
from regard.interop.hf import loaded
from regard.models import Answerer, AnswererConfig
from regard.tasks import Answer


def write(task: Answer, model: Answerer, config: AnswererConfig, folder: Path) -> None:
    encoder = hf_bert.encoder_of(config, "an answerer")
    told = {
        "architectures": [ANSWERER],
        "classifier_dropout": config.dropout,
        "regard_task": task.config.model_dump(mode="json"),
        MAY_BE_NONE: task.may_be_none,
    }
    hf_bert.write(task, model, encoder, folder, ANSWERS, told, _card(task), cuts=False)


def there(folder: Path) -> Side:
    """The folder as transformers loads it, its own tokenizer included."""
    name, model, tokenizer = loaded(folder, "QuestionAnswering")
    told = {name: model.config.regard_task[name] for name in WINDOWS}
    *before, after = tokenizer("")["input_ids"]
    inner = tokenizer.backend_tokenizer
    inner.encode_special_tokens = True  # as its config says: a text that spells a mark is a text
    may_be_none = getattr(model.config, MAY_BE_NONE)
    task = reading({"before": before, "after": after, **told, "may_be_none": may_be_none}, inner)
    return Side(name, task, _Theirs(model))


class _Theirs(nn.Module):
    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self.segments = model.config.type_vocab_size > 1

    def forward(self, tokens_RT: Tensor, lengths_R: Tensor, segments_RT: Tensor) -> tuple[Tensor, Tensor]:
        beyond_RT = torch.arange(tokens_RT.shape[1]) >= lengths_R[:, None]
        told = segments_RT if self.segments else torch.zeros_like(segments_RT)
        found = self.model(tokens_RT, (~beyond_RT).long(), told)
        start_RT, end_RT = (
            scores_RT.masked_fill(beyond_RT, -torch.inf)
            for scores_RT in (found.start_logits, found.end_logits)
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
found = model(**inputs)
print(found.start_logits, found.end_logits)
```

The answer is the span with the largest sum of both, in any window: of at most {task.config.max_answer} pieces
of the context.
"""
