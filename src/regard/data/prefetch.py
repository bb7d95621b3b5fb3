"""Prefetching: the next batches are made in threads while the current one is used."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

P = TypeVar("P")
T = TypeVar("T")


class Prefetch(Generic[P, T]):
    """Calls `make(place)` in threads before it is needed; their number changes nothing but time.

    Places are expected in the order of `after`; any other is made when it is requested.
    """

    def __init__(self, make: Callable[[P], T], after: Callable[[P], P], workers: int) -> None:
        self._make, self._after, self._workers = make, after, workers
        self._threads = ThreadPoolExecutor(workers, "loader") if workers else None
        self._begun: deque[tuple[P, Future[T]]] = deque()

    def __call__(self, place: P) -> T:
        if self._threads is None:
            return self._make(place)
        if not self._begun or self._begun[0][0] != place:
            self._forget()
            self._begin(place)
        _, future = self._begun.popleft()
        while len(self._begun) < 2 * self._workers:
            self._begin(self._after(self._begun[-1][0] if self._begun else place))
        return future.result()

    def _begin(self, place: P) -> None:
        assert self._threads is not None
        self._begun.append((place, self._threads.submit(self._make, place)))

    def _forget(self) -> None:
        while self._begun:
            self._begun.pop()[1].cancel()

    def close(self) -> None:
        self._forget()
        if self._threads is not None:
            self._threads.shutdown()
