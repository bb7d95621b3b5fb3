"""Hugging Face's BERT: how its tensors correspond to ours, and its folders read without transformers.

Only config.json, safetensors and the vocabulary are read. A tensor that no BERT has is refused, since the
folder would hold a different model than it claims.
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
from regard.interop.tensors import WEIGHTS, Shape, check_tensors, open_tensors
from regard.interop.tokens import FILE, read_tokenizer
from regard.models import BertConfig, BertPretrainingConfig
from regard.models.meta import on_meta_device
from regard.models.widths import Widths
from regard.runs.store import read_json
from regard.text.tokenizer import Tokenizer

MODEL_TYPE = "bert"
DEFAULT_LENGTH = 256
"""Longest text of an imported classifier in tokens, if its positions allow it."""
CLASSIFIER, TAGGER = "BertForSequenceClassification", "BertForTokenClassification"
ANSWERER = "BertForQuestionAnswering"
PRETRAINING = ("BertForPreTraining", "BertForMaskedLM")
"""Architectures whose heads we have too; many a file of the second has all tensors of the first."""
ONE_LABEL, SEVERAL_LABELS = "single_label_classification", "multi_label_classification"
"""Values of problem_type in config.json."""
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
"""Names of our settings in config.json."""
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
MASKED_LM = {
    "hidden.weight": "cls.predictions.transform.dense.weight",
    "hidden.bias": "cls.predictions.transform.dense.bias",
    "hidden_norm.weight": "cls.predictions.transform.LayerNorm.weight",
    "hidden_norm.bias": "cls.predictions.transform.LayerNorm.bias",
    "output_bias": "cls.predictions.bias",
}
NEXT_SENTENCE = {"follows.weight": "cls.seq_relationship.weight", "follows.bias": "cls.seq_relationship.bias"}
PRETRAINED = (
    {ours: theirs for ours, theirs in HEADS.items() if ours.startswith("pooling.")}
    | MASKED_LM
    | NEXT_SENTENCE
)
"""Tensors above the encoder of a pretrained BERT."""
OUTPUT_BIAS = "cls.predictions.decoder.bias"
TIED = {"cls.predictions.decoder.weight": "encoder.embed.weight", OUTPUT_BIAS: "output_bias"}
"""Tensors that a file may hold a second time. If the copies differ, the output is not tied to the embeddings,
whatever config.json says.
"""
MAY_BE_NONE = "regard_may_be_none"
"""Key in config.json of an answerer: whether it was trained with questions that have no answer."""
IGNORED = re.compile(r"cls\..*|qa_outputs\..*|classifier\..*|pooler\..*|embeddings\.position_ids")


@dataclass(frozen=True)
class BertFolder:
    config: BertConfig
    tokenizer: Tokenizer
    tensors: dict[str, Tensor]
    """Tensors by the names of our models: encoder.…, and those of its heads, if any."""
    labels: tuple[str, ...]
    """Labels of the classifier; none without one."""
    content: dict[str, Any]
    """Content of config.json."""
    n_rows: int
    """Rows of the embedding table, which may exceed the vocabulary."""
    max_length: int
    """Longest text in tokens, without special tokens; sentence-transformers may set a lower limit."""

    @property
    def task(self) -> str | None:
        """Task of its head; None if it has none of ours, or the folder does not say enough about it.

        Only regard writes enough about a head for tagging or question answering.
        """
        heads, regard_task = self.content.get("architectures"), self.content.get("regard_task")
        kind = regard_task.get("kind") if isinstance(regard_task, dict) else None
        for head in heads if isinstance(heads, list) else ():
            if head in PRETRAINING and self.tensors.keys() >= PRETRAINED.keys() and self._has_mask:
                return "pretrain"
            if head == CLASSIFIER and self.content.get("problem_type") == SEVERAL_LABELS:
                return "multilabel"
            if head == CLASSIFIER:
                return "classify_pair" if kind == "classify_pair" else "classify"
            if (head, kind) in ((TAGGER, "tag"), (ANSWERER, "answer")):
                return str(kind)
        return None

    @property
    def _has_mask(self) -> bool:
        return self.tokenizer.special.mask is not None


def correspondence(config: BertConfig) -> Iterator[tuple[str, str]]:
    """Our names, relative to the encoder, and theirs."""
    yield from EMBEDDINGS.items()
    for layer in range(config.n_layers):
        for ours, theirs in LAYER.items():
            for kind in ("weight", "bias"):
                yield f"stack.layers.{layer}.{ours}.{kind}", f"encoder.layer.{layer}.{theirs}.{kind}"


def read(folder: Path) -> BertFolder:
    content = read_json(folder / "config.json")
    config = _config(folder / "config.json", content)
    tokenizer = _tokenizer(folder)
    n_rows = content.get("vocab_size")
    if not isinstance(n_rows, int) or n_rows < len(tokenizer):
        raise CheckpointError(
            f"{folder}: the vocabulary has {len(tokenizer)} tokens, config.json says vocab_size {n_rows!r}"
        )
    tied = content.get("tie_word_embeddings", True) is True
    tensors = _tensors(folder / WEIGHTS, config, n_rows, tied=tied)
    for name in tensors.keys() & {"encoder.embed.weight", "output_bias"}:
        tensors[name] = tensors[name][: len(tokenizer)].clone()
    n_labels = len(tensors["output.bias"]) if "output.bias" in tensors else 0
    labels = labels_of(folder / "config.json", content, n_labels)
    max_length = _max_length(folder, config.max_positions - 2, len(tokenizer.with_special_tokens(())))
    return BertFolder(config, tokenizer, tensors, labels, content, n_rows, max_length)


def _max_length(folder: Path, limit: int, n_special: int) -> int:
    """Longest text in tokens: `limit`, or less if sentence-transformers says so."""
    path = folder / "sentence_bert_config.json"
    max_seq_length = read_json(path).get("max_seq_length") if path.is_file() else None
    if max_seq_length is None:
        return limit
    if not isinstance(max_seq_length, int) or max_seq_length < 3:
        raise CheckpointError(
            f"{path}: max_seq_length is {max_seq_length!r}, it should be a number of tokens"
        )
    return min(max_seq_length - n_special, limit)


def _tokenizer(folder: Path) -> Tokenizer:
    """Read a BERT's own tokenizer, or one of ours that regard exported with its model."""
    try:
        return Tokenizer.from_bert(folder)
    except CheckpointError as first:
        with suppress(CheckpointError):
            return read_tokenizer(folder / FILE)
        raise first


