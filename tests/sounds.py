"""Sounds for tests: words that are chords, so that a small model learns them in seconds."""

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
from numpy.typing import NDArray

from regard.fields.audio import Audio, AudioSettings, Source
from regard.files.row import Row

RATE = 8_000
WORDS = {"amber": (300, 700), "birch": (500, 1900), "cedar": (900, 2600), "delta": (1500, 3300)}
Samples = NDArray[np.float32]


def noise(seconds: float, seed: int = 0, rate: int = RATE) -> Samples:
    return np.random.default_rng(seed).normal(0, 0.1, round(seconds * rate)).astype(np.float32)


def wav(samples: Any, rate: int = RATE, **settings: Any) -> bytes:
    file = BytesIO()
    soundfile.write(file, samples, rate, **({"format": "WAV"} | settings))
    return file.getvalue()


def word(name: str, seconds: float, rate: int = RATE) -> Samples:
    at = np.arange(round(seconds * rate)) / rate
    tone = sum(np.sin(2 * np.pi * hertz * at) for hertz in WORDS[name])
    return (0.2 * tone * np.hanning(len(at))).astype(np.float32)


def spoken(text: str, seed: int = 0, rate: int = RATE) -> tuple[Samples, list[dict[str, Any]]]:
    """What is said, in a little noise, and when each word was."""
    rng, parts, times, now = np.random.default_rng(seed), [], [], 0.0
    for name in text.split():
        gap, length = rng.uniform(0.08, 0.2), rng.uniform(0.2, 0.3)
        parts += [np.zeros(round(gap * rate), np.float32), word(name, length, rate)]
        times.append({"word": name, "start": round(now + gap, 3), "end": round(now + gap + length, 3)})
        now += gap + length
    samples = np.concatenate([*parts, np.zeros(round(0.2 * rate), np.float32)])
    return samples + rng.normal(0, 0.002, len(samples)).astype(np.float32), times


def sentence(rng: np.random.Generator) -> str:
    return " ".join(rng.choice(list(WORDS), int(rng.integers(2, 5))))


def corpus(folder: Path, name: str, n: int, seed: int = 0) -> Path:
    """A manifest of NeMo, and its recordings beside it."""
    rng, lines = np.random.default_rng(seed), []
    (folder / "audio").mkdir(parents=True, exist_ok=True)
    for number in range(n):
        text = sentence(rng)
        samples, times = spoken(text, seed * 1000 + number)
        path = f"audio/{name}_{number}.wav"
        (folder / path).write_bytes(wav(samples))
        seconds = len(samples) / RATE
        lines.append({"audio_filepath": path, "duration": seconds, "text": text, "words": times})
    manifest = folder / f"{name}.jsonl"
    manifest.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return manifest


def rows(n: int, seed: int = 0) -> list[Row]:
    """Rows of transcribe, whose recordings are bytes."""
    rng, made = np.random.default_rng(seed), []
    for number in range(n):
        text = sentence(rng)
        samples, times = spoken(text, seed * 1000 + number)
        made.append(Row({"audio": wav(samples), "text": text, "words": times}, "f", number + 1))
    return made


def field(**settings: Any) -> Audio:
    """A fitted field."""
    audio = Audio(AudioSettings(**({"mels": 24, "rate": RATE} | settings)))
    return audio.fit([Source(wav(noise(0.5, seed)), "x") for seed in range(3)])
