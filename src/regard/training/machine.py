"""The machine: cores, memory, bfloat16 units, and settings of its allocator and kernel caches."""

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
PROCESS_GROUPS = Path("/proc/self/cgroup")
CACHED_KERNELS = 128
"""Kernels cached by oneDNN, and again by torch."""


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
    """Keep freed memory in the process for reuse, until it ends.

    Otherwise glibc returns every large tensor to the system and requests it again, and each page is cleared
    anew: a tenth of a small model's step.
    """
    mmap_max, trim_threshold, top_pad = -4, -1, -2
    with suppress(OSError, AttributeError):  # another C library
        libc = ctypes.CDLL(None)
        libc.mallopt(mmap_max, 0)
        libc.mallopt(trim_threshold, 2**31 - 1)
        libc.mallopt(top_pad, 2**26)


def limit_kernel_cache() -> None:
    """Limit the caches of bfloat16 kernels; it must be called before the first matrix product.

    There is one kernel for every shape, and batches of text keep having new shapes. By default two caches of
    1,024 kernels of half a megabyte fill up; this limit is enough for a few steps.
    """
    for variable in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(variable, str(CACHED_KERNELS))


def has_bfloat16(device: torch.device) -> bool:
    """True if the hardware supports bfloat16; emulation is several times slower than single precision."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return device.type == "cpu" and any(
        (torch.cpu._is_avx512_bf16_supported(), torch.cpu._is_amx_tile_supported())
    )


def _limits() -> Iterator[int]:
    """Limits in bytes: physical memory, `ulimit -v` and `-d`, and those of containers or batch systems."""
    yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        soft = resource.getrlimit(limit)[0]
        if soft != resource.RLIM_INFINITY:
            yield soft
    for file in _cgroup_files():
        with suppress(OSError, ValueError):  # "max" means no limit
            yield int(file.read_text())


def _cgroup_files() -> Iterator[Path]:
    """Limit files of this process's cgroups, version 1 or 2, and of the groups that contain them."""
    lines: list[str] = []
    with suppress(OSError):
        lines = PROCESS_GROUPS.read_text().splitlines()
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if controllers in ("", "memory"):
            root = CGROUPS / controllers
            folder = root / group.lstrip("/")
            name = "memory.limit_in_bytes" if controllers else "memory.max"
            yield from (each / name for each in (folder, *folder.parents) if each.is_relative_to(root))
