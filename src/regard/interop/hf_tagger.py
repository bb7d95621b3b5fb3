"""A folder that `AutoModelForTokenClassification` loads: BERT with one map on top. It has no CRF."""

from pathlib import Path

import torch

from regard.errors import RunError
from regard.interop import hf_bert
from regard.interop.bert import HEADS, TAGGER
from regard.interop.hf import loaded
from regard.interop.parity import Floats, Ints
from regard.interop.tagging import There
from regard.models import Tagger, TaggerConfig
from regard.tasks import Tag
from regard.text.tokenizer import Marks

OWN_HEADS = {ours: theirs for ours, theirs in HEADS.items() if ours.startswith("output.")}


def write(task: Tag, model: Tagger, config: TaggerConfig, folder: Path) -> None:
    encoder = hf_bert.encoder_of(config, "a tagger")
    if config.crf:
        raise RunError(
            f"hf: crf = true has no counterpart in {TAGGER}; train with crf = false, or export to onnx"
        )
    told = {
        "architectures": [TAGGER],
        "classifier_dropout": config.dropout,
        **hf_bert.named_labels(task.names),
        "regard_task": task.config.model_dump(mode="json") | {"split": task.split},
    }
    hf_bert.write(task, model, encoder, folder, OWN_HEADS, told, CARD, cuts=False)


def there(task: Tag, folder: Path) -> There:
    """The folder as transformers loads it, its own tokenizer included."""
    name, model, tokenizer = loaded(folder, "TokenClassification")
    *before, after = tokenizer("")["input_ids"]
    marks = Marks(tuple(before), after, tokenizer.unk_token_id, frozenset())

    def pieces(words: list[str]) -> list[list[int]]:
        found: list[list[int]] = tokenizer(words, add_special_tokens=False, verbose=False)["input_ids"]
        return found

    def read(tokens_RT: Ints, lengths_R: Ints) -> Floats:
        tokens, lengths = torch.from_numpy(tokens_RT), torch.from_numpy(lengths_R)
        keep_RT = (torch.arange(tokens.shape[1]) < lengths[:, None]).long()
        with torch.inference_mode():
            scores_RTC: Floats = model(tokens, keep_RT).logits.numpy()
        return scores_RTC

    tags = [model.config.id2label[number] for number in range(model.config.num_labels)]
    most = model.config.regard_task["max_length"]
    return There(name, tags, None, marks, most, task.words, pieces, read)


CARD = """---
library_name: transformers
tags: [token-classification]
---
# A tagger, trained and exported with regard

```python
from transformers import AutoModelForTokenClassification, AutoTokenizer

model = AutoModelForTokenClassification.from_pretrained(".", local_files_only=True)
tokenizer = AutoTokenizer.from_pretrained(".", local_files_only=True)
words = ["your", "words"]
inputs = tokenizer(words, is_split_into_words=True, return_tensors="pt", truncation=True)
tags = model(**inputs).logits[0].argmax(-1).tolist()
of_words = inputs.word_ids()
print([(word, model.config.id2label[tags[of_words.index(n)]]) for n, word in enumerate(words)])
```

A word is its first piece. `truncation` leaves out what is too long; regard reads it in overlapping windows.
"""
