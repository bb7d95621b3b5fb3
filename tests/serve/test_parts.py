"""The parts that need no server: what goes together, frames, limits."""

import asyncio
import os
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from regard.errors import ServeError
from regard.serve.engine import named
from regard.serve.job import Job, chosen
from regard.serve.limits import Limits
from regard.serve.wire import packed, read, received


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """In a thread of its own: the browser of other tests keeps a loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def picked(jobs: list[dict[str, Any]], **limits: Any) -> list[str]:
    """The texts of the batch that would be computed first."""

    async def inside() -> list[str]:
        return [job.text for job in chosen([Job(**fields) for fields in jobs], Limits(**limits))]

    return run(inside())


def texts(*lengths: int, **fields: Any) -> list[dict[str, Any]]:
    return [{"text": "x" * length, **fields} for length in lengths]


def test_the_oldest_goes_first_with_those_of_its_length() -> None:
    assert sorted(map(len, picked(texts(10, 90, 11, 80, 9), batch_texts=3))) == [9, 10, 11]


def test_a_batch_is_bounded_in_texts_characters_and_beams() -> None:
    assert len(picked(texts(*[7] * 100))) == 64
    assert len(picked(texts(*[1000] * 100))) == 32
    assert len(picked(texts(*[7] * 100, width=16))) == 32
    assert len(picked(texts(*[7] * 100), batch_texts=1)) == 1
    assert picked(texts(5000, 5000), batch_characters=100) == ["x" * 5000]


def test_only_the_same_settings_go_together() -> None:
    mixed = [{"text": "a", "decode": {"beam": 2, "seed": 1}}, {"text": "b", "decode": {"beam": 3, "seed": 1}}]
    assert picked([*mixed, {"text": "c", "decode": {"seed": 1, "beam": 2}}]) == ["a", "c"]


@pytest.mark.parametrize("alone", [{"kind": "follow"}, {"kind": "explain"}, {"tries": 1}])
def test_some_go_alone(alone: dict[str, Any]) -> None:
    assert picked([{"text": "a", **alone}, {"text": "b", **alone}]) == ["a"]
    assert picked([{"text": "a"}, {"text": "b", **alone}, {"text": "c"}]) == ["a", "c"]


def test_frames_arrive_as_they_were_sent() -> None:
    message = {"texts": ["白鹭\ud800\n\x00", "x" * 100_000], "n": 1.5, "none": None}
    source, sink = os.pipe()

    async def inside() -> dict[str, Any]:
        stream = asyncio.StreamReader()
        stream.feed_data(packed(message) + packed({}))
        first = await received(stream)
        assert await received(stream) == {}
        stream.feed_eof()
        with pytest.raises(asyncio.IncompleteReadError):
            await received(stream)
        return first

    assert run(inside()) == message
    os.write(sink, packed({"a": ["é"]}) + b"\x00\x00")
    os.close(sink)
    assert read(source) == {"a": ["é"]}
    assert read(source) is None
    os.close(source)


def test_two_runs_of_one_name(tmp_path: Any) -> None:
    assert list(named([tmp_path / "a", tmp_path / "b"])) == ["a", "b"]
    with pytest.raises(ServeError, match="another run is called 'a' too, and models are asked for by name"):
        named([tmp_path / "a", tmp_path / "b" / "a"])
