"""One file = one task: what the loss, the metric and the prediction mean."""

from typing import Annotated

from pydantic import Field

from regard.tasks.answer import Answer, AnswerConfig
from regard.tasks.classify import Classify, ClassifyConfig
from regard.tasks.classify_pair import ClassifyPair, ClassifyPairConfig
from regard.tasks.dialogue import Dialogue, DialogueConfig
from regard.tasks.language_model import LanguageModel, LanguageModelConfig
from regard.tasks.multilabel import Multilabel, MultilabelConfig
from regard.tasks.pretrain import Pretrain, PretrainConfig
from regard.tasks.relation import Relation, RelationConfig
from regard.tasks.summarize import Summarize, SummarizeConfig
from regard.tasks.tag import Tag, TagConfig
from regard.tasks.task import Task
from regard.tasks.translate import Translate, TranslateConfig
from regard.tasks.writing import Writing

TaskConfig = Annotated[
    TranslateConfig
    | SummarizeConfig
    | DialogueConfig
    | ClassifyConfig
    | ClassifyPairConfig
    | MultilabelConfig
    | TagConfig
    | RelationConfig
    | AnswerConfig
    | LanguageModelConfig
    | PretrainConfig,
    Field(discriminator="kind"),
]
AnyTask = Task
_ALL: tuple[type[AnyTask], ...] = (
    Translate,
    Summarize,
    Dialogue,
    Classify,
    ClassifyPair,
    Multilabel,
    Tag,
    Relation,
    Answer,
    LanguageModel,
    Pretrain,
)
TASKS: dict[str, type[AnyTask]] = {task.kind: task for task in _ALL}
__all__ = [
    "TASKS",
    "Answer",
    "AnswerConfig",
    "AnyTask",
    "Classify",
    "ClassifyConfig",
    "ClassifyPair",
    "ClassifyPairConfig",
    "Dialogue",
    "DialogueConfig",
    "LanguageModel",
    "LanguageModelConfig",
    "Multilabel",
    "MultilabelConfig",
    "Pretrain",
    "PretrainConfig",
    "Relation",
    "RelationConfig",
    "Summarize",
    "SummarizeConfig",
    "Tag",
    "TagConfig",
    "Task",
    "TaskConfig",
    "Translate",
    "TranslateConfig",
    "Writing",
]
