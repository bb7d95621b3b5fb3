"""What the data decides about a model: sizes learnt by the task, never written into a config."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Dims:
    source_vocab: int
    target_vocab: int = 0
    joint: bool = False
    """Source and target share one vocabulary."""
    classes: int = 0
    tags: tuple[str, ...] = ()
    """By name, as names say what may follow what."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tags", tuple(self.tags))  # JSON has lists only
