"""Files of sound → samples of one channel at one rate; needs soundfile, which comes with `regard[audio]`.

Sounds are hostile: how long they are, how many channels they have and at what rate is read from the head of
the file and bounded before anything is decoded; what is decoded is counted, as heads may lie. Channels are
mixed block by block, so that many of them cost no more memory than one.
"""

import struct
from collections.abc import Iterator
from functools import cache
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import BinaryIO, NamedTuple, Self

import numpy as np

from regard.errors import DataError
from regard.files.content import content
from regard.files.lines import resolve
from regard.files.resample import Resampler, Samples

SUFFIXES = frozenset({".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aif", ".aiff", ".au", ".caf"})
FORMATS = frozenset({"WAV", "WAVEX", "FLAC", "OGG", "MP3", "MPEG", "AIFF", "AU", "CAF", "RF64", "W64"})
"""Formats that are read; libsndfile knows others, which few people have."""
MOST_SECONDS = 3600.0
"""Seconds of a recording that is held in memory, as one that was sent is."""
MOST_STREAMED = 24 * 3600.0
"""Seconds of a file that is decoded block by block."""
MOST_CHANNELS = 256
LOWEST_RATE, HIGHEST_RATE = 1_000, 400_000
AT_ONCE = 1 << 18
"""Samples of all channels that are decoded at once."""
MOST_HEAD = 1 << 16
"""Bytes of a part of a WAV file that is no sound."""
LOUDEST = 32_767
"""A sample of 1.0 in 16 bits."""


class Head(NamedTuple):
    """Facts about a sound that its file states before it is decoded."""

    format: str
    rate: int
    n_channels: int
    seconds: float


