"""Export to a folder for `AutoModelForTokenClassification`: BERT with one linear map; it has no CRF."""

from pathlib import Path

import torch

from regard.errors import RunError
from regard.interop import hf_bert
from regard.interop.bert import HEADS, TAGGER
from regard.interop.hf import load_folder
from regard.interop.parity import Floats, Ints
from regard.interop.tag_parity import ExportedTagEngine, exported_windows
from regard.models import Tagger, TaggerConfig
from regard.tasks import Tag
from regard.text.tokenizer import SpecialTokens

TAG_HEAD = {ours: theirs for ours, theirs in HEADS.items() if ours.startswith("output.")}


def write(task: Tag, model: Tagger, config: TaggerConfig, folder: Path) -> None:
    encoder = hf_bert.encoder_of(config, "a tagger")
    if config.crf:
        raise RunError(
            f"hf: crf = true has no counterpart in {TAGGER}; train with crf = false, or export to onnx"
        )
    config_json = {
        "architectures": [TAGGER],
        "classifier_dropout": config.dropout,
        **hf_bert.label_maps(task.labels),
        "regard_task": task.config.model_dump(mode="json") | {"split": task.words.split},
    }
    hf_bert.write(task, model, encoder, folder, TAG_HEAD, config_json, CARD, truncates=False)


def load_engine(task: Tag, folder: Path) -> ExportedTagEngine:
    """Load the folder with transformers, including its tokenizer."""
    name, model, tokenizer = load_folder(folder, "TokenClassification")
    *before, after = tokenizer("")["input_ids"]
    special = SpecialTokens(tuple(before), after, tokenizer.unk_token_id, frozenset())

    def word_ids(words: list[str]) -> list[list[int]]:
        ids: list[list[int]] = tokenizer(words, add_special_tokens=False, verbose=False)["input_ids"]
        return ids

    def read(tokens_RT: Ints, lengths_R: Ints) -> Floats:
        tokens, lengths = torch.from_numpy(tokens_RT), torch.from_numpy(lengths_R)
        keep_RT = (torch.arange(tokens.shape[1]) < lengths[:, None]).long()
        with torch.inference_mode():
            scores_RTC: Floats = model(tokens, keep_RT).logits.numpy()
        return scores_RTC

    tags = [model.config.id2label[number] for number in range(model.config.num_labels)]
    windows = exported_windows(tokenizer.backend_tokenizer, special, model.config.regard_task["max_length"])
    return ExportedTagEngine(name, tags, None, windows, task.words, word_ids, read)


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

A word's tag is that of its first token. `truncation` drops the end of a long sentence; regard reads it in
overlapping windows.
"""
