"""Handling of SIGINT, SIGTERM and SIGHUP: stop where nothing is lost.

While weights are being updated the first signal is only recorded; the loop checks for it between steps and
between validation batches, then saves and stops. At any other time, and at the second signal, the program
stops at once: everything on disk is complete or absent. An ignored SIGHUP (nohup) stays ignored.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))


class Interrupted(KeyboardInterrupt):
    """Interruption by a signal."""

    def __init__(self, signum: int) -> None:
        super().__init__(signal.Signals(signum).name)
        self.signum = signum


@dataclass
class Stop:
    received: int | None = None
    deferring: bool = False
    thrown: Interrupted | None = None

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Install the signal handlers; outside the main thread, which alone can have them, do nothing."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {signum: signal.signal(signum, self._receive) for signum in _handled_signals()}
        try:
            yield
        except Exception as error:
            if self.thrown is None:
                raise
            raise self.thrown from error  # C code on its way up had replaced it by another error
        finally:
            for signum, handler in before.items():
                signal.signal(signum, handler)

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Context in which the first signal waits for `poll`."""
        self.deferring = True
        try:
            yield
        finally:
            self.deferring = False

    def poll(self) -> None:
        """Raise Interrupted if a signal is waiting."""
        if self.received is not None:
            raise Interrupted(self.received)

    def _receive(self, signum: int, frame: FrameType | None) -> None:
        is_second, self.received = self.received is not None, signum
        if is_second or not self.deferring:
            self.thrown = Interrupted(signum)
            raise self.thrown


def _handled_signals() -> list[signal.Signals]:
    """All signals, except a SIGHUP that the parent process has set to be ignored."""
    return [
        signum
        for signum in SIGNALS
        if signum in (signal.SIGINT, signal.SIGTERM) or signal.getsignal(signum) is not signal.SIG_IGN
    ]