def _config(path: Path, content: dict[str, Any]) -> BertConfig:
    if content.get("model_type") != MODEL_TYPE:
        raise CheckpointError(f"{path}: model_type is {content.get('model_type')!r}, not {MODEL_TYPE!r}")
    if content.get("position_embedding_type", "absolute") != "absolute" or content.get("is_decoder"):
        raise CheckpointError(f"{path}: regard's BERT does not support relative positions or decoders")
    activation = content.get("hidden_act", "gelu")
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise CheckpointError(f"{path}: hidden_act {activation!r} is not supported by regard")
    try:
        return BertConfig(
            **{ours: content[theirs] for ours, theirs in SIZES.items()},
            activation=ACTIVATIONS[activation],
            norm_eps=content.get("layer_norm_eps", 1e-12),
            dropout=content.get("hidden_dropout_prob", 0.1),
        )
    except KeyError as error:
        raise CheckpointError(f"{path}: {error.args[0]} is missing") from None
    except ValidationError as error:
        raise CheckpointError(f"{path}: {first_fault(error, NAMES)}") from None


def _tensors(path: Path, config: BertConfig, n_rows: int, *, tied: bool) -> dict[str, Tensor]:
    """Read the tensors under our names, after checking every name and shape against config.json.

    Without `tied`, the masked-language-model head is skipped: ours shares its output with the embeddings.
    """
    whole = BertPretrainingConfig(encoder=config)
    try:
        expected = on_meta_device(lambda: whole.build(Widths({"vocab": n_rows}))).state_dict()
    except (RuntimeError, TypeError):  # no number, or one whose product with others is no number of bytes
        raise CheckpointError(
            f"{path.with_name('config.json')}: vocab_size is {n_rows}, too large for any machine together "
            "with the other sizes; is it damaged?"
        ) from None
    names = {theirs: f"encoder.{ours}" for ours, theirs in correspondence(config)}
    with open_tensors(path, _normalize) as file:
        names |= _pretraining_names(file.shapes)
        copies = {theirs: ours for theirs, ours in TIED.items() if theirs in file.shapes}
        shapes = {theirs: tuple(expected[ours].shape) for theirs, ours in (names | copies).items()}
        check_tensors(file, shapes | _head_shapes(file.shapes, config.d_model), IGNORED)
        names |= {theirs: ours for ours, theirs in (HEADS | ANSWERS).items()}
        tensors = {ours: file.tensor(theirs) for theirs, ours in names.items() if theirs in file.shapes}
        same = all(
            torch.equal(file.tensor(theirs), tensors[ours])
            for theirs, ours in copies.items()
            if ours in tensors
        )
    if tied and same:
        return tensors
    return {ours: tensor for ours, tensor in tensors.items() if ours not in MASKED_LM}


def _pretraining_names(shapes: dict[str, Shape]) -> dict[str, str]:
    """Their names and ours for each pretraining head of which the file has any tensor."""
    only_copy = OUTPUT_BIAS in shapes and MASKED_LM["output_bias"] not in shapes
    masked_lm = MASKED_LM | {"output_bias": OUTPUT_BIAS} if only_copy else MASKED_LM
    heads = [head for head in (masked_lm, NEXT_SENTENCE) if shapes.keys() & {*head.values()}]
    return {theirs: ours for head in heads for ours, theirs in head.items()}


def _head_shapes(in_file: dict[str, Shape], d_model: int) -> dict[str, Shape]:
    """Expected shapes of each fine-tuned head of which the file has any tensor."""
    heads: dict[str, Shape] = {"pooler.dense": (d_model, d_model), "qa_outputs": (2, d_model)}
    if "classifier.bias" in in_file:
        heads["classifier"] = (*in_file["classifier.bias"], d_model)
    by_head = [{f"{name}.weight": shape, f"{name}.bias": shape[:1]} for name, shape in heads.items()]
    present = [shapes for shapes in by_head if shapes.keys() & in_file]
    return {name: shape for shapes in present for name, shape in shapes.items()}


def _normalize(name: str) -> str:
    """Remove the prefix of models with a head, and the names that the oldest files use for layer norms."""
    name = name.removeprefix("bert.")
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


def labels_of(path: Path, content: dict[str, Any], n_labels: int) -> tuple[str, ...]:
    names = content.get("id2label")
    names = names if isinstance(names, dict) else {}
    labels = tuple(str(names.get(str(number), f"LABEL_{number}")) for number in range(n_labels))
    if broken := [label for label in labels if UNDECODED.search(label)]:
        raise CheckpointError(f"{path}: the label {quoted(broken[0])} holds half of a surrogate pair")
    return labels
