"""Watching a search while it goes on: it runs in a thread, and what it tells comes out of an iterator."""

import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")


class _AbandonedError(Exception):
    """Nobody listens any more."""


@dataclass(frozen=True)
class _Found(Generic[T]):
    answer: T


def follow(search: Callable[[Callable[[str], None]], T]) -> Generator[str, None, T]:
    """What `search` tells, as it tells it, and at the end what it found; whoever stops listening stops it."""
    told: SimpleQueue[str | BaseException | _Found[T]] = SimpleQueue()
    gone = threading.Event()

    def tell(text: str) -> None:
        if gone.is_set():
            raise _AbandonedError
        told.put(text)

    def run() -> None:
        try:
            told.put(_Found(search(tell)))
        except _AbandonedError:
            pass
        except BaseException as error:  # it belongs to whoever listens
            told.put(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        while not isinstance(next_one := told.get(), _Found):
            if isinstance(next_one, BaseException):
                raise next_one
            yield next_one
        return next_one.answer
    finally:
        gone.set()
        thread.join()
