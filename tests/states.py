"""What a training would lose."""

import torch

from regard.training.state import Training


def state(training: Training) -> list[torch.Tensor]:
    """Weights and moments as they are now."""
    slots = [training.optimizer.state[parameter] for parameter in training.model.parameters()]
    moments = [slot[kind] for slot in slots for kind in sorted(slot)]
    return [tensor.clone() for tensor in (*training.model.state_dict().values(), *moments)]
