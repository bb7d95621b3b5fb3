"""Export to a folder for AutoModelForSeq2SeqLM and AutoTokenizer; only the check needs `regard[hf]`."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import save_file

from regard.errors import RunError
from regard.interop.equivalents import ACTIVATIONS, Equivalent, find_equivalent, to_theirs
from regard.interop.expanded_weights import expand_weights
from regard.interop.generation_config import GREEDY, for_generate, max_answer_tokens
from regard.interop.parity import Answer
from regard.interop.tokens import TARGET, write_tokenizers
from regard.interop.translation_parity import Search
from regard.models import Transformer, TransformerConfig
from regard.runs.store import write_json
from regard.tasks.seq2seq import Seq2Seq
from regard.tasks.writer import NEVER_WRITTEN
from regard.text.tokenizer import BOS, EOS, PAD
from regard.text.vocabulary import SPECIALS

IDS = {"pad_token_id": PAD, "bos_token_id": BOS, "eos_token_id": EOS, "decoder_start_token_id": BOS}
CARD_NAMES = {
    "translate": ("translation", "A translator"),
    "summarize": ("summarization", "A model that summarises"),
}
"""Tag and title of the model card, by task."""


def write(task: Seq2Seq[Any], model: Transformer, config: TransformerConfig, folder: Path) -> None:
    equivalent = find_equivalent(config, task.widths)
    weights, expanded = expand_weights(model, config)
    tensors = to_theirs(weights, expanded, task.widths)
    tensors["final_logits_bias"] = torch.zeros(1, task.widths.target["vocab"])
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    write_json(folder / "config.json", _config(equivalent, task, expanded))
    write_json(folder / "generation_config.json", _generation(task))
    write_tokenizers(task, folder)
    for directory in (folder, folder / TARGET):
        if directory.is_dir():
            write_json(directory / "tokenizer_config.json", _tokenizer_config(task))
    (folder / "README.md").write_text(_card(task), "utf-8")


def _config(equivalent: Equivalent, task: Seq2Seq[Any], config: TransformerConfig) -> dict[str, Any]:
    sides = {
        f"{side}_{name}": value
        for side, n_layers in (("encoder", config.n_encoder_layers), ("decoder", config.n_decoder_layers))
        for name, value in (
            ("layers", n_layers),
            ("attention_heads", config.n_heads),
            ("ffn_dim", config.d_ff),
        )
    }
    separate = {
        "decoder_vocab_size": task.widths.target["vocab"],
        "share_encoder_decoder_embeddings": task.widths.shared and config.tie_embeddings,
    }
    learned = config.position == "learned"
    return {
        "model_type": equivalent.model_type,
        "architectures": [equivalent.architecture],
        "is_encoder_decoder": True,
        "vocab_size": task.widths.input["vocab"],
        "d_model": config.d_model,
        **sides,
        **(separate if equivalent.separate else {}),
        "max_position_embeddings": config.max_positions if learned else task.config.max_length + 1,
        "activation_function": ACTIVATIONS[config.activation],
        "scale_embedding": True,
        "tie_word_embeddings": config.tie_embeddings,
        "dropout": config.dropout,
        "activation_dropout": config.inner_dropout,
        "attention_dropout": config.attention_dropout,
        **IDS,
        "forced_eos_token_id": EOS,
        "torch_dtype": "float32",
        "regard_task": task.config.model_dump(mode="json"),
    }


def _generation(task: Seq2Seq[Any]) -> dict[str, Any]:
    return {
        **IDS,
        "forced_eos_token_id": EOS,
        **for_generate(task.config.decode, prompted=False),
        "suppress_tokens": list(NEVER_WRITTEN),
        "max_length": max_answer_tokens(task) + 1,
    }


def _tokenizer_config(task: Seq2Seq[Any]) -> dict[str, Any]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **dict(zip(("pad_token", "unk_token", "bos_token", "eos_token"), SPECIALS, strict=True)),
        "model_max_length": task.config.max_length + 1,
        "padding_side": "right",
        "truncation_side": "right",
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": True,  # no text may end its own sentence
    }


def _card(task: Seq2Seq[Any]) -> str:
    target = (
        "tokenizer" if task.config.joint else f'AutoTokenizer.from_pretrained(folder, subfolder="{TARGET}")'
    )
    return f"""---
library_name: transformers
tags: [{CARD_NAMES[task.kind][0]}]
---
# {CARD_NAMES[task.kind][1]}, trained and exported with regard

