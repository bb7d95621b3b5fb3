"""One file = one task: what the loss, the metric and the prediction mean."""

from typing import Annotated, Any

from pydantic import Field

from regard.data.documents import By
from regard.tasks.answer import Answer, AnswerConfig
from regard.tasks.classify import Classify, ClassifyConfig
from regard.tasks.language_model import LanguageModel, LanguageModelConfig
from regard.tasks.pretrain import Pretrain, PretrainConfig
from regard.tasks.relation import Relation, RelationConfig
from regard.tasks.tag import Tag, TagConfig
from regard.tasks.task import Task
from regard.tasks.translate import Translate, TranslateConfig
from regard.tasks.writing import Writing

TaskConfig = Annotated[
    TranslateConfig
    | ClassifyConfig
    | TagConfig
    | RelationConfig
    | AnswerConfig
    | LanguageModelConfig
    | PretrainConfig,
    Field(discriminator="kind"),
]
AnyKind = type[Translate] | type[Classify] | type[Tag] | type[Answer] | type[LanguageModel] | type[Pretrain]
TASKS: dict[str, AnyKind] = {
    task.kind: task for task in (Translate, Classify, Tag, Relation, Answer, LanguageModel, Pretrain)
}

AnyTask = Task[Any, Any, Any, Any]


def documents(config: TaskConfig) -> By | None:
    """What a document of plain text is, for a task that reads documents."""
    return config.documents if isinstance(config, LanguageModelConfig | PretrainConfig) else None


def together(config: TaskConfig) -> str | None:
    """The role whose rows, where they follow one another and have the same in it, are held out together."""
    return "context" if isinstance(config, AnswerConfig) else None


__all__ = [
    "TASKS",
    "Answer",
    "AnswerConfig",
    "AnyTask",
    "Classify",
    "ClassifyConfig",
    "LanguageModel",
    "LanguageModelConfig",
    "Pretrain",
    "PretrainConfig",
    "Relation",
    "RelationConfig",
    "Tag",
    "TagConfig",
    "Task",
    "TaskConfig",
    "Translate",
    "TranslateConfig",
    "Writing",
    "documents",
    "together",
]
