"""What a training would lose."""

from collections.abc import Callable

import torch

from regard.training.events import Saved
from regard.training.loop import run
from regard.training.state import Training


def state(training: Training) -> list[torch.Tensor]:
    """Weights and moments as they are now."""
    slots = [training.optimizer.state[parameter] for parameter in training.model.parameters()]
    moments = [slot[kind] for slot in slots for kind in sorted(slot)]
    return [tensor.clone() for tensor in (*training.model.state_dict().values(), *moments)]


def whole_and_resumed(make: Callable[..., Training], **plan: object) -> tuple[Training, Training]:
    """A training of eight steps that nobody disturbed, and one that was cut after the third."""
    plan = {"max_steps": 8, "eval_every": 4, "save_every": 1} | plan
    whole = make("whole", **plan)
    list(run(whole))
    for event in run(make("cut", **plan)):
        if isinstance(event, Saved) and event.step == 3:
            break
    again = make("cut", model_seed=9, **plan)
    again.resume()
    list(run(again))
    return whole, again
