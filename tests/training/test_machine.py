"""The machine: what it grants, and that memory which is freed is used again."""

import subprocess
import sys
from pathlib import Path

import pytest

from regard.training import machine
from regard.training.machine import Machine

FAULTS = """
import resource, torch
from regard.training.machine import keep_freed_memory
{keep}
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    x, y = torch.ones(2**24), torch.ones(2**23)
    del x
    z = torch.ones(2**22)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(sum([faults() for _ in range(60)][-10:]))
"""
KERNELS = """
import ctypes
import torch
from regard.training.machine import limit_kernel_cache

class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (*"abcdefg", "used", *"hi")]

libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Info
{keep}
w_DF = torch.randn(64, 256, dtype=torch.bfloat16)
w_DF.T @ w_DF
before = libc.mallinfo2().used
for rows in range(17, 817):
    torch.ones(rows, 64, dtype=torch.bfloat16) @ w_DF
print(libc.mallinfo2().used - before)
"""


def test_a_container_or_batch_system_may_grant_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "user" / "job"
    own.mkdir(parents=True)
    monkeypatch.setattr(machine, "CGROUPS", tmp_path)
    monkeypatch.setattr(machine, "PROCESS_GROUPS", tmp_path / "own")
    (tmp_path / "own").write_text("4:cpu:/user\n0::/user/job\n")
    free = Machine.here().memory
    (own / "memory.max").write_text("max\n")
    assert Machine.here().memory == free
    (own.parent / "memory.max").write_text("123456789\n")
    assert Machine.here().memory == 123456789
    (tmp_path / "own").write_text("7:memory:/user/job\n")
    (tmp_path / "memory" / "user").mkdir(parents=True)
    (tmp_path / "memory" / "user" / "memory.limit_in_bytes").write_text("98765432\n")
    assert Machine.here().memory == 98765432


def test_freed_memory_is_used_again_without_asking_for_it() -> None:
    def pages(keep: str) -> int:
        code = FAULTS.format(keep=keep)
        return int(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout)

    assert pages("keep_freed_memory()") < pages("") / 3


def test_kernels_of_shapes_that_do_not_come_back_are_not_kept() -> None:
    """On a machine without units for bfloat16 there are none in the first place."""
    code = KERNELS.format(keep="limit_kernel_cache()")
    grown = int(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout)
    assert grown < 100 * 2**20, "444 MB if all are kept"
