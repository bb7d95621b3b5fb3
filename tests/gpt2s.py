"""Folders of Hugging Face with small random GPT-2s in them, laid out as those that people download."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import tokenizers
import torch
import transformers
from tokenizers import models, pre_tokenizers, trainers

from tiny import WORDS

END = "<|endoftext|>"
LEARNT = [
    " ".join(WORDS),
    "the grey heron doesn't stand still\n\n",
    "雾 lies on the río é é 雾雾 2026",
    "  ",
] * 3
ODD = [
    "amber birch",
    "  two  spaces, and at the end  ",
    "don't we'LL 12345 x²\n\n\tend\r\n",
    "emoji 😀👩‍👩‍👧 中文字符 雾 río ő é e\u0301",
    "control \x00\x01\x7f\x85\u200b\ufeff\u2028 \xa0",
    f"spells {END} and [SEP] Ġ Ċ",
    "",
    " ",
    "x",
]
SHAPES: dict[str, dict[str, Any]] = {
    "one layer": {"n_embd": 12, "n_head": 3, "n_inner": 11, "n_layer": 1},
    "three layers": {"n_embd": 20, "n_head": 5, "n_layer": 3, "activation_function": "relu"},
    "more rows than pieces": {"more_rows": 5, "layer_norm_epsilon": 1e-3, "activation_function": "gelu"},
    "untied": {"tie_word_embeddings": False, "n_positions": 47},
}
SMALL = {"n_embd": 14, "n_head": 2, "n_inner": 17, "n_layer": 2, "n_positions": 31}


@cache
def vocabulary() -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Pieces and merges; the end stands neither first nor last."""
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=330, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    made.train_from_iterator(LEARNT, trainer)
    told = json.loads(made.to_str())["model"]
    pieces = sorted(told["vocab"], key=told["vocab"].get)
    pieces.insert(259, END)
    return {piece: number for number, piece in enumerate(pieces)}, [tuple(pair) for pair in told["merges"]]


def their_tokenizer() -> Any:
    pieces, merges = vocabulary()
    return transformers.GPT2TokenizerFast(vocab=dict(pieces), merges=list(merges))


def write_lists(folder: Path) -> None:
    """As the oldest folders have it."""
    pieces, merges = vocabulary()
    (folder / "vocab.json").write_text(json.dumps(pieces), "utf-8")
    lines = ["#version: 0.2", *(" ".join(pair) for pair in merges), ""]
    (folder / "merges.txt").write_text("\n".join(lines), "utf-8")


def written(folder: Path, architecture: str = "GPT2LMHeadModel", more_rows: int = 0, **changes: Any) -> Any:
    """The folder, and transformers' model that is in it."""
    pieces, _ = vocabulary()
    config = transformers.GPT2Config(
        vocab_size=len(pieces) + more_rows,
        bos_token_id=pieces[END],
        eos_token_id=pieces[END],
        **SMALL | changes,
    )
    model = getattr(transformers, architecture)(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.3)
    model.save_pretrained(folder)
    their_tokenizer().save_pretrained(folder)
    return model
