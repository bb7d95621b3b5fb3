"""The look-ahead: the same things in the same order, made early, and made anew after a jump."""

import threading
import time

import pytest

from regard.data.prefetch import Prefetch


@pytest.mark.parametrize("workers", [0, 1, 2, 5])
def test_gives_what_is_asked_for(workers: int) -> None:
    ahead = Prefetch(lambda place: place * place, lambda place: place + 1, workers)
    assert [ahead(n) for n in range(20)] == [n * n for n in range(20)]
    assert [ahead(n) for n in (7, 8, 3, 3, 100, 0)] == [49, 64, 9, 9, 10_000, 0]
    ahead.close()


@pytest.mark.parametrize("workers", [1, 3])
def test_is_ahead_but_not_far(workers: int) -> None:
    made: list[int] = []
    ahead = Prefetch(lambda place: made.append(place), lambda place: place + 1, workers)
    ahead(0)
    deadline = time.monotonic() + 5
    while len(made) < 1 + 2 * workers and time.monotonic() < deadline:
        time.sleep(0.01)
    ahead.close()
    assert sorted(made) == list(range(1 + 2 * workers))


def test_works_in_other_threads() -> None:
    ahead = Prefetch(lambda place: threading.current_thread().name, lambda place: place + 1, 1)
    assert ahead(0).startswith("loader")
    ahead.close()


def test_a_fault_comes_out_where_it_is_asked_for() -> None:
    def make(place: int) -> int:
        if place == 2:
            raise ValueError("spoilt")
        return place

    ahead = Prefetch(make, lambda place: place + 1, 1)
    assert [ahead(0), ahead(1)] == [0, 1]
    with pytest.raises(ValueError, match="spoilt"):
        ahead(2)
    assert ahead(3) == 3
    ahead.close()
