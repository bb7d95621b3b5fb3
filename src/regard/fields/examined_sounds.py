"""Findings of `regard check` in a column of sounds: every one is opened and decoded once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.check.finding import SHOWN, Finding, Place, Severity
from regard.check.rows import Splits
from regard.errors import DataError
from regard.files.row import Row
from regard.files.sound import Head

SILENT = 1e-3
"""The largest sample of a recording in which nobody can be heard."""
FULL, CLIPPED = 0.999, 0.001
"""From where on a sample is as loud as can be; the share of such from which a recording is clipped."""
SHORT = 0.1
"""Seconds in which no word is spoken."""


@dataclass(frozen=True)
class Heard:
    """A sound that can be read."""

    row: Row
    head: Head
    digest: bytes
    peak: float
    full: float
    """The share of samples as loud as can be."""


def examined(
    role: str,
    splits: Splits,
    opened: Callable[[Any, str], tuple[Head, NDArray[np.float32]]],
    longest: float,
) -> list[Finding]:
    """Findings about the cells of this role; `opened` gives what the file says, and all samples."""
    findings: list[Finding] = []
    heard: dict[str, list[Heard]] = {}
    for split, rows in splits.items():
        faults, heard[split] = [], []
        for row in rows:
            try:
                heard[split].append(_heard(row, *opened(row.cells[role], row.where)))
            except DataError as fault:
                faults.append(Place(row.where, str(fault).removeprefix(f"{row.where}: ")))
        if faults:
            first = f"{faults[0].where}: {faults[0].excerpt}"
            said = f"{split}: {_recordings(len(faults))} that cannot be read; the first: {first}"
            findings.append(Finding("error", "unreadable", said, len(faults), tuple(faults[:SHOWN])))
        findings += _odd(split, heard[split], longest)
    return [*findings, *_repeated(heard), *_unlike(heard)]


def _heard(row: Row, head: Head, samples: NDArray[np.float32]) -> Heard:
    loud = np.abs(samples)
    digest = blake2b(samples.tobytes(), digest_size=16).digest()
    peak = float(loud.max(initial=0.0))
    return Heard(row, head, digest, peak, float((loud >= FULL).mean()) if len(loud) else 0.0)


def _odd(split: str, heard: Sequence[Heard], longest: float) -> list[Finding]:
    """Recordings that are silent, clipped, too short or too long; and how long they are together."""
    silent = [one for one in heard if one.head.seconds >= SHORT and one.peak < SILENT]
    clipped = [one for one in heard if one.full > CLIPPED]
    short = [one for one in heard if one.head.seconds < SHORT]
    long = [one for one in heard if one.head.seconds > longest]
    hours = sum(one.head.seconds for one in heard) / 3600
    span = f"{hours:.1f} hours" if hours >= 1 else f"{60 * hours:.1f} minutes"
    total = Finding("note", "hours", f"{split}: {_recordings(len(heard))}, {span}")
    return [
        *([total] if heard else []),
        *_about("warning", "silent", split, silent, "in which nothing is heard"),
        *_about("warning", "clipped", split, clipped, "clipped: recorded too loud"),
        *_about("warning", "short", split, short, f"shorter than {SHORT:g} s"),
        *_about("warning", "long", split, long, f"longer than {longest:g} s (fields.audio.seconds)"),
    ]


def _repeated(heard: Mapping[str, Sequence[Heard]]) -> list[Finding]:
    """Recordings of validation and test data that training data have too, and that stand there twice."""
    findings, known = [], {one.digest: one for one in reversed(heard.get("train", ()))}
    for split, every in heard.items():
        if split == "train":
            twice = [one for one in every if known[one.digest] is not one]
            findings += _about("warning", "duplicates", split, twice, "the same as an earlier one")
            continue
        shared = [one for one in every if one.digest in known]
        share = len(shared) / max(1, len(every))
        remark = f"({share:.1%}) the same as one of train, so that scores flatter the model"
        findings += _about("warning", "shared", split, shared, remark)
    return findings


def _unlike(heard: Mapping[str, Sequence[Heard]]) -> list[Finding]:
    """Splits that were recorded at another rate than the training data: higher sounds are missing there."""
    rates = {split: {one.head.rate for one in every} for split, every in heard.items() if every}
    known = rates.pop("train", set())
    return [
        Finding(
            "warning",
            "rates",
            f"{split}: recorded at {_rates(own)} samples a second, train at {_rates(known)}",
        )
        for split, own in rates.items()
        if known and not own & known
    ]


def _rates(rates: set[int]) -> str:
    return " and ".join(f"{rate:,}" for rate in sorted(rates))


def _about(
    severity: Severity, kind: str, split: str, recordings: Sequence[Heard], remark: str
) -> list[Finding]:
    if not recordings:
        return []
    places = tuple(Place(one.row.where, f"{one.head.seconds:.2f} s") for one in recordings[:SHOWN])
    return [
        Finding(severity, kind, f"{split}: {_recordings(len(recordings))} {remark}", len(recordings), places)
    ]


def _recordings(n: int) -> str:
    return f"{n:,} recording{'s' * (n > 1)}"
