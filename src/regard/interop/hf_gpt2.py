"""Export to a folder for `AutoModelForCausalLM`: GPT-2, with its own vocabulary or one of ours."""

from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from regard.errors import RunError
from regard.interop.bert import ACTIVATIONS
from regard.interop.expanded_weights import expand_weights
from regard.interop.generation_config import for_generate
from regard.interop.gpt2 import ARCHITECTURE, MODEL_TYPE, OUTPUT, SIZES, correspondence
from regard.interop.hf_bert import OUR_SPECIALS
from regard.interop.tensors import WEIGHTS
from regard.interop.tokens import write_prompt_tokenizer
from regard.models import GPT, GPTConfig
from regard.runs.store import write_json
from regard.tasks import LanguageModel
from regard.text.tokenizer import EOS, Tokenizer
from regard.text.vocabulary import SPECIALS


def write(task: LanguageModel, model: GPT, config: GPTConfig, folder: Path) -> None:
    _require_gpt2(config)
    weights, expanded = expand_weights(model, config)
    tensors = {_with_prefix(match.theirs): match.to_theirs(weights) for match in correspondence(expanded)}
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
    write_json(folder / "config.json", _config(task, expanded))
    write_json(folder / "generation_config.json", _generation(task))
    write_json(folder / "tokenizer_config.json", _tokenizer_config(task))
    write_prompt_tokenizer(task.tokenizer, folder, starts_documents=task.config.documents != "files")
    (folder / "README.md").write_text(CARD, "utf-8")


def _require_gpt2(config: GPTConfig) -> None:
    """Raise RunError for a setting that GPT-2 does not have."""
    settings = {"position": config.position, "norm": config.norm, "activation": config.activation}
    supported = {"position": ("learned",), "norm": ("pre",), "activation": tuple(ACTIVATIONS.values())}
    for name, value in settings.items():
        if value not in supported[name]:
            default = GPTConfig.model_fields[name].default
            raise RunError(
                f"hf: {name} = {value!r} has no counterpart in {ARCHITECTURE}; "
                f"train with {name} = {default!r}"
            )


def _with_prefix(name: str) -> str:
    return name if name == OUTPUT else f"transformer.{name}"


def _ids(tokenizer: Tokenizer) -> dict[str, int]:
    """Ids of the special tokens by transformers' names; EOS serves as BOS, as a text follows another."""
    ids = {token: number for number, token in enumerate(tokenizer.names)}
    end = tokenizer.special.end
    pad = ids[_special_tokens(tokenizer)["pad_token"]]
    return {"bos_token_id": end, "eos_token_id": end, "pad_token_id": pad}


def _special_tokens(tokenizer: Tokenizer) -> dict[str, str]:
    end = tokenizer.names[tokenizer.special.end]
    if end == SPECIALS[EOS]:
        return dict(zip(OUR_SPECIALS, SPECIALS, strict=True)) | {"bos_token": end}
    return dict.fromkeys(OUR_SPECIALS, end)


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
    """Content of generation_config.json; on both sides, lengths do not count the prompt."""
    decode = task.config.decode
    suppressed = list(task.tokenizer.special.not_generated)
    return {
        **_ids(task.tokenizer),
        **for_generate(decode, prompted=True),
        **({"suppress_tokens": suppressed} if suppressed else {}),
        "max_new_tokens": decode.max_length or max(task.block, decode.min_length),
    }


def _tokenizer_config(task: LanguageModel) -> dict[str, Any]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **_special_tokens(task.tokenizer),
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
output = model.generate(inputs["input_ids"], attention_mask=inputs["attention_mask"], do_sample=False)
print(tokenizer.batch_decode(output, skip_special_tokens=True))
```

Put `tokenizer.eos_token_id` before a prompt of fewer than two tokens: in training, every text follows an EOS.
"""
