"""TensorBoard sink of training events; it needs `regard[track]`."""

from pathlib import Path

from regard.errors import RecipeError
from regard.training.events import Evaluated, Event, Step


class TensorBoardSink:
    def __init__(self, folder: Path, every: int) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise RecipeError(
                "train.tensorboard: needs tensorboard; install it with: pip install 'regard[track]'"
            ) from None
        self.every = every
        self.writer = SummaryWriter(str(folder))

    def __call__(self, event: Event) -> None:
        match event:
            case Step() if event.step % self.every == 0:
                for name in ("loss", "lr", "grad_norm"):
                    self._write(f"train/{name}", getattr(event, name), event.step)
                if event.took:
                    self._write(f"train/{event.unit} a second", event.tokens / event.took, event.step)
            case Evaluated():
                for name, value in event.metrics.items():
                    self._write(f"valid/{name}", value, event.step)

    def _write(self, name: str, value: float, step: int) -> None:
        self.writer.add_scalar(name, value, step)

    def close(self) -> None:
        self.writer.close()
