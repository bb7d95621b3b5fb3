"""One file = one task: what the loss, the metric and the prediction mean."""

from typing import Annotated, Any

from pydantic import Field

from regard.tasks.classify import Classify, ClassifyConfig
from regard.tasks.task import Task
from regard.tasks.translate import Translate, TranslateConfig

TaskConfig = Annotated[TranslateConfig | ClassifyConfig, Field(discriminator="kind")]
TASKS: dict[str, type[Translate] | type[Classify]] = {"translate": Translate, "classify": Classify}

AnyTask = Task[Any, Any, Any, Any]

__all__ = [
    "TASKS",
    "AnyTask",
    "Classify",
    "ClassifyConfig",
    "Task",
    "TaskConfig",
    "Translate",
    "TranslateConfig",
]
