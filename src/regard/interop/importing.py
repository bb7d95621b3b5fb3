"""Import of Hugging Face folders: a translator, a GPT-2, or a BERT with or without its head."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from regard.config import first_fault
from regard.errors import CheckpointError, RunError, quoted, shown
from regard.interop import bert, gpt2, import_seq2seq, vit
from regard.interop.encoder import from_bert
from regard.interop.tensors import WEIGHTS
from regard.models import AnswererConfig, BertPretrainingConfig, ClassifierConfig, ModelConfig, TaggerConfig
from regard.models.meta import build_meta, max_tokens
from regard.runs.store import read_json, save_model
from regard.tasks import (
    TASKS,
    Answer,
    AnswerConfig,
    AnyTask,
    ClassifyConfig,
    ClassifyPairConfig,
    LanguageModel,
    LanguageModelConfig,
    MultilabelConfig,
    Pretrain,
    PretrainConfig,
    TagConfig,
)
from regard.training.checkpoint import fill

SEPARATORS = (",", ";", "|", "||")
TASK_CONFIGS: dict[str, Any] = {
    "classify": ClassifyConfig,
    "classify_pair": ClassifyPairConfig,
    "multilabel": MultilabelConfig,
    "tag": TagConfig,
    "answer": AnswerConfig,
    "pretrain": PretrainConfig,
}


def import_folder(folder: Path, out: Path, tell: Callable[[str], None] = lambda remark: None) -> str | None:
    """Import a folder; returns its task, or None if it is an encoder without a usable head.

    `tell` is called with remarks about a folder that is odd but readable.
    """
    if out.exists() or out.is_symlink():
        raise RunError(f"{out}: already exists; choose another")
    path = folder / "config.json"
    if not path.is_file():
        raise RunError(f"{folder}: not a Hugging Face folder, as it has no config.json; give another folder")
    content = read_json(path)
    if "format_version" in content:
        raise RunError(f"{folder}: already a folder of regard; use it as it is")
    model_type = content.get("model_type")
    if model_type == gpt2.MODEL_TYPE:
        gpt = gpt2.read(folder)
        _save_gpt(path, gpt, out)
        _report_spare_rows(folder, gpt, tell)
        return LanguageModel.kind
    if model_type in vit.MODEL_TYPES:
        return _save_vit(path, vit.read(folder), out)
    if model_type != bert.MODEL_TYPE:
        return import_seq2seq.import_folder(folder, out)
    hf_bert = bert.read(folder)
    if hf_bert.task is None:
        from_bert(folder, hf_bert).save(out)
    else:
        _save_bert(path, hf_bert, hf_bert.task, out)
    _report_spare_rows(folder, hf_bert, tell)
    return hf_bert.task


def _report_spare_rows(
    folder: Path, hf_folder: bert.BertFolder | gpt2.GPT2Folder, tell: Callable[[str], None]
) -> None:
    if spare := hf_folder.n_rows - len(hf_folder.tokenizer):
        tell(
            f"{folder}: {spare:,} of {hf_folder.n_rows:,} rows of the embeddings have no token in the "
            "vocabulary and are left out; if they are many, is the vocabulary truncated?"
        )


def _save_bert(path: Path, hf_bert: bert.BertFolder, kind: str, out: Path) -> None:
    try:
        config = _config(hf_bert, kind)
        limit = max_tokens(config)
        assert limit is not None, "a BERT's positions end"
        default: dict[str, Any] = {"max_length": min(hf_bert.max_length, limit - 1, bert.DEFAULT_LENGTH)}
        if kind == "multilabel":
            default |= {"separator": _separator(hf_bert.labels)}
        task_config = TASK_CONFIGS[kind].model_validate(hf_bert.content.get("regard_task") or default)
    except ValidationError as error:
        raise _damaged(path, error) from None
    if task_config.max_length >= limit:
        raise CheckpointError(
            f"{path}: max_position_embeddings is {hf_bert.config.max_positions}, but texts may have "
            f"{task_config.max_length} tokens plus special tokens"
        )
    task = _task(path, hf_bert, kind, task_config)
    model = build_meta(config, task.widths).to_empty(device="cpu")
    names = model.state_dict().keys()
    tensors = {name: tensor for name, tensor in hf_bert.tensors.items() if name in names}
    fill(model, tensors, str(path.with_name(WEIGHTS)))
    save_model(out, task, task_config, model, config, {})


def _save_vit(path: Path, hf_vit: vit.ViTFolder, out: Path) -> str:
    """Save a classifier of pictures, which are brought to size as the folder says."""
    kind = "multilabel" if hf_vit.content.get("problem_type") == bert.SEVERAL_LABELS else "classify"
    settings = hf_vit.field.config.model_dump(mode="json", exclude_defaults=True)
    default: dict[str, Any] = {"fields": {"image": {"kind": "image", **settings}}}
    if kind == "multilabel":
        default |= {"separator": _separator(hf_vit.labels)}
    try:
        task_config = TASK_CONFIGS[kind].model_validate(hf_vit.content.get("regard_task") or default)
    except ValidationError as error:
        raise _damaged(path, error) from None
    _require_two(path, hf_vit.content, hf_vit.labels)
    config = ClassifierConfig(encoder=hf_vit.config, pooling="first", dropout=0.0)
    (role,) = task_config.given
    classify: Any = TASKS[kind]
    label = replace(task_config.unfitted["label"], names=hf_vit.labels)
    task: AnyTask = classify(task_config, {role: hf_vit.field}, label)
    model = build_meta(config, task.widths).to_empty(device="cpu")
    fill(model, hf_vit.tensors, str(path.with_name(WEIGHTS)))
    save_model(out, task, task_config, model, config, {})
    return kind


def _separator(labels: Sequence[str]) -> str:
    """Choose a separator that no label contains, if there is one."""
    usable = [each for each in SEPARATORS if not any(each in label for label in labels)]
    return usable[0] if usable else SEPARATORS[0]


def _config(hf_bert: bert.BertFolder, kind: str) -> ModelConfig:
    if kind == "pretrain":
        return BertPretrainingConfig(encoder=hf_bert.config)
    dropout = hf_bert.content.get("classifier_dropout")
    common: dict[str, Any] = {
        "encoder": hf_bert.config,
        "dropout": hf_bert.config.dropout if dropout is None else dropout,
    }
    if kind == "answer":
        return AnswererConfig(**common)
    return (
        TaggerConfig(**common, crf=False) if kind == "tag" else ClassifierConfig(**common, pooling="pooler")
    )


def _task(path: Path, hf_bert: bert.BertFolder, kind: str, config: Any) -> AnyTask:
    if kind == "answer":
        may_be_none = hf_bert.content.get(bert.MAY_BE_NONE)
        if not isinstance(may_be_none, bool):
            raise CheckpointError(
                f"{path}: {bert.MAY_BE_NONE} is {may_be_none!r}, it should be true or false"
            )
        return Answer.of_vocabulary(config, hf_bert.tokenizer, may_be_none=may_be_none)
    if kind == "pretrain":
        return Pretrain.of_vocabulary(config, hf_bert.tokenizer)
    labels = hf_bert.labels
    _require_two(path, hf_bert.content, labels)
    labelling: Any = TASKS[kind]
    task: AnyTask = labelling.of_vocabulary(config, hf_bert.tokenizer, labels)
    return task


def _require_two(path: Path, content: dict[str, Any], labels: Sequence[str]) -> None:
    """Raise CheckpointError unless there are two labels or more, each with a name."""
    problem = content.get("problem_type") or bert.ONE_LABEL
    if problem not in (bert.ONE_LABEL, bert.SEVERAL_LABELS) or len(labels) < 2:
        raise CheckpointError(
            f"{path}: a {problem} with {len(labels)} outputs, but regard's classifiers have two labels or "
            "more; use its encoder with model.init_from"
        )
    _require_names(path, content.get("id2label"), labels)


def _require_names(path: Path, names: Any, labels: Sequence[str]) -> None:
    """Raise CheckpointError unless every output has a name of its own."""
    if names is not None and (not isinstance(names, dict) or {*names} != {*map(str, range(len(labels)))}):
        raise CheckpointError(
            f"{path}: id2label is {shown(names)}, but the model has {len(labels)} outputs; name each of "
            f"them, from 0 to {len(labels) - 1}"
        )
    seen: set[str] = set()
    for number, label in enumerate(labels):
        if not label or label in seen:
            raise CheckpointError(
                f"{path}: the label of output {number} is {quoted(label)}, which "
                f"{'another output has too' if label else 'is not a name'}; give each its own in id2label"
            )
        seen.add(label)


def _save_gpt(path: Path, hf_gpt2: gpt2.GPT2Folder, out: Path) -> None:
    """Save a GPT-2; unless regard exported it, it continues prompts as they are, as transformers does."""
    limit = hf_gpt2.config.max_positions - 1
    try:
        task_config = LanguageModelConfig.model_validate(
            hf_gpt2.content.get("regard_task") or {"max_length": limit, "documents": "files"}
        )
    except ValidationError as error:
        raise _damaged(path, error) from None
    if task_config.max_length > limit:
        raise CheckpointError(
            f"{path}: n_positions is {hf_gpt2.config.max_positions}, but texts may have "
            f"{task_config.max_length} tokens and EOS"
        )
    task = LanguageModel.of_vocabulary(task_config, hf_gpt2.tokenizer)
    model = build_meta(hf_gpt2.config, task.widths).to_empty(device="cpu")
    fill(model, hf_gpt2.tensors, str(path.with_name(WEIGHTS)))
    save_model(out, task, task_config, model, hf_gpt2.config, {})


def _damaged(path: Path, error: ValidationError) -> CheckpointError:
    return CheckpointError(f"{path}: {first_fault(error)}")
