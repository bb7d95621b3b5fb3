"""What a worker sends when some of a batch are answered and others cannot be."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from regard.errors import RecipeError
from regard.serve.framing import Message, read
from regard.serve.worker import Worker


@dataclass(frozen=True)
class Loud:
    text: str

    def to_json(self) -> dict[str, Any]:
        return {"text": self.text.upper(), "score": float("nan")}


@dataclass
class Loudspeaker:
    """Answers the last text first, until it comes to one that it cannot answer."""

    asked: list[str] = field(default_factory=list)

    def as_completed(self, texts: list[str]) -> Iterator[tuple[int, Loud]]:
        for place, text in reversed([*enumerate(texts)]):
            if text == "refused":
                raise RecipeError("it cannot be said")
            if text == "broken":
                raise ValueError("secret")
            self.asked.append(text)
            yield place, Loud(text)


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    source, sink = os.pipe()
    yield source, sink
    os.close(sink)


def ask(*texts: str) -> Message:
    return {"kind": "answer", "texts": list(texts), "decode": {}, "packed": False, "uploads": []}


def test_what_fails_in_a_batch_is_asked_again_without_what_was_answered(
    pipe: tuple[int, int], capfd: pytest.CaptureFixture[str]
) -> None:
    source, sink = pipe
    model = Loudspeaker()
    worker = Worker(model, 0, sink)  # type: ignore[arg-type]
    worker.reply(ask("a", "refused", "b", "broken", "c"), range(5))
    worker.send({"done": True})
    frames = [read(source) for _ in range(6)]
    assert frames == [
        {"at": 4, "answer": {"text": "C", "score": None}},
        {"at": 0, "answer": {"text": "A", "score": None}},
        {"at": 1, "refused": "it cannot be said"},
        {"at": 2, "answer": {"text": "B", "score": None}},
        {"at": 3, "fault": "ValueError"},
        {"done": True},
    ]
    assert model.asked == ["c", "a", "b"]
    noted = capfd.readouterr().err
    assert noted.count("fault in a worker: ValueError") == 2
    assert "secret" not in noted
    os.close(source)


def test_a_parent_that_has_gone_is_no_fault_of_a_text(
    pipe: tuple[int, int], capfd: pytest.CaptureFixture[str]
) -> None:
    source, sink = pipe
    os.close(source)
    model = Loudspeaker()
    with pytest.raises(BrokenPipeError):
        Worker(model, 0, sink).reply(ask("a", "b"), range(2))  # type: ignore[arg-type]
    assert model.asked == ["b"]
    assert capfd.readouterr().err == ""
