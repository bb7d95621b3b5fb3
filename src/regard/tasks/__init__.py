"""One file = one task: what the loss, the metric and the prediction mean."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from regard.config import Choice
from regard.errors import DataError
from regard.files.captions import gathered
from regard.files.columns import Column
from regard.files.lines import Refuse, refuse_at_once
from regard.files.read import read_rows
from regard.files.row import Row
from regard.tasks.answer import Answer, AnswerConfig
from regard.tasks.caption import CaptionConfig, Captioning
from regard.tasks.classify import Classify, ClassifyConfig
from regard.tasks.classify_pair import ClassifyPair, ClassifyPairConfig
from regard.tasks.dialogue import Dialogue, DialogueConfig
from regard.tasks.forecast import Forecast, ForecastConfig
from regard.tasks.language_model import LanguageModel, LanguageModelConfig
from regard.tasks.multilabel import Multilabel, MultilabelConfig
from regard.tasks.pretrain import Pretrain, PretrainConfig
from regard.tasks.recommend import Recommend, RecommendConfig
from regard.tasks.relation import Relation, RelationConfig
from regard.tasks.summarize import Summarize, SummarizeConfig
from regard.tasks.tag import Tag, TagConfig
from regard.tasks.task import Task, TaskSettings
from regard.tasks.transcribe import Transcribe, TranscribeConfig
from regard.tasks.translate import Translate, TranslateConfig
from regard.tasks.writing import Writing

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
    Recommend,
    Forecast,
    Transcribe,
    Captioning,
)
TASKS: dict[str, type[AnyTask]] = {task.kind: task for task in _ALL}
TaskConfig = Annotated[TaskSettings, Choice(TASKS, lambda task: task.settings)]
"""Settings of a task in a recipe: those of one of TASKS."""


def task_rows(
    config: TaskConfig,
    paths: Sequence[str],
    columns: Mapping[str, Column | None],
    *,
    encoding: str = "utf-8",
    base: Path | None = None,
    refuse: Refuse = refuse_at_once,
    learnt: bool = False,
) -> Iterator[Row]:
    """Yields the rows of files, read as this task reads them.

    Only of files that are learnt from are histories with too few interactions left out.
    """
    task, grouping = TASKS[config.kind], config.grouping
    records = read_rows(
        paths,
        columns,
        fields=config.unfitted,
        encoding=encoding,
        base=base,
        documents=config.document,
        grouping=grouping if learnt or grouping is None else grouping.whole,
        measured=config.measured,
        refuse=refuse,
    )
    if config.gathered is not None and columns.keys() == set(config.roles):
        records = gathered(records, *config.gathered)
    for record in records:
        try:
            yield from task.rows(record) if columns.keys() == set(config.roles) else [record]
        except DataError as fault:
            refuse(fault)


__all__ = [
    "TASKS",
    "Answer",
    "AnswerConfig",
    "AnyTask",
    "CaptionConfig",
    "Captioning",
    "Classify",
    "ClassifyConfig",
    "ClassifyPair",
    "ClassifyPairConfig",
    "Dialogue",
    "DialogueConfig",
    "Forecast",
    "ForecastConfig",
    "LanguageModel",
    "LanguageModelConfig",
    "Multilabel",
    "MultilabelConfig",
    "Pretrain",
    "PretrainConfig",
    "Recommend",
    "RecommendConfig",
    "Relation",
    "RelationConfig",
    "Summarize",
    "SummarizeConfig",
    "Tag",
    "TagConfig",
    "Task",
    "TaskConfig",
    "Transcribe",
    "TranscribeConfig",
    "Translate",
    "TranslateConfig",
    "Writing",
    "task_rows",
]
