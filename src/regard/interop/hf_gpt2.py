"""A folder that `AutoModelForCausalLM` loads: GPT-2, with its own vocabulary or one of ours."""

from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from regard.errors import RunError
from regard.interop.bert import ACTIVATIONS
from regard.interop.gpt2 import ARCHITECTURE, MODEL_TYPE, OUTPUT, SIZES, correspondence
from regard.interop.hf_bert import HERE
from regard.interop.plain import written_out
from regard.interop.searching import for_generate
from regard.interop.tensors import WEIGHTS
from regard.interop.tokens import write_prompter
from regard.models import GPT, GPTConfig
from regard.runs.store import write_json
from regard.tasks import LanguageModel
from regard.text.tokenizer import EOS, Tokenizer
from regard.text.vocabulary import SPECIALS


def write(task: LanguageModel, model: GPT, config: GPTConfig, folder: Path) -> None:
    _refuse_unlike(config)
    own, plain = written_out(model, config)
    tensors = {_with_prefix(match.theirs): match.to_foreign(own) for match in correspondence(plain)}
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
    write_json(folder / "config.json", _config(task, plain))
    write_json(folder / "generation_config.json", _generation(task))
    write_json(folder / "tokenizer_config.json", _tokenizer_config(task))
    write_prompter(task.tokenizer, folder, begins=task.config.documents != "files")
    (folder / "README.md").write_text(CARD, "utf-8")


def _refuse_unlike(config: GPTConfig) -> None:
    told = {"position": config.position, "norm": config.norm, "activation": config.activation}
    known = {"position": ("learned",), "norm": ("pre",), "activation": tuple(ACTIVATIONS.values())}
    for name, value in told.items():
        if value not in known[name]:
            usual = GPTConfig.model_fields[name].default
            raise RunError(
                f"hf: {name} = {value!r} has no counterpart in {ARCHITECTURE}; train with {name} = {usual!r}"
            )


def _with_prefix(name: str) -> str:
    return name if name == OUTPUT else f"transformer.{name}"


def _ids(tokenizer: Tokenizer) -> dict[str, int]:
    """What transformers calls the marks, by number; a text begins where another has ended."""
    numbers = {piece: number for number, piece in enumerate(tokenizer.names)}
    end = tokenizer.marks.end
    pad = numbers[_marks(tokenizer)["pad_token"]]
    return {"bos_token_id": end, "eos_token_id": end, "pad_token_id": pad}


def _marks(tokenizer: Tokenizer) -> dict[str, str]:
    end = tokenizer.names[tokenizer.marks.end]
    if end == SPECIALS[EOS]:
        return dict(zip(HERE, SPECIALS, strict=True)) | {"bos_token": end}
    return dict.fromkeys(HERE, end)


def _config(task: LanguageModel, config: GPTConfig) -> dict[str, Any]:
    activation = next(theirs for theirs, ours in ACTIVATIONS.items() if ours == config.activation)
    return {
        "model_type": MODEL_TYPE,
        "architectures": [ARCHITECTURE],
        "vocab_size": len(task.tokenizer),
        **{theirs: getattr(config, ours) for ours, theirs in SIZES.items()},
        "n_inner": config.d_ff,
        "activation_function": activation,
        "layer_norm_epsilon": config.norm_eps,
        "tie_word_embeddings": config.tie_embeddings,
        "resid_pdrop": config.dropout,
        "embd_pdrop": config.dropout,
        "attn_pdrop": config.attention_dropout,
        **_ids(task.tokenizer),
        "torch_dtype": "float32",
        "regard_task": task.config.model_dump(mode="json"),
    }


def _generation(task: LanguageModel) -> dict[str, Any]:
    """The run's way to continue; lengths are counted without the prompt on both sides."""
    decode = task.config.decode
    never = list(task.tokenizer.marks.unwritten)
    return {
        **_ids(task.tokenizer),
        **for_generate(decode, prompted=True),
        **({"suppress_tokens": never} if never else {}),
        "max_new_tokens": decode.max_length or max(task.block, decode.min_length),
    }


def _tokenizer_config(task: LanguageModel) -> dict[str, Any]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **_marks(task.tokenizer),
        "model_max_length": task.block,
        "padding_side": "left",
        "truncation_side": "left",
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": True,  # no text may end its own document
    }


CARD = """---
library_name: transformers
tags: [text-generation]
---
# A language model, trained and exported with regard

```python
from transformers import AutoModelForCausalLM, AutoTokenizer

model = AutoModelForCausalLM.from_pretrained(".", local_files_only=True)
tokenizer = AutoTokenizer.from_pretrained(".", local_files_only=True)
inputs = tokenizer(["Once upon a time"], return_tensors="pt", padding=True)
found = model.generate(inputs["input_ids"], attention_mask=inputs["attention_mask"], do_sample=False)
print(tokenizer.batch_decode(found, skip_special_tokens=True))
```

A prompt of less than two pieces is begun with `tokenizer.eos_token_id`, as everything follows an end.
"""
