"""Watching a search while it goes on: it runs in a thread, and what it tells comes out of an iterator."""

import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any


class _AbandonedError(Exception):
    """Nobody listens any more."""


def follow(search: Callable[[Callable[[str], None]], Any]) -> Iterator[str]:
    """What `search` tells, as it tells it; whoever stops listening stops it."""
    told: SimpleQueue[str | BaseException | None] = SimpleQueue()
    gone = threading.Event()

    def tell(text: str) -> None:
        if gone.is_set():
            raise _AbandonedError
        told.put(text)

    def run() -> None:
        try:
            search(tell)
            told.put(None)
        except _AbandonedError:
            pass
        except BaseException as error:  # it belongs to whoever listens
            told.put(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        while (next_one := told.get()) is not None:
            if isinstance(next_one, BaseException):
                raise next_one
            yield next_one
    finally:
        gone.set()
        thread.join()
