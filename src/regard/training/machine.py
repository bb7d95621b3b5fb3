"""The machine this runs on, as far as sizes depend on it."""

import ctypes
import os
import resource
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import torch

CGROUPS = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")
KERNELS = 128
"""Remembered by oneDNN, and by torch once more."""


@dataclass(frozen=True)
class Machine:
    cores: int
    memory: int
    """Bytes of main memory that this process may use."""
    gpu: bool

    @classmethod
    def here(cls) -> Self:
        return cls(os.cpu_count() or 1, min(_limits()), torch.cuda.is_available())


def keep_freed_memory() -> None:
    """Freed tensors stay with the process, to be used again; it never gives anything back before it ends.

    Else glibc returns every large one to the system and asks for it anew, and each page is cleared again: a
    tenth of a small model's step.
    """
    mmap_max, trim_threshold, top_pad = -4, -1, -2
    with suppress(OSError, AttributeError):  # another C library
        libc = ctypes.CDLL(None)
        libc.mallopt(mmap_max, 0)
        libc.mallopt(trim_threshold, 2**31 - 1)
        libc.mallopt(top_pad, 2**26)


def keep_few_kernels() -> None:
    """Of products in bfloat16, which have one for every shape: 1,024 are kept in each of two places, half a
    megabyte each, and batches of text have ever new shapes. What this leaves is enough for those of a few
    steps. It must be said before the first product.
    """
    for where in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(where, str(KERNELS))


def has_bfloat16(device: torch.device) -> bool:
    """Whether there are units for it; without, it is emulated, several times slower than single precision."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return device.type == "cpu" and any(
        (torch.cpu._is_avx512_bf16_supported(), torch.cpu._is_amx_tile_supported())
    )


def _limits() -> Iterator[int]:
    """What there is, what a container or a batch system grants, what `ulimit -v` allows."""
    yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        granted = resource.getrlimit(limit)[0]
        if granted != resource.RLIM_INFINITY:
            yield granted
    for file in _cgroup_files():
        with suppress(OSError, ValueError):  # "max" is no number, and no limit
            yield int(file.read_text())


def _cgroup_files() -> Iterator[Path]:
    """Of version 2 and of version 1; those of the groups around this one count as well."""
    lines: list[str] = []
    with suppress(OSError):
        lines = OWN.read_text().splitlines()
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if controllers in ("", "memory"):
            root = CGROUPS / controllers
            own = root / group.lstrip("/")
            name = "memory.limit_in_bytes" if controllers else "memory.max"
            yield from (folder / name for folder in (own, *own.parents) if folder.is_relative_to(root))
