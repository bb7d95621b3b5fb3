"""Folders of Hugging Face with small random BERTs in them, laid out as those that people download."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers

import regard
from regard.runs.prepare import prepare
from tiny import WORDS

LETTERS = [chr(code) for code in range(ord("a"), ord("z") + 1)]
PIECES = [
    *("[unused]", "[MASK]", "[PAD]", "!", ",", "我", "[UNK]", "[SEP]", "##er", "un", "[CLS]"),
    *WORDS,
    *LETTERS,
    *(f"##{letter}" for letter in LETTERS),
]
"""The marks stand at other places than ours, and than in most BERTs."""
TEXTS = [
    "amber birch",
    "Cedar, unamber!",
    "我 delta embers 好",
    "x",
    "fjord grove heath inlet jetty knoll " * 2,
]
SHAPES: dict[str, dict[str, Any]] = {
    "one layer": {
        "hidden_size": 12,
        "num_attention_heads": 3,
        "intermediate_size": 11,
        "num_hidden_layers": 1,
    },
    "three layers": {
        "hidden_size": 20,
        "num_attention_heads": 5,
        "num_hidden_layers": 3,
        "hidden_act": "relu",
    },
    "more rows than pieces": {
        "vocab_size": len(PIECES) + 5,
        "layer_norm_eps": 1e-5,
        "hidden_act": "gelu_new",
    },
}
SMALL = {
    "vocab_size": len(PIECES),
    "hidden_size": 14,
    "num_attention_heads": 2,
    "intermediate_size": 17,
    "num_hidden_layers": 2,
    "max_position_embeddings": 31,
    "pad_token_id": PIECES.index("[PAD]"),
}


def written(folder: Path, architecture: str = "BertModel", **changes: Any) -> Any:
    """The folder, and transformers' model that is in it."""
    config = transformers.BertConfig(**SMALL | changes)
    model = getattr(transformers, architecture)(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.3)
    model.save_pretrained(folder)
    write_tokenizer(folder)
    return model


def write_tokenizer(folder: Path) -> None:
    marks = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    template = [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    template += [{"SpecialToken": {"id": "[SEP]", "type_id": 0}}]
    second = [{"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "[SEP]", "type_id": 1}}]
    told = {
        "version": "1.0",
        "truncation": {"max_length": 128, "strategy": "LongestFirst", "stride": 0, "direction": "Right"},
        "padding": None,
        "added_tokens": [
            {"id": PIECES.index(mark), "content": mark, "special": True} | flags for mark in marks
        ],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": template,
            "pair": template + second,
            "special_tokens": {
                mark: {"id": mark, "ids": [PIECES.index(mark)], "tokens": [mark]}
                for mark in ("[CLS]", "[SEP]")
            },
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {piece: number for number, piece in enumerate(PIECES)},
        },
    }
    (folder / "tokenizer.json").write_text(json.dumps(told), "utf-8")
    (folder / "tokenizer_config.json").write_text(
        json.dumps(
            {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "cls_token": "[CLS]",
                "sep_token": "[SEP]",
                "pad_token": "[PAD]",
                "unk_token": "[UNK]",
            }
        ),
        "utf-8",
    )


def their_tokenizer(folder: Path) -> Any:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    return partial(tokenizer, return_token_type_ids=True)


def fine_tuning(folder: Path, init_from: Path, data: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A recipe that begins with a folder; `changes` are those of the model."""
    return {
        "run": str(folder / "run"),
        "task": {"kind": "classify", "max_length": 20},
        "data": data,
        "model": {"kind": "classifier", "init_from": str(init_from), "pooling": "mean"} | changes,
        "train": {"max_steps": 4, "batch_tokens": 100, "lr": 1e-3, "log_every": 1, "device": "cpu"},
    }


def goes_on_where_it_stood(whole: regard.Recipe) -> bool:
    """Whether a training that is parted after step 4 ends with the same bits."""
    expected = regard.train(whole, quiet=True).model.state_dict()
    parted = whole.model_copy(update={"run": f"{whole.run}-parted"})
    with prepare(parted) as run:
        for event in run.events():
            if getattr(event, "step", 0) == 4:
                break
    found = regard.train(parted, quiet=True).model.state_dict()
    return all(torch.equal(found[name], expected[name]) for name in expected)
