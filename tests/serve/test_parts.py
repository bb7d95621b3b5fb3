"""The parts that need no server: what goes together, frames, limits."""

import asyncio
import os
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from regard.errors import ServeError
from regard.serve.counts import Counts
from regard.serve.engine import PACKED_BYTES, PLAIN_BYTES, SEEN_BYTES, attention_bytes, named
from regard.serve.framing import pack, read, receive
from regard.serve.job import Job, chosen
from regard.serve.limits import Limits
from regard.serve.model_queue import ModelQueue
from regard.serve.request_error import RequestError


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


@pytest.mark.parametrize("alone", [{"purpose": "follow"}, {"purpose": "explain"}, {"tries": 1}])
def test_some_go_alone(alone: dict[str, Any]) -> None:
    assert picked([{"text": "a", **alone}, {"text": "b", **alone}]) == ["a"]
    assert picked([{"text": "a"}, {"text": "b", **alone}, {"text": "c"}]) == ["a", "c"]


async def under_load(n_large: int, addresses: int) -> tuple[int, int, int, int]:
    """Refusals of small requests, the batches the slowest of them waited, refusals and answers of large ones.

    Clients send 64 texts again and again; another sends one text, and the next when it is answered.
    """
    lane = ModelQueue("a", Path("a"), Limits(), Counts(), 1)
    asking: dict[int, list[Job]] = {}
    refused, slowest, large_refused, large_answered, sent = 0, 0, 0, 0, 0
    for batch in range(300):
        for client in range(n_large + 1):
            is_small = client == n_large
            if all(job.answer.done() for job in asking.get(client, [])):
                large_answered += 64 * (not is_small and client in asking)
                jobs = [
                    Job("x" * (5 + client), client="small" if is_small else str(client % addresses))
                    for _ in range(1 if is_small else 64)
                ]
                asking.pop(client, None)
                try:
                    lane.submit(jobs)
                except RequestError:
                    refused, large_refused = refused + is_small, large_refused + (not is_small)
                else:
                    asking[client], sent = jobs, batch if is_small else sent
        now = chosen(lane.waiting, lane.limits)
        lane.round = max(lane.round, now[0].round)
        for job in now:
            lane.waiting.pop(job)
            job.answer.set_result({})
        await asyncio.sleep(0)
        if all(job.answer.done() for job in asking.get(n_large, [])):
            slowest = max(slowest, batch - sent)
    return refused, slowest, large_refused, large_answered


@pytest.mark.parametrize("addresses", [1, 8])
def test_large_requests_starve_no_small_one(addresses: int) -> None:
    """It waits for two batches at most, and the worker is never idle."""
    refused, slowest, _, large_answered = run(under_load(8, addresses))
    assert refused == 0
    assert slowest <= 2
    assert large_answered > 0.9 * 300 * 63


def test_a_client_has_no_more_than_its_share_while_others_wait() -> None:
    async def inside() -> None:
        lane = ModelQueue("a", Path("a"), Limits(queue=100), Counts(), 1)
        for _ in range(100):
            lane.submit([Job("x", client="greedy")])
        lane.waiting = dict.fromkeys(list(lane.waiting)[:60])
        lane.submit([Job("x", client="other")])
        with pytest.raises(RequestError, match="busy"):
            lane.submit([Job("x", client="greedy")])
        for _ in range(39):
            lane.submit([Job("x", client="other")])
        with pytest.raises(RequestError, match="busy"):
            lane.submit([Job("x", client="third")])

    run(inside())


def test_rounds_take_one_text_of_every_request_and_small_requests_first() -> None:
    async def inside() -> list[str]:
        lane = ModelQueue("a", Path("a"), Limits(batch_texts=1), Counts(), 1)
        lane.submit([Job(f"large {number}") for number in range(3)])
        order = []
        for arrival in (["early"], [], ["late"], [], [], []):
            if arrival:
                lane.submit([Job(text) for text in arrival])
            (job,) = chosen(lane.waiting, lane.limits)
            lane.round = max(lane.round, job.round)
            lane.waiting.pop(job)
            order.append(job.text)
            if not lane.waiting:
                break
        return order

    assert run(inside()) == ["early", "large 0", "late", "large 1", "large 2"]


