"""A task that `src` has never heard of: labels again, under another name and with another route."""

from typing import Any, ClassVar, Literal

from regard.tasks.classify import Classify, ClassifyConfig


class SortingConfig(ClassifyConfig):
    """A text in, the box it goes to out."""

    kind: Literal["toy_sorting"] = "toy_sorting"  # type: ignore[assignment]


class Sorting(Classify):
    kind: ClassVar[str] = "toy_sorting"
    settings: ClassVar[type[Any]] = SortingConfig
    called: ClassVar[str] = "a sorter"
    route: ClassVar[str] = "sort"
