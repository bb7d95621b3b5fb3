"""A stream of sound gives what the whole recording gives in chunks, however it is cut into blocks."""

from typing import Any

import numpy as np
import pytest
import torch

from invariants.test_speech import MODELS, made
from regard.files.sound import pcm
from regard.tasks.listening import MOST_OPEN, listen, transcript_of
from sounds import RATE, noise, spoken, wav

CPU = torch.device("cpu")
MODELS_AND_BEAMS = [(kind, beam) for kind in MODELS for beam in (1, 4)]


def cut(samples: np.ndarray[Any, Any], rng: np.random.Generator) -> list[np.ndarray[Any, Any]]:
    n = int(rng.integers(1, 40))
    return np.split(samples, np.sort(rng.integers(0, len(samples), n)))


def as_read(samples: Any) -> Any:
    """Samples as a file of 16 bits holds them."""
    return pcm((samples * 32767).round().astype("<i2").tobytes())[0]


@pytest.mark.parametrize(("kind", "beam"), MODELS_AND_BEAMS)
def test_a_stream_is_the_recording_in_chunks(kind: str, beam: int) -> None:
    task, model, _ = made(MODELS[kind], decode={"beam": beam, "streamed": True})
    rate = RATE if beam == 1 else 11_025
    rng, n_labels = np.random.default_rng(5), 0
    for number in range(4):
        samples, _ = spoken(" ".join(["amber birch cedar"] * (1 + number)), number, rate)
        samples = as_read(samples)
        (example,) = task.encode(task.asked([wav(samples, rate)]))
        ((_, whole),) = task.predict(model, task.collate([example]))
        streamed = transcript_of(listen(task.listener(model, rate, CPU), cut(samples, rng)))
        assert (streamed.text, streamed.ids, streamed.frames) == (whole.text, whole.ids, whole.frames)
        for one, other in zip(streamed.words, whole.words, strict=True):
            assert (one.word, one.start, one.end) == (other.word, other.start, other.end)
            assert one.probability == pytest.approx(other.probability, abs=1e-3)
        n_labels += len(whole.ids)
    assert n_labels > 5  # an untrained model writes something, or this would show nothing


@pytest.mark.parametrize("kind", MODELS)
def test_what_is_certain_never_changes_and_the_rest_is_what_is_not(kind: str) -> None:
    task, model, _ = made(MODELS[kind])
    samples, _ = spoken("amber birch cedar delta amber birch", 3)
    parts = list(listen(task.listener(model, RATE, CPU), np.array_split(samples, 20)))
    assert [part.is_last for part in parts] == [False] * (len(parts) - 1) + [True]
    assert parts[-1].rest == ""
    assert [part.seconds for part in parts] == sorted(part.seconds for part in parts)
    whole = transcript_of(parts).text
    certain = ""
    for part in parts:
        certain += part.text
        assert whole.startswith(certain.strip())


@pytest.mark.parametrize("kind", MODELS)
def test_what_is_held_of_a_long_stream_has_one_size(kind: str) -> None:
    task, model, _ = made(MODELS[kind], decode={"beam": 3})
    listener, sizes = task.listener(model, RATE, CPU), []
    for number in range(40):
        listener.push(noise(1.0, number))
        paths = listener.found.rows[0]
        sizes.append((len(listener.samples), max(len(path.labels) for path in paths)))
    assert max(n_samples for n_samples, _ in sizes) < RATE
    assert max(n_labels for _, n_labels in sizes[20:]) <= 5 * (MOST_OPEN + 30)
    assert all(
        path.frames[0] > listener.found.n_frames - 2 * MOST_OPEN
        for path in listener.found.rows[0]
        if path.frames
    )


@pytest.mark.parametrize("seconds", [0.0, 0.01, 0.05, 0.09, 0.2])
def test_a_short_stream_is_a_short_recording(seconds: float) -> None:
    task, model, _ = made(MODELS["ctc"], decode={"streamed": True})
    samples = as_read(noise(seconds))
    streamed = transcript_of(listen(task.listener(model, RATE, CPU), [samples]))
    if seconds:
        ((_, whole),) = task.predict(model, task.collate(task.encode(task.asked([wav(samples)]))))
        assert streamed.text == whole.text
    else:
        assert streamed.text == ""


def test_a_recording_longer_than_is_read_is_heard_as_a_stream() -> None:
    short = {"audio": {"mels": 11, "rate": RATE, "seconds": 1.0}}
    task, model, _ = made(MODELS["transducer"], fields=short, decode={"streamed": True})
    long, _, _ = made(MODELS["transducer"], decode={"streamed": True})
    samples = as_read(spoken("amber birch cedar delta amber", 1)[0])
    rows = task.asked([wav(samples)])
    ((_, heard),) = task.predict(model, task.collate(task.encode(rows)))
    ((_, whole),) = long.predict(model, long.collate(long.encode(rows)))
    assert heard.text == whole.text
    assert not heard.cut
