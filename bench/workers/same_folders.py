"""Folders of Hugging Face with small random models in them, written without transformers: always the same."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from same_data import WORDS

LETTERS = [chr(code) for code in range(ord("a"), ord("z") + 1)]
MARKS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PIECES = ["[unused]", "[MASK]", "[PAD]", "!", ",", ".", "?", "[UNK]", "[SEP]", "##er", "[CLS]", *WORDS]
PIECES += [*LETTERS, *(f"##{letter}" for letter in LETTERS)]
"""The marks stand at other places than regard's."""
END = "<|endoftext|>"
WIDTH, HEADS, INNER, LAYERS, PLACES = 24, 4, 40, 2, 64
Arrays = dict[str, Any]


def _random(seed: int, shapes: dict[str, tuple[int, ...]]) -> Arrays:
    rng = np.random.default_rng(seed)
    return {
        name: (0.3 * rng.standard_normal(shape) + (name.endswith(("norm.weight", "Norm.weight")))).astype(
            np.float32
        )
        for name, shape in shapes.items()
    }


def _save(folder: Path, config: dict[str, Any], tensors: Arrays) -> None:
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config), "utf-8")


def _dense(name: str, d_out: int, d_in: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (d_out, d_in), f"{name}.bias": (d_out,)}


def _norm(name: str) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (WIDTH,), f"{name}.bias": (WIDTH,)}


def bert(folder: Path, architecture: str = "BertForPreTraining", **told: Any) -> None:
    """A BERT with its pooler and the heads of its architecture."""
    embeddings, layer = "bert.embeddings", "bert.encoder.layer"
    shapes: dict[str, tuple[int, ...]] = {
        f"{embeddings}.word_embeddings.weight": (len(PIECES), WIDTH),
        f"{embeddings}.position_embeddings.weight": (PLACES, WIDTH),
        f"{embeddings}.token_type_embeddings.weight": (2, WIDTH),
    } | _norm(f"{embeddings}.LayerNorm")
    for number in range(LAYERS):
        for part in ("attention.self.query", "attention.self.key", "attention.self.value"):
            shapes |= _dense(f"{layer}.{number}.{part}", WIDTH, WIDTH)
        shapes |= _dense(f"{layer}.{number}.attention.output.dense", WIDTH, WIDTH)
        shapes |= _norm(f"{layer}.{number}.attention.output.LayerNorm")
        shapes |= _dense(f"{layer}.{number}.intermediate.dense", INNER, WIDTH)
        shapes |= _dense(f"{layer}.{number}.output.dense", WIDTH, INNER)
        shapes |= _norm(f"{layer}.{number}.output.LayerNorm")
    shapes |= _dense("bert.pooler.dense", WIDTH, WIDTH)
    if architecture == "BertForPreTraining":
        shapes |= _dense("cls.predictions.transform.dense", WIDTH, WIDTH)
        shapes |= _norm("cls.predictions.transform.LayerNorm")
        shapes |= {"cls.predictions.bias": (len(PIECES),)} | _dense("cls.seq_relationship", 2, WIDTH)
    else:
        shapes |= _dense("classifier", 3, WIDTH)
    config = {
        "model_type": "bert",
        "architectures": [architecture],
        "vocab_size": len(PIECES),
        "hidden_size": WIDTH,
        "num_attention_heads": HEADS,
        "intermediate_size": INNER,
        "num_hidden_layers": LAYERS,
        "type_vocab_size": 2,
        "max_position_embeddings": PLACES,
        "layer_norm_eps": 1e-12,
        "hidden_dropout_prob": 0.1,
        "hidden_act": "gelu",
        "pad_token_id": PIECES.index("[PAD]"),
    }
    _save(folder, config | told, _random(7, shapes))
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    first = [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    first += [{"SpecialToken": {"id": "[SEP]", "type_id": 0}}]
    second = [{"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "[SEP]", "type_id": 1}}]
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": PIECES.index(mark), "content": mark, "special": True} | flags for mark in MARKS
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
            "single": first,
            "pair": first + second,
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
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), "utf-8")


def bert_classifier(folder: Path) -> None:
    """A BERT that tells three labels apart."""
    labels = {"0": "none", "1": "place", "2": "tree"}
    bert(folder, "BertForSequenceClassification", id2label=labels)


def gpt2(folder: Path) -> None:
    """A GPT-2 whose pieces are bytes, and how the words begin."""
    import tokenizers

    merges: list[tuple[str, str]] = []
    for word in WORDS:
        merges += [(word[:at], word[at]) for at in range(1, len(word)) if (word[:at], word[at]) not in merges]
    pieces = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()) + [a + b for a, b in merges] + [END]
    shapes: dict[str, tuple[int, ...]] = {
        "wte.weight": (len(pieces), WIDTH),
        "wpe.weight": (PLACES, WIDTH),
    } | _norm("ln_f")
    for number in range(LAYERS):
        shapes |= _norm(f"h.{number}.ln_1") | _norm(f"h.{number}.ln_2")
        for name, d_in, d_out in (
            ("attn.c_attn", WIDTH, 3 * WIDTH),
            ("attn.c_proj", WIDTH, WIDTH),
            ("mlp.c_fc", WIDTH, INNER),
            ("mlp.c_proj", INNER, WIDTH),
        ):
            shapes |= {f"h.{number}.{name}.weight": (d_in, d_out), f"h.{number}.{name}.bias": (d_out,)}
    config = {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "vocab_size": len(pieces),
        "n_embd": WIDTH,
        "n_head": HEADS,
        "n_inner": INNER,
        "n_layer": LAYERS,
        "n_positions": PLACES,
        "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-5,
        "resid_pdrop": 0.1,
        "embd_pdrop": 0.1,
        "attn_pdrop": 0.0,
        "bos_token_id": pieces.index(END),
        "eos_token_id": pieces.index(END),
    }
    _save(folder, config, _random(11, shapes))
    (folder / "vocab.json").write_text(json.dumps({piece: n for n, piece in enumerate(pieces)}), "utf-8")
    lines = ["#version: 0.2", *(" ".join(pair) for pair in merges), ""]
    (folder / "merges.txt").write_text("\n".join(lines), "utf-8")


FOLDERS: dict[str, Callable[[Path], None]] = {
    "bert": bert,
    "bert-classifier": bert_classifier,
    "gpt2": gpt2,
}
