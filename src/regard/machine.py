"""The machine this runs on, as far as sizes depend on it."""

import os
from dataclasses import dataclass
from typing import Self

import torch


@dataclass(frozen=True)
class Machine:
    cores: int
    memory: int
    """Bytes of main memory."""
    gpu: bool

    @classmethod
    def here(cls) -> Self:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return cls(os.cpu_count() or 1, memory, torch.cuda.is_available())
