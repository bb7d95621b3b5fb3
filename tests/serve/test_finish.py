"""An answer leaves when its own search has ended, whatever the rest of its batch still needs."""

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import regard
from hostile import reset
from served import Reply, Served, open_request, served, until
from tiny import endless, rnn, untrained

SHORT, LONG = "fog", "the grey heron stands " * 80
"""The model writes as much as it may: 14 pieces for one, 652 for the other."""
GATHERED = 0.5
"""Seconds that a text waits for company: what is sent at once is one batch."""
WAYS: list[dict[str, Any]] = [
    {"beam": 1},
    {"beam": 4, "n_best": 3},
    {"beam": 4, "groups": 2, "n_best": 2},
    {"sample": True, "n_best": 2, "seed": 5},
]
BACK = 60
"""Seconds for a new worker, even on a machine that is busy."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    trained = untrained(rnn(), max_length=1500)
    endless(trained.model)
    path = tmp_path_factory.mktemp("models") / "wordy"
    trained.save(path)
    return path


@pytest.fixture(scope="module")
def server(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    log = tmp_path_factory.mktemp("wordy") / "log"
    with served([folder], log, limits={"gather_seconds": GATHERED}) as running:
        yield running
    assert log.read_text() == ""


@pytest.fixture(scope="module")
def offline(folder: Path) -> regard.Trained:
    return regard.load(folder)


Timed = tuple[float, Reply]


@contextmanager
def asked(server: Served, *requests: str | list[str], **decode: Any) -> Iterator[list["Future[Timed]"]]:
    """All at once; each is answered with the seconds from the beginning of its batch."""
    began = time.monotonic() + GATHERED

    def client(text: str | list[str]) -> Timed:
        reply = server.post("/v1/translate", text=text, decode=decode)
        return time.monotonic() - began, reply

    with ThreadPoolExecutor(len(requests)) as pool:
        yield [pool.submit(client, request) for request in requests]


METRICS = {
    "batches": "regard_batch_texts_count",
    "texts": "regard_batch_texts_sum",
    "dropped": "regard_dropped_texts_total",
    "lost": "regard_lost_workers_total",
}
ANSWERED = 'regard_requests_total{route="/v1/translate",status="200"}'


def counts(server: Served) -> dict[str, float]:
    return {name: server.metric(metric) for name, metric in METRICS.items()}


def since(server: Served, before: dict[str, float]) -> dict[str, float]:
    """What was counted, where anything was."""
    return {name: more for name, now in counts(server).items() if (more := now - before[name])}


@pytest.mark.parametrize("decode", WAYS, ids=str)
def test_a_short_text_does_not_wait_for_a_long_one(
    server: Served, offline: regard.Trained, decode: dict[str, Any]
) -> None:
    before = counts(server)
    with asked(server, LONG, SHORT, **decode) as (long, short):
        took, reply = short.result()
        took_long, reply_long = long.result()
    assert since(server, before) == {"batches": 1, "texts": 2}
    assert took < took_long / 2
    expected = [answer.to_json() for answer in offline.predict([LONG, SHORT], **decode)]
    assert [*reply_long.json["answers"], *reply.json["answers"]] == expected


def test_a_request_is_answered_when_all_of_its_texts_are(server: Served, offline: regard.Trained) -> None:
    slow, quick = ["fog lies", LONG, SHORT], ["the river", "fog lies"]
    before = counts(server)
    with asked(server, slow, quick, beam=2) as (long, short):
        took, reply = short.result()
        took_long, reply_long = long.result()
    assert since(server, before) == {"batches": 1, "texts": 5}
    assert took < took_long / 2
    answers = [*reply_long.json["answers"], *reply.json["answers"]]
    expected = offline.predict([*slow, *quick], beam=2)
    assert [answer["text"] for answer in answers] == [answer.text for answer in expected]
    assert [answer["score"] for answer in answers] == pytest.approx([one.score for one in expected], abs=1e-3)


def test_a_worker_that_dies_is_asked_again_only_for_what_it_owes(
    server: Served, offline: regard.Trained
) -> None:
    before, answered, victim = counts(server), server.metric(ANSWERED), server.worker("wordy")
    assert victim is not None
    with asked(server, LONG, SHORT, beam=4) as (long, short):
        _, reply = short.result()
        os.kill(victim, signal.SIGKILL)
        assert not long.done()
        _, reply_long = long.result()
    until(lambda: server.get("/ready").status == 200, BACK)
    assert since(server, before) == {"batches": 2, "texts": 3, "lost": 1}, "both, then the long one alone"
    assert server.metric(ANSWERED) - answered == 2
    assert reply.json["answers"] == [offline.predict([LONG, SHORT], beam=4)[1].to_json()]
    assert reply_long.json["answers"] == [offline.predict(LONG, beam=4).to_json()]


def test_who_leaves_takes_along_only_what_was_not_answered(server: Served) -> None:
    before = counts(server)
    leaving = open_request(server, text=[LONG, SHORT], decode={"beam": 4})
    with asked(server, SHORT, beam=4) as (short,):
        assert short.result()[1].status == 200
    reset(leaving)
    until(lambda: "dropped" in since(server, before))
    assert since(server, before) == {"batches": 1, "texts": 3, "dropped": 1}
    assert server.post("/v1/translate", text=SHORT).status == 200
