"""Findings of `regard check` in a column of pictures: every one is opened and decoded once."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import PurePath
from statistics import median
from typing import Any

import numpy as np

from regard.check.finding import SHOWN, Finding, Place, Severity
from regard.check.rows import Splits
from regard.errors import DataError
from regard.fields.alike import COLUMNS, ROWS, Grey, earlier_twins
from regard.files.picture import Head, Picture
from regard.files.row import Row

TINY, SMALL_SHARE = 8, 4
"""Pixels of a side below which little can be seen; times that a side is shorter than usual."""
HUGE = 12_000_000
"""Pixels from which decoding is most of the work."""
SUFFIXES = {
    "JPEG": {".jpg", ".jpeg"},
    "PNG": {".png"},
    "GIF": {".gif"},
    "BMP": {".bmp"},
    "WEBP": {".webp"},
    "TIFF": {".tif", ".tiff"},
    "PPM": {".ppm", ".pgm", ".pbm"},
}


@dataclass(frozen=True)
class Seen:
    """A picture that can be read."""

    split: str
    row: Row
    head: Head
    digest: bytes
    left_YX: Grey
    """What is left of it, tiny and grey."""


def examined(role: str, splits: Splits, opened: Callable[[Any, str], tuple[Picture, bytes]]) -> list[Finding]:
    """Findings about the cells of this role; `opened` gives a picture and the bytes that it was made of."""
    findings: list[Finding] = []
    seen: list[Seen] = []
    for split, rows in splits.items():
        faults = []
        for row in rows:
            try:
                picture, content = opened(row.cells[role], row.where)
                left_YX = picture.fitted(ROWS, COLUMNS, 1, stretch=True)[..., 0]
                digest = blake2b(content, digest_size=16).digest()
                seen.append(Seen(split, row, picture.head, digest, left_YX))
            except DataError as fault:
                faults.append(Place(row.where, str(fault).removeprefix(f"{row.where}: ")))
        if faults:
            first = f"{faults[0].where}: {faults[0].excerpt}"
            said = f"{split}: {_pictures(len(faults))} that cannot be read; the first: {first}"
            findings.append(Finding("error", "unreadable", said, len(faults), tuple(faults[:SHOWN])))
    return [*findings, *_repeated(seen, role), *_odd(seen)]


def _repeated(seen: Sequence[Seen], role: str) -> list[Finding]:
    """Pictures that stand there twice, the same or nearly, in one split or in two."""
    firsts: dict[bytes, int] = {}
    same = {at: first for at, one in enumerate(seen) if (first := firsts.setdefault(one.digest, at)) != at}
    twins = earlier_twins(np.stack([one.left_YX for one in seen])) if seen else {}
    near = {at: first for at, first in twins.items() if at not in same}
    findings = []
    for kind, pairs, how in (
        ("", same, "the same as"),
        ("near-", near, "nearly the same as"),
    ):
        for split in dict.fromkeys(one.split for one in seen):
            for other in dict.fromkeys(one.split for one in seen):
                found = [
                    (seen[at], seen[first])
                    for at, first in pairs.items()
                    if seen[at].split == split and seen[first].split == other
                ]
                if other == split:
                    findings += _within(split, kind, how, found)
                else:
                    share = len(found) / max(1, sum(one.split == split for one in seen))
                    remark = f"({share:.1%}) {how} one of {other}, so that scores flatter the model"
                    findings += _pairs("warning", f"{kind}shared", split, found, remark)
    return findings


def _within(split: str, kind: str, how: str, found: list[tuple[Seen, Seen]]) -> list[Finding]:
    if split != "train":
        return []
    torn = [pair for pair in found if pair[0].row.cells.get("label") != pair[1].row.cells.get("label")]
    alike = [pair for pair in found if pair not in torn]
    return [
        *_pairs("warning", f"{kind}contradictions", split, torn, f"{how} one with another label"),
        *_pairs("warning", f"{kind}duplicates", split, alike, f"{how} an earlier one"),
    ]


def _pairs(
    severity: Severity, kind: str, split: str, found: Sequence[tuple[Seen, Seen]], remark: str
) -> list[Finding]:
    return _about(severity, kind, split, [(one, f"like {first.row.where}") for one, first in found], remark)


def _odd(seen: Sequence[Seen]) -> list[Finding]:
    """Pictures that are too small, very large, animated, or called like another format."""
    usual = median(min(one.head.height, one.head.width) for one in seen) if seen else 0
    tiny = max(TINY, usual / SMALL_SHARE)
    findings = []
    for split in dict.fromkeys(one.split for one in seen):
        own = [one for one in seen if one.split == split]
        small = [one for one in own if min(one.head.height, one.head.width) < tiny]
        huge = [one for one in own if one.head.height * one.head.width > HUGE]
        wrong = [one for one in own if _is_misnamed(one)]
        moving = [one for one in own if one.head.is_animated]
        findings += [
            *_about("warning", "tiny", split, _sized(small), f"with a side of fewer than {tiny:.0f} pixels"),
            *_about("note", "huge", split, _sized(huge), f"of more than {HUGE:,} pixels: slow to read"),
            *_about("note", "misnamed", split, _formats(wrong), "of another format than the name says"),
            *_about("note", "animated", split, _sized(moving), "that move: the first frame is read"),
        ]
    return findings


def _is_misnamed(one: Seen) -> bool:
    suffix = PurePath(one.row.file).suffix.lower()
    others = set().union(*SUFFIXES.values()) - SUFFIXES.get(one.head.format, set())
    return one.head.format in SUFFIXES and suffix in others


def _sized(found: Iterable[Seen]) -> list[tuple[Seen, str]]:
    return [(one, f"{one.head.height} × {one.head.width}") for one in found]


def _formats(found: Iterable[Seen]) -> list[tuple[Seen, str]]:
    return [(one, one.head.format) for one in found]


def _about(
    severity: Severity, kind: str, split: str, found: Sequence[tuple[Seen, str]], remark: str
) -> list[Finding]:
    if not found:
        return []
    places = tuple(Place(one.row.where, said) for one, said in found[:SHOWN])
    return [Finding(severity, kind, f"{split}: {_pictures(len(found))} {remark}", len(found), places)]


def _pictures(n: int) -> str:
    return f"{n:,} picture{'s' * (n > 1)}"
