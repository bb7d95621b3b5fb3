"""What all tests share: a fixed seed and one thread. Tiny models and corpora are in tiny.py."""

import pytest
import torch

torch.set_num_threads(1)  # tiny tensors, and bits that do not depend on the machine


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(20170612)
