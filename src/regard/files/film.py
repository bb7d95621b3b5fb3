"""Clips, decoded by PyAV: their length is bounded before they are decoded, and frames are chosen by time.

Frames are chosen by when they are shown, so that a variable frame rate changes nothing; frames turned by a
flag are turned. A folder of pictures is a clip too, in the order of their names.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from regard.errors import DataError
from regard.files.folder import files
from regard.files.picture import SUFFIXES as PICTURES
from regard.files.picture import Picture, Pixels

SUFFIXES = frozenset({".mp4", ".m4v", ".mov", ".webm", ".avi", ".mkv", ".gif", ".mpg", ".mpeg"})
FORMATS = "mov,matroska,avi,gif,mpeg,mpegvideo,mpegts"
"""What FFmpeg may take a file for."""
MOST_SECONDS = 600.0
"""Of a clip, or of the part of a film that is read."""
MOST_FRAMES = 36_000
MOST_PIXELS = 4096 * 4096
"""Of a frame."""


@dataclass(frozen=True)
class Clip:
    """The moments of a clip at which its frames are shown, and their size."""

    seconds: tuple[float, ...]
    height: int
    width: int

    def chosen(self, n: int) -> list[int]:
        """The places of n frames, evenly spaced in time; of fewer, some several times."""
        begin, last = self.seconds[0], self.seconds[-1]
        step = (last - begin) / max(1, len(self.seconds) - 1)
        moments = begin + (np.arange(n) + 0.5) / n * (last + step - begin)
        return [max(0, bisect_right(self.seconds, moment + 1e-9) - 1) for moment in moments.tolist()]


def measure(source: bytes | Path, where: str, start: float = 0.0, end: float | None = None) -> Clip:
    """The frames of a clip from `start` up to `end`, in seconds, without decoding them."""
    if isinstance(source, Path) and source.is_dir():
        names = _pictures(source, where)
        head = Picture((source / names[0]).read_bytes(), f"{where}: {names[0]}").head
        return Clip(tuple(map(float, range(len(names)))), head.height, head.width)
    with _opened(source, where) as (container, stream):
        moments = []
        for packet in container.demux(stream):
            if packet.pts is None:
                continue
            moments.append(float(packet.pts * packet.time_base))
            if len(moments) > MOST_FRAMES and end is None:
                raise DataError(f"{where}: {_too_long(container)}")
        begin = min(moments, default=0.0)
        last = float("inf") if end is None else end
        inside = sorted(one - begin for one in moments if start <= one - begin < last)
        if not inside:
            part = "" if end is None and not start else f" from {start:g} s on"
            raise DataError(f"{where}: the clip has no frames{part}; is it a recording of sound only?")
        if inside[-1] - inside[0] > MOST_SECONDS or len(inside) > MOST_FRAMES:
            raise DataError(f"{where}: {_too_long(container)}")
        height, width = stream.codec_context.height, stream.codec_context.width
    if height * width > MOST_PIXELS:
        raise DataError(f"{where}: frames of {width} × {height} pixels; give a smaller film")
    return Clip(tuple(inside), height, width)


def decoded(
    source: bytes | Path,
    where: str,
    n: int,
    shape: tuple[int, int, int],
    *,
    stretch: bool = False,
    start: float = 0.0,
    end: float | None = None,
) -> Pixels:
    """n frames evenly spaced in time, of these rows, columns and channels."""
    clip = measure(source, where, start, end)
    wanted = clip.chosen(n)
    read = _from_folder if isinstance(source, Path) and source.is_dir() else _from_film
    found = dict(read(source, where, clip, set(wanted), shape, stretch))
    if missing := set(wanted) - found.keys():
        raise DataError(
            f"{where}: the clip is damaged (frame {min(missing) + 1} of {len(clip.seconds)} cannot be "
            "decoded); get it again, or leave it out"
        )
    return np.stack([found[place] for place in wanted])


def _from_folder(
    folder: Any, where: str, clip: Clip, wanted: set[int], shape: tuple[int, int, int], stretch: bool
) -> Iterator[tuple[int, Pixels]]:
    names = _pictures(folder, where)
    for place in wanted:
        picture = Picture((folder / names[place]).read_bytes(), f"{where}: {names[place]}")
        yield place, picture.fitted(*shape, stretch=stretch)


def _from_film(
    source: bytes | Path, where: str, clip: Clip, wanted: set[int], shape: tuple[int, int, int], stretch: bool
) -> Iterator[tuple[int, Pixels]]:
    """Decodes from the beginning on, so that every frame has what it refers to."""
    with _opened(source, where) as (container, stream):
        first: float | None = None
        left = set(wanted)
        for frame in container.decode(stream):
            if frame.pts is None:
                continue
            moment = float(frame.pts * frame.time_base)
            first = moment if first is None else first
            place = bisect_right(clip.seconds, moment - first + 1e-6) - 1
            if place in left and abs(clip.seconds[place] - (moment - first)) < 1e-3:
                pixels_YXC = np.rot90(frame.to_ndarray(format="rgb24"), getattr(frame, "rotation", 0) // 90)
                if pixels_YXC.shape != shape:
                    picture = Picture.of(np.ascontiguousarray(pixels_YXC), where)
                    pixels_YXC = picture.fitted(*shape, stretch=stretch)
                yield place, pixels_YXC
                left.discard(place)
            if not left:
                return


def _pictures(folder: Path, where: str) -> Sequence[str]:
    names = list(files(folder, PICTURES))
    if not names:
        raise DataError(f"{where}: the folder holds no pictures, so it is no clip")
    if len(names) > MOST_FRAMES:
        raise DataError(f"{where}: more than {MOST_FRAMES:,} frames; give parts of it")
    return names


@contextmanager
def _opened(source: bytes | Path, where: str) -> Iterator[tuple[Any, Any]]:
    av = _av()
    try:  # a file that is open, never a name: a name could be an address, and a playlist would name others
        file = BytesIO(source) if isinstance(source, bytes) else source.open("rb")
        with file, av.open(file, options={"format_whitelist": FORMATS}) as container:
            if not container.streams.video:
                raise DataError(f"{where}: the clip has no frames; is it a recording of sound only?")
            stream = container.streams.video[0]
            stream.codec_context.thread_count = 1
            yield container, stream
    except DataError:
        raise
    except Exception as fault:  # damaged heads make decoders raise anything
        said = " ".join(str(fault).split())[:100] or type(fault).__name__
        raise DataError(
            f"{where}: the clip is damaged, or no film ({said}); get it again, or leave it out"
        ) from None


def _too_long(container: Any) -> str:
    lasts = f"lasts {container.duration / 1e6:,.0f} s" if container.duration else "is too long"
    return (
        f"the film {lasts}; {MOST_SECONDS:g} s and {MOST_FRAMES:,} frames are read at most: say which part "
        "with columns start and end, or cut it"
    )


@cache
def _av() -> ModuleType:
    try:
        import av
        import av.logging
    except ImportError:
        raise DataError("clips need PyAV; install it with: pip install 'regard[video]'") from None
    av.logging.set_level(av.logging.PANIC)
    module: ModuleType = av
    return module
