"""Every invariant holds with the shadow kernels for a CPU and without them."""

import pytest


@pytest.fixture(autouse=True)
def _both_ways(cpu_kernels: bool) -> None:
    pass