```python
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

folder = "."
model = AutoModelForSeq2SeqLM.from_pretrained(folder, local_files_only=True)
tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
target = {target}
inputs = tokenizer(["your text"], return_tensors="pt", padding=True, truncation=True)
print(target.batch_decode(model.generate(**inputs), skip_special_tokens=True))
```
"""


class HFTranslationEngine:
    """The exported folder as transformers loads it, including its tokenizers."""

    def __init__(self, folder: Path, task: Seq2Seq[Any], search: Search) -> None:
        self.name, self.model, self.source = load_folder(folder, "Seq2SeqLM")
        self.beam, self.max_tokens = search
        self.target = self.source
        if not task.config.joint:
            transformers = import_transformers()
            with quietly(transformers):
                self.target = transformers.AutoTokenizer.from_pretrained(
                    folder / TARGET, local_files_only=True
                )

    def answer(self, texts: Sequence[str]) -> list[Answer]:
        settings = GREEDY | {"num_beams": self.beam, "length_penalty": 0.0 if self.beam > 1 else 1.0}
        with torch.inference_mode(), quietly(import_transformers()):
            sequences_BT = self.model.generate(
                **self._encode(texts), **settings, max_length=None, max_new_tokens=self.max_tokens
            )
        outputs = [tuple(_until_end(row[1:])) for row in sequences_BT.tolist()]
        decoded = self.target.batch_decode([list(ids) for ids in outputs], skip_special_tokens=True)
        return [
            Answer(text, ids, truncated=len(ids) + 1 >= self.max_tokens)
            for text, ids in zip(decoded, outputs, strict=True)
        ]

    def score(self, texts: Sequence[str], answers: Sequence[Answer]) -> list[list[float]]:
        rows = [torch.tensor((BOS, *answer.ids, EOS)) for answer in answers]
        forced_BT = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)
        with torch.inference_mode():
            logits_BTV = self.model(**self._encode(texts), decoder_input_ids=forced_BT[:, :-1]).logits
        log_probs_BT = torch.log_softmax(logits_BTV, dim=-1).gather(2, forced_BT[:, 1:, None]).squeeze(2)
        scores = zip(log_probs_BT.tolist(), answers, strict=True)
        return [row[: len(answer.ids) + 1] for row, answer in scores]

    def _encode(self, texts: Sequence[str]) -> dict[str, Any]:
        encoding = self.source(list(texts), return_tensors="pt", padding=True, truncation=True)
        return {name: encoding[name] for name in ("input_ids", "attention_mask")}


class LoadedFolder(NamedTuple):
    name: str
    model: Any
    tokenizer: Any


def load_folder(folder: Path, head: str) -> LoadedFolder:
    """Load a folder with `AutoModelFor{head}` and its own tokenizer; RunError if a tensor is missing."""
    name, model = load_model(folder, head)
    transformers = import_transformers()
    with quietly(transformers):
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    return LoadedFolder(name, model, tokenizer)


def load_model(folder: Path, head: str) -> tuple[str, Any]:
    """Return the library's name and a folder's `AutoModelFor{head}`; RunError if a tensor is missing."""
    transformers = import_transformers()
    with quietly(transformers):
        model, loading = getattr(transformers, f"AutoModelFor{head}").from_pretrained(
            folder, local_files_only=True, dtype=torch.float32, output_loading_info=True
        )
    _refuse_gaps(loading)
    return f"transformers {transformers.__version__}", model


def import_transformers() -> Any:
    """Import transformers; RunError with the command to install it if it is missing."""
    try:
        import transformers
    except ImportError:
        raise RunError(
            "hf: checking the export needs transformers; install it with: pip install 'regard[hf]'"
        ) from None
    return transformers


def _refuse_gaps(loading: dict[str, Any]) -> None:
    """Raise RunError if transformers reports missing or unexpected tensors."""
    if gaps := [f"{kind}: {key}" for kind, keys in loading.items() for key in keys if not _is_computed(key)]:
        raise RunError(
            f"hf: transformers does not find the tensors that it expects ({gaps[0]}); please report it"
        )


def _is_computed(key: str) -> bool:
    """True if it is a table of sinusoids, computed when the model is built; wrong answers would expose it."""
    return key.endswith("embed_positions.weight")


def _until_end(ids: Sequence[int]) -> Sequence[int]:
    return ids[: ids.index(EOS)] if EOS in ids else ids


@contextmanager
def quietly(transformers: Any) -> Iterator[None]:
    """Silence the library's progress bars and warnings."""
    logging = transformers.utils.logging
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        logging.enable_progress_bar()
