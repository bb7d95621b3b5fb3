"""SIGINT, SIGTERM and SIGHUP: heard at once, obeyed where nothing is lost.

While weights are being changed the first signal only leaves a note, which the loop reads between steps and
between validation batches; it then saves and goes. At any other time, and at the second signal, the
program goes at once: everything on disk is whole or absent. A SIGHUP that is ignored (nohup) stays so.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))


class Interrupted(KeyboardInterrupt):
    """Asked to stop by this signal."""

    def __init__(self, signum: int) -> None:
        super().__init__(signal.Signals(signum).name)
        self.signum = signum


@dataclass
class Stop:
    heard: int | None = None
    deferring: bool = False
    thrown: Interrupted | None = None

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Signals come here instead of ending the process; only a main thread can hear them."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {signum: signal.signal(signum, self._hear) for signum in _awaited()}
        try:
            yield
        except Exception as error:
            if self.thrown is None:
                raise
            raise self.thrown from error  # C code it met on its way up had made it an error of its own
        finally:
            for signum, handler in before.items():
                signal.signal(signum, handler)

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Inside, the first signal waits for `poll`."""
        self.deferring = True
        try:
            yield
        finally:
            self.deferring = False

    def poll(self) -> None:
        if self.heard is not None:
            raise Interrupted(self.heard)

    def _hear(self, signum: int, frame: FrameType | None) -> None:
        again, self.heard = self.heard is not None, signum
        if again or not self.deferring:
            self.thrown = Interrupted(signum)
            raise self.thrown


def _awaited() -> list[signal.Signals]:
    """All of them but a SIGHUP that whoever started us wants ignored."""
    return [
        signum
        for signum in SIGNALS
        if signum in (signal.SIGINT, signal.SIGTERM) or signal.getsignal(signum) is not signal.SIG_IGN
    ]
