"""Import: a folder of Hugging Face as one of ours, be it a translator, a classifier or an encoder alone."""

from pathlib import Path

from pydantic import ValidationError

from regard.encoder import of_bert
from regard.errors import CheckpointError, RunError
from regard.export import bert, foreign
from regard.models import ClassifierConfig
from regard.models.outline import outline
from regard.store import read_json, save_model
from regard.tasks import Classify, ClassifyConfig
from regard.training.checkpoint import fill


def import_folder(folder: Path, out: Path) -> bool:
    """Whether it answers by itself, or is an encoder that something can begin with."""
    if out.exists():
        raise RunError(f"{out}: already exists; choose another")
    path = folder / "config.json"
    if read_json(path).get("model_type") != bert.MODEL_TYPE:
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
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"]))
        raise CheckpointError(f"{path}: {where}: {fault['msg']}") from None
    if task_config.max_length > found.config.max_positions - 2:
        raise CheckpointError(
            f"{path}: max_position_embeddings is {found.config.max_positions}, but texts may have "
            f"{task_config.max_length} pieces and two marks"
        )
    task = Classify(task_config, found.tokenizer, labels)
    model = outline(config, task.dims).to_empty(device="cpu")
    fill(model, found.tensors, str(path.with_name(bert.WEIGHTS)))
    save_model(out, task, task_config, model, config, {})
