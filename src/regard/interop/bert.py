"""Hugging Face's BERT: which of its tensors is which of ours, and its folders read without transformers.

Only config.json, safetensors and the vocabulary are read. A tensor that is none of a BERT's is refused, as
the model would not be what its name says.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from torch import Tensor

from regard.config import first_fault
from regard.errors import CheckpointError, quoted
from regard.files.lines import UNDECODED
from regard.interop.tensors import WEIGHTS, Shape, opened, refuse_others
from regard.interop.tokens import FILE, read_tokenizer
from regard.models import BertConfig, BertPretrainingConfig
from regard.models.dims import Dims
from regard.models.outline import unfilled
from regard.runs.store import read_json
from regard.text.tokenizer import Tokenizer

MODEL_TYPE = "bert"
USUAL_LENGTH = 256
"""Pieces of a text that a classifier reads, if it can."""
CLASSIFIER, TAGGER = "BertForSequenceClassification", "BertForTokenClassification"
ANSWERER = "BertForQuestionAnswering"
PRETRAINING = ("BertForPreTraining", "BertForMaskedLM")
"""The ones whose heads we have too. Many a file that is called by the last name holds all of the first."""
ONE_LABEL, SEVERAL_LABELS = "single_label_classification", "multi_label_classification"
"""What config.json calls its problem_type."""
ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "relu": "relu"}
SIZES = {
    "d_model": "hidden_size",
    "n_heads": "num_attention_heads",
    "d_ff": "intermediate_size",
    "n_layers": "num_hidden_layers",
    "n_segments": "type_vocab_size",
    "max_positions": "max_position_embeddings",
}
NAMES = SIZES | {"norm_eps": "layer_norm_eps", "dropout": "hidden_dropout_prob"}
"""What config.json calls our settings."""
EMBEDDINGS = {
    "embed.weight": "embeddings.word_embeddings.weight",
    "embed.position.weight": "embeddings.position_embeddings.weight",
    "segment.weight": "embeddings.token_type_embeddings.weight",
    "embed_norm.weight": "embeddings.LayerNorm.weight",
    "embed_norm.bias": "embeddings.LayerNorm.bias",
}
LAYER = {
    "self.q": "attention.self.query",
    "self.k": "attention.self.key",
    "self.v": "attention.self.value",
    "self.o": "attention.output.dense",
    "self_norm": "attention.output.LayerNorm",
    "ff.inner": "intermediate.dense",
    "ff.outer": "output.dense",
    "ff_norm": "output.LayerNorm",
}
HEADS = {
    "pooling.dense.weight": "pooler.dense.weight",
    "pooling.dense.bias": "pooler.dense.bias",
    "output.weight": "classifier.weight",
    "output.bias": "classifier.bias",
}
ANSWERS = {"spans.weight": "qa_outputs.weight", "spans.bias": "qa_outputs.bias"}
HIDDEN = {
    "hidden.weight": "cls.predictions.transform.dense.weight",
    "hidden.bias": "cls.predictions.transform.dense.bias",
    "hidden_norm.weight": "cls.predictions.transform.LayerNorm.weight",
    "hidden_norm.bias": "cls.predictions.transform.LayerNorm.bias",
    "output_bias": "cls.predictions.bias",
}
FOLLOWS = {"follows.weight": "cls.seq_relationship.weight", "follows.bias": "cls.seq_relationship.bias"}
PRETRAINED = {name: it for name, it in HEADS.items() if name.startswith("pooling.")} | HIDDEN | FOLLOWS
"""All that stands above the encoder of a BERT that was pretrained."""
OUTPUT_BIAS = "cls.predictions.decoder.bias"
TWINS = {"cls.predictions.decoder.weight": "encoder.embed.weight", OUTPUT_BIAS: "output_bias"}
"""What a file may hold twice. Where the two differ, hidden words are not told by the embeddings, whatever
config.json says.
"""
MAY_BE_NONE = "regard_may_be_none"
"""In config.json of an answerer: whether it has learnt that a question may have no answer."""
PASSED_OVER = re.compile(r"cls\..*|qa_outputs\..*|classifier\..*|pooler\..*|embeddings\.position_ids")


@dataclass(frozen=True)
class Folder:
    config: BertConfig
    tokenizer: Tokenizer
    tensors: dict[str, Tensor]
    """By the names of our models: encoder.…, and what stands above it where it is there."""
    labels: tuple[str, ...]
    """What the last map tells apart; none without it."""
    told: dict[str, Any]
    """config.json."""
    n_rows: int
    """Of its table of pieces, which may have more than there are pieces."""
    max_length: int
    """Pieces of a text that fit between two marks, or fewer where sentence-transformers reads fewer."""

    @property
    def task(self) -> str | None:
        """The kind of task whose head it has; None: what it says of it is not enough, or none of ours.

        A head that tags or answers is enough if regard wrote it, with what else must be known.
        """
        heads, wrote = self.told.get("architectures"), self.told.get("regard_task")
        kind = wrote.get("kind") if isinstance(wrote, dict) else None
        for head in heads if isinstance(heads, list) else ():
            if head in PRETRAINING and self.tensors.keys() >= PRETRAINED.keys() and self._can_hide:
                return "pretrain"
            if head == CLASSIFIER and self.told.get("problem_type") == SEVERAL_LABELS:
                return "multilabel"
            if head == CLASSIFIER:
                return "classify_pair" if kind == "classify_pair" else "classify"
            if (head, kind) in ((TAGGER, "tag"), (ANSWERER, "answer")):
                return str(kind)
        return None

    @property
    def _can_hide(self) -> bool:
        return self.tokenizer.marks.mask is not None


def correspondence(config: BertConfig) -> Iterator[tuple[str, str]]:
    """Our names, from the encoder on, and theirs."""
    yield from EMBEDDINGS.items()
    for layer in range(config.n_layers):
        for ours, theirs in LAYER.items():
            for kind in ("weight", "bias"):
                yield f"stack.layers.{layer}.{ours}.{kind}", f"encoder.layer.{layer}.{theirs}.{kind}"


def read(folder: Path) -> Folder:
    told = read_json(folder / "config.json")
    config = _config(folder / "config.json", told)
    tokenizer = _tokenizer(folder)
    n_rows = told.get("vocab_size")
    if not isinstance(n_rows, int) or n_rows < len(tokenizer):
        raise CheckpointError(
            f"{folder}: the vocabulary has {len(tokenizer)} pieces, the model in config.json {n_rows!r}"
        )
    tensors = _tensors(folder / WEIGHTS, config, n_rows, tied=told.get("tie_word_embeddings", True) is True)
    for name in tensors.keys() & {"encoder.embed.weight", "output_bias"}:
        tensors[name] = tensors[name][: len(tokenizer)].clone()
    n_labels = len(tensors["output.bias"]) if "output.bias" in tensors else 0
    labels = _labels(folder / "config.json", told, n_labels)
    longest = _longest(folder, config.max_positions - 2, len(tokenizer.framed(())))
    return Folder(config, tokenizer, tensors, labels, told, n_rows, longest)


def _longest(folder: Path, most: int, n_marks: int) -> int:
    """Pieces that are read."""
    path = folder / "sentence_bert_config.json"
    told = read_json(path).get("max_seq_length") if path.is_file() else None
    if told is None:
        return most
    if not isinstance(told, int) or told < 3:
        raise CheckpointError(f"{path}: max_seq_length is {told!r}, it should be a number of pieces")
    return min(told - n_marks, most)


def _tokenizer(folder: Path) -> Tokenizer:
    """A BERT's own, or one that regard exported with the BERT it was learnt for."""
    try:
        return Tokenizer.of_bert(folder)
    except CheckpointError as first:
        with suppress(CheckpointError):
            return read_tokenizer(folder / FILE)
        raise first


