"""One file = one task: what the loss, the metric and the prediction mean."""

from typing import Annotated, Any

from pydantic import Field

from regard.tasks.classify import Classify, ClassifyConfig
from regard.tasks.tag import Tag, TagConfig
from regard.tasks.task import Task
from regard.tasks.translate import Translate, TranslateConfig

TaskConfig = Annotated[TranslateConfig | ClassifyConfig | TagConfig, Field(discriminator="kind")]
TASKS: dict[str, type[Translate] | type[Classify] | type[Tag]] = {
    task.kind: task for task in (Translate, Classify, Tag)
}

AnyTask = Task[Any, Any, Any, Any]

__all__ = [
    "TASKS",
    "AnyTask",
    "Classify",
    "ClassifyConfig",
    "Tag",
    "TagConfig",
    "Task",
    "TaskConfig",
    "Translate",
    "TranslateConfig",
]
