"""Import: a folder of Hugging Face as one of ours: a translator, a classifier, a GPT-2, an encoder alone."""

from pathlib import Path

from pydantic import ValidationError

from regard.config import first_fault
from regard.encoder import of_bert
from regard.errors import CheckpointError, RunError
from regard.export import bert, foreign, gpt2
from regard.export.tensors import WEIGHTS
from regard.models import ClassifierConfig
from regard.models.outline import outline
from regard.store import read_json, save_model
from regard.tasks import Classify, ClassifyConfig, LanguageModel, LanguageModelConfig
from regard.training.checkpoint import fill


def import_folder(folder: Path, out: Path) -> bool:
    """Whether it answers by itself, or is an encoder that something can begin with."""
    if out.exists():
        raise RunError(f"{out}: already exists; choose another")
    path = folder / "config.json"
    if not path.is_file():
        raise RunError(f"{folder}: not a folder of Hugging Face, which has a config.json; give the right one")
    told = read_json(path)
    if "format_version" in told:
        raise RunError(f"{folder}: is one of regard's already; use it as it is")
    model_type = told.get("model_type")
    if model_type == gpt2.MODEL_TYPE:
        _save_gpt(path, gpt2.read(folder), out)
        return True
    if model_type != bert.MODEL_TYPE:
        foreign.import_folder(folder, out)
        return True
    found = bert.read(folder)
    if found.classifies:
        _save_classifier(path, found, out)
    else:
        of_bert(folder, found).save(out)
    return found.classifies


def _save_classifier(path: Path, found: bert.Folder, out: Path) -> None:
    labels = found.labels
    kind = found.told.get("problem_type") or "single_label_classification"
    if kind != "single_label_classification" or len(set(labels)) != len(labels) or len(labels) < 2:
        raise CheckpointError(
            f"{path}: a {kind} with {len(labels)} outputs; regard's classifier chooses one of two labels or "
            "more, all different (its encoder can still be used with model.init_from)"
        )
    try:
        usual = {"max_length": min(found.max_length, bert.USUAL_LENGTH)}
        task_config = ClassifyConfig.model_validate(found.told.get("regard_task") or usual)
        dropout = found.told.get("classifier_dropout")
        config = ClassifierConfig(
            encoder=found.config,
            pooling="pooler",
            dropout=found.config.dropout if dropout is None else dropout,
        )
    except ValidationError as error:
        raise _damaged(path, error) from None
    if task_config.max_length > found.config.max_positions - 2:
        raise CheckpointError(
            f"{path}: max_position_embeddings is {found.config.max_positions}, but texts may have "
            f"{task_config.max_length} pieces and two marks"
        )
    task = Classify(task_config, found.tokenizer, labels)
    model = outline(config, task.dims).to_empty(device="cpu")
    fill(model, found.tensors, str(path.with_name(WEIGHTS)))
    save_model(out, task, task_config, model, config, {})


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