def _config(path: Path, told: dict[str, Any]) -> BertConfig:
    if told.get("model_type") != MODEL_TYPE:
        raise CheckpointError(f"{path}: model_type is {told.get('model_type')!r}, not {MODEL_TYPE!r}")
    if told.get("position_embedding_type", "absolute") != "absolute" or told.get("is_decoder"):
        raise CheckpointError(f"{path}: relative positions and decoders are no part of regard's BERT")
    activation = told.get("hidden_act", "gelu")
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise CheckpointError(f"{path}: hidden_act {activation!r} is nothing that regard has")
    try:
        return BertConfig(
            **{ours: told[theirs] for ours, theirs in SIZES.items()},
            activation=ACTIVATIONS[activation],
            norm_eps=told.get("layer_norm_eps", 1e-12),
            dropout=told.get("hidden_dropout_prob", 0.1),
        )
    except KeyError as error:
        raise CheckpointError(f"{path}: {error.args[0]} is missing") from None
    except ValidationError as error:
        raise CheckpointError(f"{path}: {first_fault(error, NAMES)}") from None


def _tensors(path: Path, config: BertConfig, n_rows: int, *, tied: bool) -> dict[str, Tensor]:
    """What is ours of the file, once every name and shape is known to be as config.json has it.

    `tied`: hidden words are told by the embeddings, as here; else what tells them is passed over.
    """
    whole = BertPretrainingConfig(encoder=config)
    try:
        own = unfilled(lambda: whole.build(Dims(source_vocab=n_rows))).state_dict()
    except (RuntimeError, TypeError):  # no number, or one whose product with others is no number of bytes
        raise CheckpointError(
            f"{path.with_name('config.json')}: vocab_size is {n_rows}, with its other sizes beyond any "
            "machine; is it damaged?"
        ) from None
    names = {theirs: f"encoder.{ours}" for ours, theirs in correspondence(config)}
    with opened(path, _plain) as file:
        names |= _pretrained(file.shapes)
        twins = {theirs: ours for theirs, ours in TWINS.items() if theirs in file.shapes}
        shapes = {theirs: tuple(own[ours].shape) for theirs, ours in (names | twins).items()}
        refuse_others(file, shapes | _heads(file.shapes, config.d_model), PASSED_OVER)
        names |= {theirs: ours for ours, theirs in (HEADS | ANSWERS).items()}
        found = {ours: file.tensor(theirs) for theirs, ours in names.items() if theirs in file.shapes}
        same = all(torch.equal(file.tensor(twin), found[it]) for twin, it in twins.items() if it in found)
    return found if tied and same else {ours: it for ours, it in found.items() if ours not in HIDDEN}


