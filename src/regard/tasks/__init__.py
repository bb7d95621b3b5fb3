"""One file = one task: what the loss, the metric and the prediction mean."""

from typing import Annotated, Any

from pydantic import Field

from regard.files.dialogue import Turns
from regard.files.documents import By
from regard.files.lists import WORDS, Lists
from regard.files.source import Reading
from regard.models import GPTConfig, ModelConfig
from regard.tasks.answer import Answer, AnswerConfig
from regard.tasks.classify import Classify, ClassifyConfig
from regard.tasks.classify_pair import ClassifyPair, ClassifyPairConfig
from regard.tasks.dialogue import Dialogue, DialogueConfig
from regard.tasks.language_model import LanguageModel, LanguageModelConfig
from regard.tasks.multilabel import Multilabel, MultilabelConfig
from regard.tasks.pretrain import Pretrain, PretrainConfig
from regard.tasks.relation import Relation, RelationConfig
from regard.tasks.stream import reach
from regard.tasks.summarize import Summarize, SummarizeConfig
from regard.tasks.tag import Tag, TagConfig
from regard.tasks.task import Task, typed
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
AnyTask = Task[Any, Any, Any, Any]
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
SAMPLES = dict.fromkeys(TASKS, "your text") | {
    "relation": "an <e1>entity</e1> and <e2>another</e2>",
    "pretrain": "your [MASK]",
}
"""A text that each of them can answer."""


def asked(kind: str) -> str:
    """How what a task is asked stands on a command line."""
    return typed(TASKS[kind].inputs, SAMPLES[kind])


def documents(config: TaskConfig) -> By | None:
    """What a document of plain text is, for a task that reads documents."""
    return config.documents if isinstance(config, LanguageModelConfig | PretrainConfig) else None


def together(config: TaskConfig) -> str | None:
    """The role whose rows, where they follow one another and have the same in it, are held out together.

    So are those of one record.
    """
    return "context" if isinstance(config, AnswerConfig | DialogueConfig) else None


def wholes(config: TaskConfig) -> str:
    """What is held out as a whole."""
    if isinstance(config, AnswerConfig):
        return "contexts"
    if isinstance(config, DialogueConfig):
        return "conversations"
    return "rows" if documents(config) is None else "documents"


def records(config: TaskConfig) -> Turns | Lists | None:
    """What is no text in its records: the turns of a conversation; words, tags or labels."""
    match config:
        case DialogueConfig():
            return Turns(config.separator)
        case TagConfig():
            return WORDS
        case MultilabelConfig():
            return Lists({"label": config.separator})
    return None


def reading(config: TaskConfig) -> Reading | None:
    """How its files are read, where not every row is a record of texts."""
    return records(config) or documents(config)


def longest(config: TaskConfig, model: ModelConfig) -> int:
    """Pieces that a model must have positions for, beside the end."""
    if isinstance(config, DialogueConfig) and isinstance(model, GPTConfig):
        return reach(config.max_length) - 1
    return config.max_length


__all__ = [
    "SAMPLES",
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
    "asked",
    "documents",
    "longest",
    "reading",
    "records",
    "together",
    "wholes",
]
