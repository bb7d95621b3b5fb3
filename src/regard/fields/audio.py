"""A sound: a cell is a recording, a part of one, its bytes, or a file of features; made log-mel frames.

What is cached are samples of one channel at one rate, so that training sounds can be drawn anew: faster,
slower, louder, with noise. Features are made when a batch is. A file of features (`.npy`, frames × bands) is
taken as it is.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Setting

from regard import durable
from regard.check.finding import Finding
from regard.check.rows import Splits
from regard.errors import CheckpointError, DataError
from regard.fields.axis import Axis
from regard.fields.examined_sounds import examined
from regard.fields.field import Arrays, Coded, FieldSettings, Occlusion, Suggestion, Width
from regard.fields.media import Media
from regard.fields.mel import HOP, Mel, as_16_bits
from regard.files import sound
from regard.files.arrays import arrays as arrays_of
from regard.files.resample import Resampler
from regard.files.sound import Sound, wav
from regard.files.speech import part_of, times

Floats = NDArray[np.float32]
LOOKED_AT = 512
"""Sounds that statistics are learnt from at most, evenly spaced over all of them."""
USUAL_RATE = 16_000
FEATURES = ".npy"
TWENTIETHS = 20
"""Speeds are drawn in steps of 0.05."""
FRAMES_A_UNIT = 4
"""What counts as one unit of a batch: 40 ms."""
LEAST = 8
"""Frames of a sound in which anything may be heard."""
QUIET_NOISE = 40.0
"""Decibels that speech is above the weakest noise that is added."""


class AudioSettings(FieldSettings):
    """Recordings: how they are read, and how they are changed while learning."""

    kind: Literal["audio"] = "audio"
    rate: Annotated[int, Setting(ge=2_000, le=48_000)] | None = Setting(
        None,
        description="samples a second that sounds are brought to; without it the data decide, at most 16,000",
    )
    mels: int = Setting(80, ge=8, le=256, description="bands of the mel scale")
    seconds: float = Setting(30.0, gt=0, le=3600, description="of a recording that are read at most")
    normalise: Literal["corpus", "utterance"] = Setting(
        "corpus",
        description="by statistics of the training data; or of each recording, which cannot be streamed",
    )
    speed: float = Setting(
        0.0, ge=0, le=0.5, description="how much faster or slower training sounds are played, as in 0.1"
    )
    level: float = Setting(0.0, ge=0, le=40, description="decibels that their loudness varies by")
    noise: float | None = Setting(
        None, ge=-10, le=QUIET_NOISE, description="decibels that they are above added noise at least"
    )
    time_masks: int = Setting(
        0, ge=0, le=20, description="stretches of frames that training hides (SpecAugment)"
    )
    time_mask: int = Setting(20, ge=1, le=1000, description="frames that such a stretch has at most")
    mel_masks: int = Setting(0, ge=0, le=20, description="groups of bands that training hides (SpecAugment)")
    mel_mask: int = Setting(15, ge=1, le=256, description="bands that such a group has at most")


class Source(NamedTuple):
    """A sound yet to be opened: many of them are held while a field is fitted."""

    cell: Any
    where: str


@dataclass(frozen=True)
class Audio(Media):
    """Field and input at once: nothing is joined."""

    kind: ClassVar[str] = "audio"
    settings: ClassVar[type[FieldSettings]] = AudioSettings
    reads: ClassVar[str] = "frames"
    widget: ClassVar[str] = "file"
    accepts: ClassVar[str] = "audio/*"
    example: ClassVar[str] = "recording.wav"
    suffixes: ClassVar[frozenset[str]] = sound.SUFFIXES
    config: AudioSettings = field(default_factory=AudioSettings)
    rate: int = 0
    """Samples a second; 0 where files hold features."""
    mean: tuple[float, ...] = ()
    """By band, of training sounds."""
    deviation: tuple[float, ...] = ()
    optional: bool = False
    name: str = "audio"

    @classmethod
    def suggest(cls, cells: Sequence[Any]) -> Suggestion:
        heads = []
        for cell in _spaced(cells):
            with _open(Source(cell, str(cell))) as opened:
                heads.append(opened.head)
        rates = sorted({head.rate for head in heads})
        seconds = [head.seconds for head in heads]
        rate = _usual_rate([head.rate for head in heads])
        of_all = " and ".join(f"{each:,}" for each in (rates if len(rates) == 1 else (rates[0], rates[-1])))
        longest = max(seconds)
        return Suggestion(
            {"rate": rate, "seconds": float(max(10, min(60, 2 ** np.ceil(np.log2(longest * 1.25)))))}
            | {"speed": 0.1, "level": 6.0, "time_masks": 2, "mel_masks": 2},
            _units(float(np.mean(seconds)) / HOP),
            {
                "rate": f"recordings have {of_all} samples a second",
                "seconds": f"recordings last {min(seconds):.1f} to {longest:.1f} s",
                "speed": "training sounds are drawn anew in every epoch: 0.9, 1 or 1.1 times as fast",
            },
        )

    @classmethod
    def of(cls, settings: AudioSettings) -> Self:
        return cls(settings)

    @property
    def sample(self) -> bytes:
        rate = self.rate or USUAL_RATE
        samples = np.sin(np.arange(rate) / 11).astype(np.float32) * np.float32(0.1)
        return wav(samples, rate)

    @property
    def width(self) -> Width:
        mean, deviation = list(self.mean), list(self.deviation)
        return {"mels": len(mean), "rate": self.rate, "mean": mean, "deviation": deviation}

    def clean(self, cell: object, where: str, name: str, folder: Path | None = None) -> Any:
        if isinstance(cell, Mapping) and folder is not None and "path" in cell:
            return {"path": self.clean(cell["path"], where, name, folder), **times(cell, where, name)}
        cleaned = super().clean(cell, where, name, folder)
        if isinstance(cell, str) and os.path.isabs(cell) and folder is not None:
            _refuse_moved(cell, where, folder)
        return cleaned

    def gathered(self, cell: object, record: Mapping[str, object]) -> object:
        """The part that `offset` and `duration` say, as in manifests of NeMo."""
        return part_of(cell, record)

    def parse(self, cell: Any, where: str) -> Source:
        return Source(cell, where)

    def fit(self, values: Iterable[Source]) -> Self:
        sources = _spaced(list(values))
        fitted = self
        if not _is_features(sources[0]):
            heads = []
            for source in sources:
                with _open(source) as opened:
                    heads.append(opened.head.rate)
            fitted = replace(self, rate=self.config.rate or _usual_rate(heads))
        n, sums, squares = 0, np.zeros(()), np.zeros(())
        for source in sources:
            frames_TM = fitted.frames(fitted._read(source)[0]).astype(np.float64)
            if n and frames_TM.shape[1:] != sums.shape:
                raise DataError(
                    f"{source.where}: features of {frames_TM.shape[1]} bands, others have {len(sums)}; "
                    "make all files alike"
                )
            n, sums = n + len(frames_TM), sums + frames_TM.sum(0)
            squares = squares + (frames_TM**2).sum(0)
        if not n:
            raise DataError(f"{sources[0].where}: all recordings are shorter than a frame of 25 ms")
        mean_M = sums / n
        deviation_M = np.sqrt((squares / n - mean_M**2).clip(1e-4))
        return replace(
            fitted, mean=tuple(mean_M.round(4).tolist()), deviation=tuple(deviation_M.round(4).tolist())
        )

    def check(self, role: str, splits: Splits) -> list[Finding]:
        return examined(role, splits, _samples, self.config.seconds)

    def encode(self, values: Sequence[Source]) -> list[Coded]:
        found = []
        for value in values:
            arrays, seconds = self._read(value)
            found.append(Coded(arrays, {"cut": seconds > self.config.seconds, "seconds": seconds}))
        return found

    def opened(self, source: Source) -> Sound:
        """The recording, to be decoded block by block."""
        if _is_features(source):
            raise DataError(f"{source.where}: {source.cell} holds features; a stream is sound")
        return _open(source)

    def _read(self, source: Source) -> tuple[Arrays, float]:
        """Samples, or frames of a file of features, as many as are read; and how many seconds there are."""
        if _is_features(source):
            frames_TM = _features(source, len(self.mean))
            most = round(self.config.seconds / HOP)
            return {"frames": np.array(frames_TM[:most], np.float32)}, len(frames_TM) * HOP
        with _open(source) as opened:
            seconds = opened.head.seconds
            opened.end = min(opened.start + self.config.seconds, opened.end or np.inf)
            samples = opened.samples(self.rate)
        return {"samples": as_16_bits(samples)}, seconds

    def frames(self, arrays: Arrays) -> Floats:
        """The features of one sound, frames_TM."""
        if "frames" in arrays:
            frames_TM = np.asarray(arrays["frames"], np.float32)
        else:
            frames_TM = self.mel.frames(np.asarray(arrays["samples"]).astype(np.int16))
        if self.config.normalise == "utterance" and len(frames_TM):
            frames_TM = (frames_TM - frames_TM.mean(0)) / np.sqrt(frames_TM.var(0) + np.float32(1e-4))
        return frames_TM

    @cached_property
    def mel(self) -> Mel:
        return Mel(self.rate, self.config.mels)

    def save(self, folder: Path) -> None:
        (folder / "audio.json").write_text(json.dumps({"format_version": 1, **self.width}, indent=1) + "\n")

    def load(self, folder: Path) -> Self:
        path = folder / "audio.json"
        try:
            saved = durable.read_json(path)
            rate = int(saved["rate"])
            mean, deviation = (tuple(map(float, saved[name])) for name in ("mean", "deviation"))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CheckpointError(f"{path}: the statistics of sounds cannot be read ({error})") from error
        if not (len(mean) == len(deviation) > 0 and min(deviation) > 0 and rate >= 0):
            raise CheckpointError(f"{path}: a rate, means and deviations that do not belong together")
        return replace(self, rate=rate, mean=mean, deviation=deviation)

    def cost(self, cell: Any) -> int:
        return self.most

    def alone(self, limit: int) -> Self:
        return self

    @property
    def most(self) -> int:
        return _units(self.config.seconds * self._slowest / HOP)

    @property
    def _slowest(self) -> float:
        """Times that a drawn sound may be longer than it was."""
        return TWENTIETHS / round(TWENTIETHS * (1 - self.config.speed))

    def assemble(self, parts: Sequence[Coded]) -> Coded:
        (part,) = parts
        return part

    def n_frames(self, arrays: Arrays) -> int:
        return len(arrays["frames"]) if "frames" in arrays else self.mel.n_frames(len(arrays["samples"]))

    def is_empty(self, arrays: Arrays) -> bool:
        return self.n_frames(arrays) < LEAST

    def size(self, arrays: Arrays) -> int:
        """Units of four frames, of the slowest that may be drawn of it."""
        return _units(self.n_frames(arrays) * self._slowest)

    @property
    def draws(self) -> bool:
        config = self.config
        drawn = config.speed, config.level, config.noise is not None, config.time_masks, config.mel_masks
        return any(drawn)

    mixup: ClassVar[float] = 0.0

    def draw(self, arrays: Arrays, rng: np.random.Generator) -> Arrays:
        """A training sound as it is this time: faster, louder, with noise, with parts hidden."""
        config, rest = self.config, {name: array for name, array in arrays.items() if name != "samples"}
        if "samples" in arrays:
            samples_T = np.asarray(arrays["samples"]).astype(np.float32)
            if config.speed and (step := int(rng.integers(-1, 1, endpoint=True))):
                speed = round(TWENTIETHS * (1 + step * config.speed))
                resampler = Resampler(speed, TWENTIETHS)
                samples_T = np.concatenate([resampler.push(samples_T), resampler.finish()])
            samples_T = _louder(samples_T, config, rng)
            rest["frames"] = self.frames({"samples": samples_T.round().clip(-32768, 32767)})
        frames_TM = np.array(self.frames(rest) if "samples" not in arrays else rest["frames"])
        rest["frames"] = self._masked(frames_TM, rng)
        return rest

    def mix(self, arrays: Arrays, others: Arrays, share: float) -> Arrays:
        raise NotImplementedError

    def _masked(self, frames_TM: Floats, rng: np.random.Generator) -> Floats:
        """With stretches of time and groups of bands hidden (SpecAugment, Park et al. 2019)."""
        config, blank_M = self.config, self._mean_M
        for _ in range(config.time_masks):
            most = min(config.time_mask, len(frames_TM) // 5)
            width, place = int(rng.integers(0, most, endpoint=True)), rng.random()
            begin = int(place * (len(frames_TM) - width))
            frames_TM[begin : begin + width] = blank_M
        for _ in range(config.mel_masks):
            width = int(rng.integers(0, min(config.mel_mask, len(blank_M) // 2), endpoint=True))
            low = int(rng.integers(0, len(blank_M) - width, endpoint=True))
            frames_TM[:, low : low + width] = blank_M[low : low + width]
        return frames_TM

    def collate(self, many: Sequence[Arrays]) -> Arrays:
        """Frames beside each other; behind their ends stands the mean."""
        found = [self.frames(arrays) for arrays in many]
        lengths_B = np.array([len(frames_TM) for frames_TM in found], np.int64)
        frames_BTM = np.tile(self._mean_M, (len(found), max(1, int(lengths_B.max())), 1))
        for row_TM, frames_TM in zip(frames_BTM, found, strict=True):
            row_TM[: len(frames_TM)] = frames_TM
        return {"frames": frames_BTM, "lengths": lengths_B}

    def without(self, batch: Arrays, axis: Axis, units: Sequence[int], how: Occlusion) -> Arrays:
        """Whichever way: in the place of what is left out there is the quietest moment of the recording."""
        spans = axis.spans or tuple((at, at + 1) for at in range(len(axis)))
        frames_BTM = np.repeat(batch["frames"], len(units), 0)
        real_TM = batch["frames"][0, : int(batch["lengths"][0])]
        silence_M = real_TM[int(real_TM.mean(1).argmin())]
        for row_TM, unit in zip(frames_BTM, units, strict=True):
            begin, end = spans[unit]
            row_TM[begin:end] = silence_M
        return {**batch, "frames": frames_BTM, "lengths": np.repeat(batch["lengths"], len(units))}

    @property
    def _mean_M(self) -> Floats:
        return np.array(self.mean, np.float32)

    def axis(self, values: Sequence[Any], coded: Coded) -> Axis:
        """The frames; models say what they make of them."""
        seconds = tuple(round(at * HOP, 3) for at in range(self.n_frames(coded.arrays)))
        return Axis(self.name, tuple(f"{at:.2f} s" for at in seconds), "frame", seconds=seconds)


def _open(source: Source) -> Sound:
    cell, where = source
    if isinstance(cell, bytes):
        return Sound(cell, where)
    if isinstance(cell, Mapping):
        return Sound(Path(cell["path"]), where, cell.get("start", 0.0), cell.get("end"))
    return Sound(Path(cell), where)


def _samples(cell: Any, where: str) -> tuple[sound.Head, Floats]:
    """What a file says of its sound, and all of it at its own rate."""
    with _open(Source(cell, where)) as opened:
        opened.refuse_longer(sound.MOST_SECONDS)
        return opened.head, np.concatenate([np.zeros(0, np.float32), *opened.blocks()])


def _is_features(source: Source) -> bool:
    return isinstance(source.cell, str) and source.cell.lower().endswith(FEATURES)


def _features(source: Source, n_bands: int) -> NDArray[Any]:
    found = arrays_of(source.cell)["values"]
    if found.ndim != 2 or found.dtype.kind != "f":
        raise DataError(f"{source.where}: {source.cell} holds {found.shape}; features are frames × bands")
    if n_bands and found.shape[1] != n_bands:
        raise DataError(f"{source.where}: features of {found.shape[1]} bands; the model reads {n_bands}")
    if not np.isfinite(found).all():
        raise DataError(f"{source.where}: {source.cell} holds values that are no numbers")
    return found


def _refuse_moved(cell: str, where: str, folder: Path) -> None:
    """DataError for an absolute path that is not there; it says where the file lies now, if it is known."""
    if os.path.exists(cell):
        return
    parts = Path(cell).parts[1:]
    tails = (Path(*parts[begin:]) for begin in range(len(parts)))
    found = next((tail for tail in tails if (folder / tail).exists()), None)
    hint = f"it lies at {found} from here, so write paths like that" if found else "correct the paths"
    raise DataError(f"{where}: {cell}: no such file; {hint}")


def _spaced(items: Sequence[Any]) -> Sequence[Any]:
    return items[:: -(-len(items) // LOOKED_AT)]


def _units(n_frames: float) -> int:
    return max(1, -(-int(np.ceil(n_frames)) // FRAMES_A_UNIT))


def _usual_rate(rates: Sequence[int]) -> int:
    """The commonest one, but no more than speech needs."""
    usual = max(sorted(set(rates)), key=rates.count)
    return max(2_000, min(USUAL_RATE, usual))


def _louder(samples_T: Floats, config: AudioSettings, rng: np.random.Generator) -> Floats:
    """With another loudness, and with noise."""
    if config.level:
        samples_T = samples_T * np.float32(10 ** (rng.uniform(-config.level, config.level) / 20))
    if config.noise is not None:
        power = float(np.sqrt((samples_T**2).mean())) if len(samples_T) else 0.0
        deviation = power * 10 ** (-rng.uniform(config.noise, QUIET_NOISE) / 20)
        noise_T = rng.standard_normal(len(samples_T), np.float32)
        samples_T = samples_T + np.float32(deviation) * noise_T
    return samples_T
