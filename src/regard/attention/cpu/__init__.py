"""The switch of the shadow kernels: second implementations, for speed on a CPU and nothing else.

Each stands beside textbook code that computes the same, and is tested against it. `layers/cpu` lists all of
them; here are the two that attention itself calls, and with them the switch, because attention imports
nothing of ours but `linear`.
"""

from collections.abc import Iterator
from contextlib import contextmanager

_enabled = True


def enabled() -> bool:
    """True unless the textbook path was asked for."""
    return _enabled


@contextmanager
def disabled() -> Iterator[None]:
    """Runs the textbook path instead of every shadow kernel, in all threads of this process.

    A search decides when it starts: one that is under way goes on as it began.
    """
    global _enabled
    before, _enabled = _enabled, False
    try:
        yield
    finally:
        _enabled = before
