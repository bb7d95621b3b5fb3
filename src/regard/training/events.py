"""Events of a training; logging, drawing and stopping belong to the caller's for-loop."""

from dataclasses import dataclass, field
from pathlib import Path

from regard.data.batching import Place


@dataclass(frozen=True)
class Encoding:
    """Training rows are being encoded for the first time."""

    rows: int
    """Rows encoded so far."""
    seconds: float


@dataclass(frozen=True)
class Noted:
    """Something about the data is worth knowing before the training starts."""

    sentence: str


@dataclass(frozen=True)
class Prepared:
    """The data is read and the model built; training has not started."""

    run: Path
    n_train: int
    left_out: dict[str, int]
    """Why rows cannot be trained on, and how many for each reason."""
    n_valid: int
    n_parameters: int
    n_learning: int
    """Parameters that are not frozen."""
    model: str
    device: str
    resumed_step: int = 0
    """Step from which an interrupted run is resumed; 0 for a new run."""


@dataclass(frozen=True)
class Step:
    step: int
    epoch: int
    loss: float
    """Loss per token (or per text), without label smoothing."""
    lr: float
    grad_norm: float
    tokens: int
    """Tokens (or texts, see `unit`) in the batch, without padding."""
    unit: str
    """"tokens" or "texts": what the loss is averaged over."""
    seconds: float
    """Seconds since the start, evaluation and earlier parts of a resumed run included."""
    progress: float
    """Completed share of the training, by the nearest limit; 0 without one."""
    waited: float = 0.0
    """Seconds spent waiting for the batch."""
    took: float = 0.0
    """Seconds of the update itself."""


@dataclass(frozen=True)
class Split:
    """Batches are split into micro-batches to fit into memory; the result is the same."""

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
    """Inputs, expected answers and answers of the first few examples."""


@dataclass(frozen=True)
class Saved:
    step: int
    path: Path
    took: float = 0.0


@dataclass(frozen=True)
class SaveFailed:
    """A checkpoint could not be written; the previous one is intact, and training continues."""

    step: int
    why: str
    in_a_row: int


@dataclass(frozen=True)
class SetAside:
    """A damaged checkpoint was renamed; the previous one is used."""

    path: Path
    fault: str
    moved_to: Path


@dataclass(frozen=True)
class Skipped:
    """An update was skipped because loss or gradient was not finite, or the loss a spike."""

    step: int
    place: Place
    rows: tuple[str, ...]
    """Origins of the batch's examples, as file:line."""
    loss: float
    grad_norm: float
    total: int
    """Updates skipped so far."""


@dataclass(frozen=True)
class RolledBack:
    """Training returned to a checkpoint after several skipped updates; their batches are excluded."""

    step: int
    """Step of the checkpoint."""
    from_step: int
    excluded: tuple[Place, ...]


@dataclass(frozen=True)
class Scoring:
    """Training is over; a split is scored with the recipe's search, or baselines are: it may take a while."""

    step: int
    split: str


@dataclass(frozen=True)
class Finished:
    step: int
    reason: str
    seconds: float
    best_step: int
    chosen: str
    """Description of the weights that were kept: the best checkpoint, or the average of the last ones."""
    metrics: dict[str, float] = field(default_factory=dict)
    """Metrics on the validation data, with the recipe's search."""
    signatures: dict[str, str] = field(default_factory=dict)
    """Signatures of the metrics, such as sacreBLEU's."""


Event = (
    Encoding
    | Noted
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
