"""The process of one model: a frame with texts comes in, frames with answers go out, one batch at a time.

An answer goes as soon as its own search has ended, whatever the others of its batch still need. It has no
network and no queue: who waits, who has gone and what goes together is the parent's to know. It ends when its
input does, so a parent that is killed leaves no process behind.
"""

import os
import select
import sys
import traceback
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import regard
from regard.errors import DataError, RegardError, RunError
from regard.files.row import Asked
from regard.files.sound import pcm
from regard.serve.framing import Message, pack, read
from regard.text.sanitize import finite

Answered = Callable[[int, Message], None]
"""(place, answer): hears each answer once, in any order."""


class Worker:
    def __init__(self, trained: "regard.Trained", source: int, sink: int) -> None:
        self.trained, self.source, self.sink = trained, source, sink
        self.streams: dict[int, Any] = {}
        """What hears each open stream of sound."""

    def run(self) -> None:
        self.send({"ready": self.about()})
        while (ask := read(self.source)) is not None:
            if ask["kind"] == "stop":  # of a stream that ended by itself meanwhile
                continue
            if ask["kind"] == "forget":
                self.streams.pop(ask["stream"], None)
                continue
            self.reply(ask, range(len(ask["texts"])))
            self.send({"done": True})

    def send(self, message: Message) -> None:
        frame = memoryview(pack(message))
        while frame:
            frame = frame[os.write(self.sink, frame) :]

    def about(self) -> Message:
        """What the parent must know to admit requests, measured on a first answer."""
        trained = self.trained
        probe = trained.task.probe()
        trained.predict(probe)
        try:
            maps = trained.explain(probe).maps
        except RegardError:  # it has no attention
            maps = ()
        heads = sum(attention.n_heads for attention in maps)
        cells = sum(attention.weights_HQK.size for attention in maps)
        config, widths = trained.task_config, trained.task.widths
        decode = getattr(config, "decode", None)
        widest = widths.n_outputs
        return {
            "task": trained.task.kind,
            "description": str(trained.model_config),
            "max_length": trained.task_config.max_length,
            "decode": None if decode is None else decode.model_dump(mode="json"),
            "heads": heads,
            "pairing": config.pairing,
            "stream": _stream(trained),
            "listens": trained.listens,
            "vocabulary": 0 if trained.task.shares_length else widest,
            "choices": trained.task.choices(),
            "cells": cells,
            "inputs": [
                {
                    "name": name,
                    "widget": field.widget,
                    "accepts": field.accepts,
                    "file": field.is_file,
                    "units": field.cost(field.sample) if field.is_file else 0,
                }
                for name, field in trained.task.question.items()
            ],
        }

    def reply(self, ask: Message, places: Sequence[int]) -> None:
        """To each of the texts at these places, once; a text that cannot be answered fails no other."""
        open_places = list(places)

        def answered(place: int, answer: Message) -> None:
            self.send({"at": places[place], "answer": finite(answer)})
            open_places.remove(places[place])

        try:
            self.answer(ask, [ask["texts"][at] for at in places], answered)
            return
        except BrokenPipeError:  # the parent has gone
            raise
        except RegardError as refusal:
            said = {"refused": str(refusal)}
        except Exception as fault:
            _note(fault)
            said = {"fault": type(fault).__name__}
        for at in open_places:
            if len(places) > 1:
                self.reply(ask, [at])
            else:
                self.send({"at": at} | said)

    def answer(self, ask: Message, texts: list[Asked], answered: Answered) -> None:
        decode: dict[str, Any] = ask["decode"]
        if uploads := ask["uploads"]:
            texts = [received(text, uploads, self.trained.task.question) for text in texts]
        if ask["kind"] == "answer":
            for place, prediction in self.trained.as_completed(texts, **decode):
                answered(place, prediction.to_json())
            return
        (text,) = texts
        if ask["kind"] == "follow":
            self.follow(text, decode, answered)
        elif ask["kind"] == "listen":
            assert isinstance(text, dict)
            answered(0, self.hear(text))
        else:
            (prediction,) = self.trained.predict([text], **decode)
            attention = self.trained.explain(text, prediction).to_json(packed=ask["packed"])
            answered(0, prediction.to_json() | {"attention": attention})

    def follow(self, text: Asked, decode: dict[str, Any], answered: Answered) -> None:
        """The answer as it grows, unless the parent says meanwhile that nobody reads it any more."""
        parts = self.trained.follow(text, **decode)
        while not self.is_called_off():
            try:
                self.send({"at": 0, "part": next(parts)})
            except StopIteration as found:
                answered(0, found.value.to_json())
                return
        parts.close()

    def hear(self, block: Message) -> Message:
        """What is known of a stream of sound after its next block; nothing where that fills no chunk."""
        stream: int = block["stream"]
        if block["number"] == 0:
            self.streams[stream] = self.trained.listener(block["rate"])
        elif stream not in self.streams:
            raise RunError("the model was started again meanwhile, and has lost the stream; begin again")
        listener = self.streams[stream]
        samples, _ = pcm(b64decode(block["sound"]))
        partial = listener.push(samples)
        if block["is_last"]:
            del self.streams[stream]
            partial = listener.finish(partial)
        found: Message = {} if partial is None else partial.model_dump(mode="json")
        return found

    def is_called_off(self) -> bool:
        """While it works the parent sends nothing else than that it may stop; or it is gone."""
        waiting, _, _ = select.select([self.source], [], [], 0)
        return bool(waiting)


def received(asked: Mapping[str, Any], uploads: Sequence[str], fields: Mapping[str, Any]) -> dict[str, Any]:
    """What a model is asked, with the bytes of files where they were sent in base64."""
    return {
        name: fields[name].receive(_decoded(value, name), name)
        if name in uploads and name in fields
        else value
        for name, value in asked.items()
    }


def _decoded(file: str, name: str) -> bytes:
    try:
        return b64decode(file, validate=True)
    except ValueError:
        raise DataError(f"{name}: the file is not base64; encode its bytes, as base64 -w0 does") from None


def _stream(trained: "regard.Trained") -> int:
    """The most tokens of a text and its answer together, where attention reads them as one; else 0."""
    if not trained.model_config.reads_answer:
        return 0
    side: int = trained.task_config.max_length + 2
    return side if trained.task.shares_length else 2 * side


def _note(fault: Exception) -> None:
    """Where it happened, on standard error; not what, since that may hold what a user wrote."""
    frames = traceback.extract_tb(fault.__traceback__)[-3:]
    places = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames))
    sys.stderr.write(f"fault in a worker: {type(fault).__name__} at {places}\n")
    sys.stderr.flush()


def main(folder: str) -> None:
    sink = os.dup(1)
    os.dup2(2, 1)  # whatever a library prints must not get between the frames
    try:
        worker = Worker(regard.load(folder), 0, sink)
    except RegardError as refusal:
        os.write(sink, pack({"failed": str(refusal)}))
        return
    worker.run()


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except BrokenPipeError:  # the parent has gone
        os._exit(0)