def _pretrained(found: dict[str, Shape]) -> dict[str, str]:
    """Their names and ours of the heads for hidden words and for what follows: all of each that is there."""
    alone = OUTPUT_BIAS in found and HIDDEN["output_bias"] not in found
    hidden = HIDDEN | {"output_bias": OUTPUT_BIAS} if alone else HIDDEN
    there = [head for head in (hidden, FOLLOWS) if found.keys() & {*head.values()}]
    return {theirs: ours for head in there for ours, theirs in head.items()}


def _heads(found: dict[str, Shape], d_model: int) -> dict[str, Shape]:
    """Of those that are there: all of each."""
    heads: dict[str, Shape] = {"pooler.dense": (d_model, d_model), "qa_outputs": (2, d_model)}
    if "classifier.bias" in found:
        heads["classifier"] = (*found["classifier.bias"], d_model)
    shapes = {name: {f"{name}.weight": shape, f"{name}.bias": shape[:1]} for name, shape in heads.items()}
    return {part: shape for own in shapes.values() if own.keys() & found for part, shape in own.items()}


def _plain(name: str) -> str:
    """Without the prefix that a model with a head has; the oldest files call a norm's weights otherwise."""
    plain = name.removeprefix("bert.")
    return plain.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


def _labels(path: Path, told: dict[str, Any], n_labels: int) -> tuple[str, ...]:
    names = told.get("id2label")
    names = names if isinstance(names, dict) else {}
    found = tuple(str(names.get(str(number), f"LABEL_{number}")) for number in range(n_labels))
    if broken := [label for label in found if UNDECODED.search(label)]:
        raise CheckpointError(f"{path}: the label {quoted(broken[0])} holds half of a surrogate pair")
    return found