@pytest.mark.parametrize("is_left", [False, True])
def test_what_is_answered_takes_no_room_and_what_is_left_does(is_left: bool) -> None:
    """Until the worker, which may be slow to say so, is done."""

    async def inside() -> None:
        lane = ModelQueue("a", Path("a"), Limits(explain_bytes=100), Counts(), 1)
        job = Job("x", "explain", n_bytes=60)
        lane.submit([job])
        lane.waiting, lane.computing = {}, [job]
        with pytest.raises(RequestError, match="busy"):
            lane.submit([Job("y", "explain", n_bytes=60)])
        if is_left:
            job.answer.cancel()
            with pytest.raises(RequestError, match="busy"):
                lane.submit([Job("y", "explain", n_bytes=60)])
        else:
            job.answer.set_result({})
            lane.submit([Job("y", "explain", n_bytes=60)])
            assert len(lane.jobs) == 1

    run(inside())


def test_frames_arrive_as_they_were_sent() -> None:
    message = {"texts": ["白鹭\ud800\n\x00", "x" * 100_000], "n": 1.5, "none": None}
    source, sink = os.pipe()

    async def inside() -> dict[str, Any]:
        stream = asyncio.StreamReader()
        stream.feed_data(pack(message) + pack({}))
        first = await receive(stream)
        assert await receive(stream) == {}
        stream.feed_eof()
        with pytest.raises(asyncio.IncompleteReadError):
            await receive(stream)
        return first

    assert run(inside()) == message
    os.write(sink, pack({"a": ["é"]}) + b"\x00\x00")
    os.close(sink)
    assert read(source) == {"a": ["é"]}
    assert read(source) is None
    os.close(source)


def test_two_runs_of_one_name(tmp_path: Any) -> None:
    assert list(named([tmp_path / "a", tmp_path / "b"])) == ["a", "b"]
    with pytest.raises(ServeError, match="another run is called 'a' too, and models are asked for by name"):
        named([tmp_path / "a", tmp_path / "b" / "a"])


NOTHING: Mapping[str, Any] = {}


def estimated(text: str, asked: Mapping[str, Any] = NOTHING, *, packed: bool = False, **about: Any) -> int:
    search = {"max_length": None, "min_length": 0, "max_ratio": 2.0}
    usual = {"max_length": 1022, "heads": 144, "vocabulary": 0, "decode": search, "stream": 0}
    return attention_bytes(usual | about, search | dict(asked), text, packed=packed)


def test_attention_to_an_answer_is_estimated_by_how_long_it_may_get() -> None:
    plain, packed = SEEN_BYTES + PLAIN_BYTES, SEEN_BYTES + PACKED_BYTES
    long = {"max_length": 1000, "min_length": 999}
    assert estimated("hi", long) == 144 * 1001**2 * plain
    assert estimated("hi", long, packed=True) == 144 * 1001**2 * packed
    assert estimated("hi", {"min_length": 500}, packed=True) == 144 * 501**2 * packed
    assert estimated("hi", {"max_ratio": 100}, packed=True) == 144 * 410**2 * packed
    assert estimated("x" * 98, packed=True) == 144 * 210**2 * packed
    assert estimated("x" * 5000, {"max_ratio": 100}, packed=True) == 144 * 1024**2 * packed


def test_a_model_that_answers_at_once_attends_to_its_text_alone() -> None:
    assert estimated("x" * 98, decode=None) == 144 * 100**2 * (SEEN_BYTES + PLAIN_BYTES)


def test_a_model_that_reads_its_own_answer_attends_to_text_and_answer() -> None:
    at_most = {"max_length": 99}
    shown = SEEN_BYTES * 200**2 + PLAIN_BYTES * 100 * 200
    assert estimated("x" * 98, at_most, stream=1024) == 144 * shown
    assert estimated("é" * 49, at_most, stream=1024) == 144 * shown, "pieces may be bytes"
    whole = SEEN_BYTES * 1024**2 + PLAIN_BYTES * 1024 * 1024
    assert estimated("hi", stream=1024) == 144 * whole, "nothing says where it ends"
    assert estimated("x" * 5000, stream=2048) == 144 * (SEEN_BYTES * 2048**2 + PLAIN_BYTES * 1024 * 2048)
