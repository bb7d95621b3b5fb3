"""A folder that AutoModelForSeq2SeqLM and AutoTokenizer load; only the check needs them (`regard[hf]`)."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import save_file

from regard.errors import RunError
from regard.interop.here import Search
from regard.interop.parity import Answer
from regard.interop.plain import written_out
from regard.interop.searching import PLAINLY, for_generate, longest
from regard.interop.tokens import TARGET, write_tokenizers
from regard.interop.twins import ACTIVATIONS, Twin, to_foreign, twin_of
from regard.models import Transformer, TransformerConfig
from regard.runs.store import write_json
from regard.tasks.seq2seq import Seq2Seq
from regard.tasks.writer import NEVER_WRITTEN
from regard.text.tokenizer import BOS, EOS, PAD
from regard.text.vocabulary import SPECIALS

IDS = {"pad_token_id": PAD, "bos_token_id": BOS, "eos_token_id": EOS, "decoder_start_token_id": BOS}
KINDS = {
    "translate": ("translation", "A translator"),
    "summarize": ("summarization", "A model that summarises"),
}
"""What a card calls them."""


def write(task: Seq2Seq[Any], model: Transformer, config: TransformerConfig, folder: Path) -> None:
    twin = twin_of(config, task.dims)
    own, plain = written_out(model, config)
    tensors = to_foreign(own, plain, task.dims)
    tensors["final_logits_bias"] = torch.zeros(1, task.dims.target_vocab)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    write_json(folder / "config.json", _config(twin, task, plain))
    write_json(folder / "generation_config.json", _generation(task))
    write_tokenizers(task, folder)
    for place in (folder, folder / TARGET):
        if place.is_dir():
            write_json(place / "tokenizer_config.json", _tokenizer_config(task))
    (folder / "README.md").write_text(_card(task), "utf-8")


def _config(twin: Twin, task: Seq2Seq[Any], config: TransformerConfig) -> dict[str, Any]:
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
        "decoder_vocab_size": task.dims.target_vocab,
        "share_encoder_decoder_embeddings": task.dims.joint and config.tie_embeddings,
    }
    learned = config.position == "learned"
    return {
        "model_type": twin.model_type,
        "architectures": [twin.architecture],
        "is_encoder_decoder": True,
        "vocab_size": task.dims.source_vocab,
        "d_model": config.d_model,
        **sides,
        **(separate if twin.separate else {}),
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
        "max_length": longest(task) + 1,
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
tags: [{KINDS[task.kind][0]}]
---
# {KINDS[task.kind][1]}, trained and exported with regard

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


class Engine:
    """The folder as transformers loads it, its own tokenizers included."""

    def __init__(self, folder: Path, task: Seq2Seq[Any], search: Search) -> None:
        self.name, self.model, self.source = loaded(folder, "Seq2SeqLM")
        self.beam, self.most = search
        self.target = self.source
        if not task.config.joint:
            with quietly(library()):
                self.target = library().AutoTokenizer.from_pretrained(folder / TARGET, local_files_only=True)

    def answer(self, texts: Sequence[str]) -> list[Answer]:
        settings = PLAINLY | {"num_beams": self.beam, "length_penalty": 0.0 if self.beam > 1 else 1.0}
        with torch.inference_mode(), quietly(library()):
            found = self.model.generate(
                **self._read(texts), **settings, max_length=None, max_new_tokens=self.most
            )
        written = [tuple(_until_end(row[1:])) for row in found.tolist()]
        said = self.target.batch_decode([list(ids) for ids in written], skip_special_tokens=True)
        return [
            Answer(text, ids, cut=len(ids) + 1 >= self.most) for text, ids in zip(said, written, strict=True)
        ]

    def score(self, texts: Sequence[str], answers: Sequence[Answer]) -> list[list[float]]:
        rows = [torch.tensor((BOS, *answer.ids, EOS)) for answer in answers]
        forced_BT = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)
        with torch.inference_mode():
            logits_BTV = self.model(**self._read(texts), decoder_input_ids=forced_BT[:, :-1]).logits
        log_probs_BT = torch.log_softmax(logits_BTV, dim=-1).gather(2, forced_BT[:, 1:, None]).squeeze(2)
        scores = zip(log_probs_BT.tolist(), answers, strict=True)
        return [row[: len(answer.ids) + 1] for row, answer in scores]

    def _read(self, texts: Sequence[str]) -> dict[str, Any]:
        found = self.source(list(texts), return_tensors="pt", padding=True, truncation=True)
        return {name: found[name] for name in ("input_ids", "attention_mask")}


class Loaded(NamedTuple):
    name: str
    model: Any
    tokenizer: Any


def loaded(folder: Path, kind: str) -> Loaded:
    """The folder as `AutoModelFor…` reads it, with its own tokenizer; RunError if anything is missing."""
    transformers = library()
    with quietly(transformers):
        model, loading = getattr(transformers, f"AutoModelFor{kind}").from_pretrained(
            folder, local_files_only=True, dtype=torch.float32, output_loading_info=True
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    _refuse_gaps(loading)
    return Loaded(f"transformers {transformers.__version__}", model, tokenizer)


def library() -> Any:
    try:
        import transformers
    except ImportError:
        raise RunError(
            "hf: checking the export needs transformers; install it with: pip install 'regard[hf]'"
        ) from None
    return transformers


def _refuse_gaps(loading: dict[str, Any]) -> None:
    """`loading` is what transformers says that it missed, or did not expect."""
    if wrong := [f"{kind}: {key}" for kind, keys in loading.items() for key in keys if not _is_made(key)]:
        raise RunError(f"hf: transformers does not find what it expects ({wrong[0]}); please report it")


def _is_made(key: str) -> bool:
    """Sinusoids are computed when a model is built; if they were not, the answers would show it."""
    return key.endswith("embed_positions.weight")


def _until_end(ids: Sequence[int]) -> Sequence[int]:
    return ids[: ids.index(EOS)] if EOS in ids else ids


@contextmanager
def quietly(transformers: Any) -> Iterator[None]:
    """Its bars and warnings are not ours to show."""
    logging = transformers.utils.logging
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        logging.enable_progress_bar()