class Sound:
    """A sound whose file has been opened, not yet decoded; `where` is what errors call it.

    A part of it may be meant, from one second up to another.
    """

    def __init__(self, file: bytes | Path, where: str, start: float = 0.0, end: float | None = None) -> None:
        self.where, self.start, self.end = where, start, end
        library = _soundfile()
        try:
            opened = BytesIO(file) if isinstance(file, bytes) else resolve(str(file)).open("rb")
        except OSError as fault:
            raise DataError(f"{where}: {file!s}: cannot be read ({fault.strerror})") from None
        except DataError as fault:
            raise DataError(f"{where}: {fault}") from None
        self._opened = opened
        self.most = MOST_SECONDS if isinstance(file, bytes) else MOST_STREAMED
        if not opened.read(1):
            opened.close()
            raise DataError(f"{where}: the file is empty; get the recording again, or leave it out")
        opened.seek(0)
        try:
            self._sound = library.SoundFile(opened)
        except Exception as fault:  # a damaged head makes libsndfile raise several kinds
            opened.close()
            raise DataError(f"{where}: {_unknown(fault)}") from None
        try:
            self._refuse_unreadable()
        except DataError:
            self.close()
            raise

    @property
    def head(self) -> Head:
        """Its seconds are those of the part that is meant."""
        sound = self._sound
        whole = max(0, sound.frames) / sound.samplerate
        seconds = min(whole, whole if self.end is None else self.end) - self.start
        return Head(sound.format, sound.samplerate, sound.channels, seconds)

    def samples(self, rate: int) -> Samples:
        """All of it, from −1 to 1, mixed to one channel."""
        resampler = Resampler(self._sound.samplerate, rate)
        try:
            blocks = [resampler.push(block) for block in self.blocks()]
        finally:
            self.close()
        return np.concatenate([*blocks, resampler.finish()]) if blocks else np.zeros(0, np.float32)

    def blocks(self) -> Iterator[Samples]:
        """Samples at its own rate, mixed to one channel, a block at a time."""
        sound, n_left = self._sound, round(self.head.seconds * self._sound.samplerate)
        most = max(1, AT_ONCE // sound.channels)
        n_left = min(n_left, round(self.most * sound.samplerate))
        try:
            if self.start:
                sound.seek(round(self.start * sound.samplerate))
            while n_left > 0:
                block_TC = sound.read(min(most, n_left), dtype="float32", always_2d=True)
                if not len(block_TC):
                    break
                n_left -= len(block_TC)
                mixed_T = block_TC.mean(1, dtype=np.float32)
                if not np.isfinite(mixed_T).all():
                    raise DataError("holds samples that are no numbers; record or convert it again")
                yield mixed_T
        except DataError as fault:
            raise DataError(f"{self.where}: {fault}") from None
        except Exception as fault:  # what a damaged file makes the library raise
            raise DataError(f"{self.where}: {_damaged(fault)}") from None

    def close(self) -> None:
        self._sound.close()
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _refuse_unreadable(self) -> None:
        head, where = self.head, self.where
        if head.format not in FORMATS:
            raise DataError(f"{where}: {head.format} is not read; convert it to wav or flac")
        if not LOWEST_RATE <= head.rate <= HIGHEST_RATE:
            raise DataError(
                f"{where}: has {head.rate:,} samples a second; give {LOWEST_RATE:,} to {HIGHEST_RATE:,}"
            )
        if head.n_channels > MOST_CHANNELS:
            raise DataError(f"{where}: has {head.n_channels} channels; at most {MOST_CHANNELS} are mixed")
        if self.end is not None and self.end <= self.start:
            raise DataError(f"{where}: the part ends at {self.end:g} s, before it begins ({self.start:g} s)")
        if self.start and head.seconds <= 0:
            raise DataError(f"{where}: the part begins at {self.start:g} s, where the recording has ended")
        self.refuse_longer(self.most)

    def refuse_longer(self, most: float) -> None:
        """DataError for a sound of more seconds."""
        if (seconds := self.head.seconds) > most:
            raise DataError(
                f"{self.where}: lasts {seconds / 3600:.1f} hours, more than {most / 3600:g}; cut it "
                "into parts, or name parts of it by their offset and duration"
            )


def pcm(block: bytes, left: bytes = b"") -> tuple[Samples, bytes]:
    """Samples from −1 to 1 of raw 16-bit little-endian ones; half a sample is left for the next block."""
    block = left + block
    n = len(block) // 2 * 2
    return np.frombuffer(block[:n], "<i2").astype(np.float32) / np.float32(LOUDEST + 1), block[n:]


def wav_head(stream: BinaryIO, where: str) -> tuple[int, int]:
    """Samples a second and channels of a WAV file whose first four bytes are read; its samples come next."""
    stream.read(8)
    rate = n_channels = 0
    while len(head := stream.read(8)) == 8:
        name, size = head[:4], int.from_bytes(head[4:], "little")
        if name == b"data" and rate:
            return rate, n_channels
        part = stream.read(min(size + size % 2, MOST_HEAD))
        if name == b"fmt " and len(part) >= 16:
            kind, n_channels, rate = struct.unpack_from("<HHI", part)
            bits = int.from_bytes(part[14:16], "little")
            if kind not in (1, 0xFFFE) or bits != 16 or not 1 <= n_channels <= MOST_CHANNELS:
                raise DataError(f"{where}: a WAV file of another kind than 16-bit samples; convert it first")
        elif size > MOST_HEAD:
            break
    raise DataError(f"{where}: begins like a WAV file, but has no samples; get it again")


def wav(samples: Samples, rate: int) -> bytes:
    """Samples as a WAV file of 16 bits."""
    file = BytesIO()
    _soundfile().write(file, samples, rate, format="WAV", subtype="PCM_16")
    return file.getvalue()


def whole(cell: bytes | str | Path, where: str) -> bytes:
    """The bytes of a file of sound, to be kept or sent."""
    return content(cell if isinstance(cell, bytes) else Path(cell), where)


@cache
def _soundfile() -> ModuleType:
    try:
        import soundfile
    except (ImportError, OSError):  # OSError: without its C library
        raise DataError("sounds need soundfile; install it with: pip install 'regard[audio]'") from None
    library: ModuleType = soundfile
    return library


def _unknown(fault: Exception) -> str:
    kinds = "wav, flac, ogg, opus, mp3, aiff, au, caf"
    return f"not a sound of a kind that is read ({kinds}), or damaged ({_short(fault)})"


def _damaged(fault: Exception) -> str:
    return f"the recording is damaged ({_short(fault)}); get it again, or leave it out"


def _short(fault: Exception) -> str:
    """Strip the address of an object from what a library says."""
    message = " ".join(str(fault).split()).rpartition(">: ")[2]
    return message[:100].rstrip(".") or type(fault).__name__
