"""Import: a folder of Hugging Face as one of ours: a translator, a GPT-2, a BERT with its head or without."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from regard.config import first_fault
from regard.errors import CheckpointError, RunError, quoted, shown
from regard.interop import bert, foreign, gpt2
from regard.interop.encoder import of_bert
from regard.interop.tensors import WEIGHTS
from regard.models import AnswererConfig, BertPretrainingConfig, ClassifierConfig, ModelConfig, TaggerConfig
from regard.models.outline import outline, places
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
    Tag,
    TagConfig,
)
from regard.training.checkpoint import fill

SEPARATORS = (",", ";", "|", "||")
BERTS: dict[str, Any] = {
    "classify": ClassifyConfig,
    "classify_pair": ClassifyPairConfig,
    "multilabel": MultilabelConfig,
    "tag": TagConfig,
    "answer": AnswerConfig,
    "pretrain": PretrainConfig,
}


def import_folder(folder: Path, out: Path, tell: Callable[[str], None] = lambda remark: None) -> str | None:
    """Its kind of task if it answers by itself; None if it is an encoder that something can begin with.

    `tell` hears what is odd about the folder, though it can be read.
    """
    if out.exists() or out.is_symlink():
        raise RunError(f"{out}: already exists; choose another")
    path = folder / "config.json"
    if not path.is_file():
        raise RunError(f"{folder}: not a folder of Hugging Face, which has a config.json; give the right one")
    told = read_json(path)
    if "format_version" in told:
        raise RunError(f"{folder}: is one of regard's already; use it as it is")
    model_type = told.get("model_type")
    if model_type == gpt2.MODEL_TYPE:
        gpt = gpt2.read(folder)
        _save_gpt(path, gpt, out)
        _tell_rows(folder, gpt, tell)
        return LanguageModel.kind
    if model_type != bert.MODEL_TYPE:
        return foreign.import_folder(folder, out)
    found = bert.read(folder)
    if found.task is None:
        of_bert(folder, found).save(out)
    else:
        _save_bert(path, found, found.task, out)
    _tell_rows(folder, found, tell)
    return found.task


def _tell_rows(folder: Path, found: bert.Folder | gpt2.Folder, tell: Callable[[str], None]) -> None:
    if spare := found.n_rows - len(found.tokenizer):
        tell(
            f"{folder}: {spare:,} of {found.n_rows:,} rows of the model have no piece in the vocabulary and "
            "are left out; if they are many, is the vocabulary truncated?"
        )


def _save_bert(path: Path, found: bert.Folder, kind: str, out: Path) -> None:
    try:
        config = _config(found, kind)
        room = places(config)
        assert room is not None, "a BERT's positions end"
        usual: dict[str, Any] = {"max_length": min(found.max_length, room - 1, bert.USUAL_LENGTH)}
        if kind == "multilabel":
            usual |= {"separator": _separator(found.labels)}
        task_config = BERTS[kind].model_validate(found.told.get("regard_task") or usual)
    except ValidationError as error:
        raise _damaged(path, error) from None
    if task_config.max_length >= room:
        raise CheckpointError(
            f"{path}: max_position_embeddings is {found.config.max_positions}, but texts may have "
            f"{task_config.max_length} pieces and their marks"
        )
    task = _task(path, found, kind, task_config)
    model = outline(config, task.dims).to_empty(device="cpu")
    own = model.state_dict().keys()
    fill(model, {name: it for name, it in found.tensors.items() if name in own}, str(path.with_name(WEIGHTS)))
    save_model(out, task, task_config, model, config, {})


def _separator(labels: Sequence[str]) -> str:
    """What no label holds can stand between them."""
    known = [one for one in SEPARATORS if not any(one in label for label in labels)]
    return known[0] if known else SEPARATORS[0]


def _config(found: bert.Folder, kind: str) -> ModelConfig:
    if kind == "pretrain":
        return BertPretrainingConfig(encoder=found.config)
    told = found.told.get("classifier_dropout")
    common: dict[str, Any] = {
        "encoder": found.config,
        "dropout": found.config.dropout if told is None else told,
    }
    if kind == "answer":
        return AnswererConfig(**common)
    return (
        TaggerConfig(**common, crf=False) if kind == "tag" else ClassifierConfig(**common, pooling="pooler")
    )


def _task(path: Path, found: bert.Folder, kind: str, config: Any) -> AnyTask:
    if kind == "answer":
        may_be_none = found.told.get(bert.MAY_BE_NONE)
        if not isinstance(may_be_none, bool):
            raise CheckpointError(
                f"{path}: {bert.MAY_BE_NONE} is {may_be_none!r}, it should be true or false"
            )
        return Answer(config, found.tokenizer, may_be_none=may_be_none)
    if kind == "pretrain":
        return Pretrain(config, found.tokenizer)
    labels = found.labels
    problem = found.told.get("problem_type") or bert.ONE_LABEL
    known = problem in (bert.ONE_LABEL, bert.SEVERAL_LABELS)
    if not known or len(labels) < 2:
        raise CheckpointError(
            f"{path}: a {problem} with {len(labels)} outputs; regard's models choose among two labels or "
            "more (its encoder can still be used with model.init_from)"
        )
    _refuse_unnamed(path, found.told.get("id2label"), labels)
    if kind == "tag":
        split: Any = "signs" if config.split == "auto" else config.split
        return Tag(config, found.tokenizer, labels, split)
    task: AnyTask = TASKS[kind](config, found.tokenizer, labels)  # type: ignore[call-arg]
    return task


def _refuse_unnamed(path: Path, names: Any, labels: Sequence[str]) -> None:
    """Every output has a name of its own."""
    if names is not None and (not isinstance(names, dict) or {*names} != {*map(str, range(len(labels)))}):
        raise CheckpointError(
            f"{path}: id2label is {shown(names)}, but the model has {len(labels)} outputs; name each of "
            f"them, from 0 to {len(labels) - 1}"
        )
    seen: set[str] = set()
    for place, label in enumerate(labels):
        if not label or label in seen:
            raise CheckpointError(
                f"{path}: the label of output {place} is {quoted(label)}, which "
                f"{'another has too' if label else 'is no name'}; give each its own in id2label"
            )
        seen.add(label)


def _save_gpt(path: Path, found: gpt2.Folder, out: Path) -> None:
    """A prompt is continued as it stands, as transformers does, unless regard has written otherwise."""
    most = found.config.max_positions - 1
    try:
        task_config = LanguageModelConfig.model_validate(
            found.told.get("regard_task") or {"max_length": most, "documents": "files"}
        )
    except ValidationError as error:
        raise _damaged(path, error) from None
    if task_config.max_length > most:
        raise CheckpointError(
            f"{path}: n_positions is {found.config.max_positions}, but texts may have "
            f"{task_config.max_length} pieces and an end"
        )
    task = LanguageModel(task_config, found.tokenizer)
    model = outline(found.config, task.dims).to_empty(device="cpu")
    fill(model, found.tensors, str(path.with_name(WEIGHTS)))
    save_model(out, task, task_config, model, found.config, {})


def _damaged(path: Path, error: ValidationError) -> CheckpointError:
    return CheckpointError(f"{path}: {first_fault(error)}")
