"""What training says while it goes. Logging, drawing and stopping are the caller's for-loop."""

from dataclasses import dataclass, field
from pathlib import Path

from regard.data.batching import Place


@dataclass(frozen=True)
class Encoding:
    """Training rows are being encoded for the first time."""

    rows: int
    """So far."""
    seconds: float


@dataclass(frozen=True)
class Prepared:
    """The data is read, the model is built, nothing is trained yet."""

    run: Path
    n_train: int
    n_left_out: int
    unusable: str
    """What these are."""
    n_valid: int
    n_parameters: int
    n_learning: int
    """Parameters that are not frozen."""
    model: str
    device: str
    resumed_step: int = 0
    """Where an earlier part of this run stopped."""


@dataclass(frozen=True)
class Step:
    step: int
    epoch: int
    loss: float
    """Per token (or per text), not smoothed."""
    lr: float
    grad_norm: float
    tokens: int
    """What was learnt from in this step, padding not counted, in units of `unit`."""
    unit: str
    """"tokens", "texts": what the loss is a mean over."""
    seconds: float
    """Since the start, evaluation included; adds up over resumes."""
    progress: float
    """Share of the whole, by the nearest limit; 0 when there is none."""
    waited: float = 0.0
    """Seconds for the batch to be ready,"""
    took: float = 0.0
    """and to learn from it."""


@dataclass(frozen=True)
class Split:
    """Batches go through the model in this many parts, to fit into memory; the result is the same."""

    step: int
    parts: int


@dataclass(frozen=True)
class Evaluated:
    step: int
    metrics: dict[str, float]
    best: bool
    seconds: float
    took: float
    samples: tuple[dict[str, str], ...] = ()
    """Input, expected answer and answer of the first few examples."""


@dataclass(frozen=True)
class Saved:
    step: int
    path: Path
    took: float = 0.0


@dataclass(frozen=True)
class SaveFailed:
    """The checkpoint could not be written; the one before is as it was, and training goes on."""

    step: int
    why: str
    in_a_row: int


@dataclass(frozen=True)
class SetAside:
    """A damaged checkpoint was found and renamed; the one before is used."""

    path: Path
    fault: str
    moved_to: Path


@dataclass(frozen=True)
class Skipped:
    """Loss or gradient was not finite, or the loss a spike: the weights were left as they were."""

    step: int
    place: Place
    rows: tuple[str, ...]
    """Where the examples of the batch came from, as file:line."""
    loss: float
    grad_norm: float
    total: int
    """Updates left out since the beginning."""


@dataclass(frozen=True)
class RolledBack:
    """Several updates in a row were left out: back to a checkpoint, and past the batches that led here."""

    step: int
    """Where training goes on from."""
    from_step: int
    excluded: tuple[Place, ...]


@dataclass(frozen=True)
class Scoring:
    """Training is over; this split is being scored as the recipe searches, which may take a while."""

    step: int
    split: str


@dataclass(frozen=True)
class Finished:
    step: int
    reason: str
    seconds: float
    best_step: int
    chosen: str
    """Which weights were kept: the best checkpoint's, or the average of the last ones."""
    metrics: dict[str, float] = field(default_factory=dict)
    """On the validation data, searched as the recipe says."""
    signatures: dict[str, str] = field(default_factory=dict)
    """How they were computed."""


Event = (
    Encoding
    | Prepared
    | Split
    | Step
    | Evaluated
    | Saved
    | SaveFailed
    | SetAside
    | Skipped
    | RolledBack
    | Scoring
    | Finished
)
