"""Interactions → histories: records of a user, an item, a time, in any order, become a row for each user.

All records pass once. Numbers instead of names go to a file without a name, 16 bytes each, and are sorted by
user through mapped files, a block at a time; in memory are only the names, and a few numbers for each user
and item. What is left out on the way (low ratings, repeats, the rare) is counted.
"""

import math
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import IO, Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from regard.errors import DataError, quoted
from regard.files.lines import Refuse
from regard.files.row import Row
from regard.files.stamps import SECOND, stamp

BLOCK = 1 << 18
"""Interactions in memory at a time."""
RECORD = np.dtype([("history", "<i4"), ("item", "<i4"), ("time", "<f8")])
LONGEST = 1000
"""Characters of the name of a user or an item."""
UNITS = ((1e14, 1e6), (1e11, 1e3))
"""Numbers from which a time is in microseconds, or milliseconds: as seconds they are after the year 5138."""

Ints = NDArray[np.integer]
Records = NDArray[np.void]


@dataclass(frozen=True)
class Grouping:
    """Settings by which interactions become histories."""

    min_user: int = 1
    """Interactions that a user has at least,"""
    min_item: int = 1
    """and an item; both hold for what is kept in the end."""
    min_rating: float | None = None
    session_gap: float | None = None
    """Minutes without interactions after which another history of the same user begins."""
    repeats: Literal["keep", "first", "last"] = "keep"
    """Which interactions of a user with the same item count."""
    lines: Literal["user items", "items"] = "user items"
    """Content of a line of plain text."""

    @property
    def whole(self) -> Self:
        """The same for what is scored or asked about: nobody is left out for having too few."""
        return replace(self, min_user=1, min_item=1)


class Interaction(NamedTuple):
    user: str
    item: str
    time: str | None
    rating: str | None
    where: str


@dataclass
class Effect:
    """Counts of what became of the interactions of some files."""

    n_read: int = 0
    n_users_read: int = 0
    n_items_read: int = 0
    n_low: int = 0
    """Interactions with too low a rating."""
    n_duplicates: int = 0
    """Interactions that stand in the files twice, with the same time."""
    n_repeats: int = 0
    n_rare: int = 0
    """Interactions of users or items with too few."""
    rounds: int = 0
    n_equal_times: int = 0
    """Interactions at the same time as the one before them: the order of the file decided."""
    n_users: int = 0
    n_items: int = 0
    n_histories: int = 0
    n_kept: int = 0

    def sentences(self, grouping: Grouping) -> list[str]:
        """Say what was read, and what was left out by which setting."""
        said = [f"{self.n_read:,} interactions of {self.n_users_read:,} users, {self.n_items_read:,} items"]
        if grouping.min_rating is not None:
            said.append(f"min_rating {grouping.min_rating:g} leaves out {self.n_low:,} interactions")
        if self.n_duplicates:
            said.append(f"{self.n_duplicates:,} stand in the files twice and count once")
        if grouping.repeats != "keep":
            said.append(f"repeats {grouping.repeats!r} leaves out {self.n_repeats:,}")
        if grouping.min_user > 1 or grouping.min_item > 1:
            said.append(
                f"min_user {grouping.min_user} and min_item {grouping.min_item} leave out {self.n_rare:,}"
            )
        if self.n_kept < self.n_read:
            said.append(
                f"kept: {self.n_kept:,} interactions of {self.n_users:,} users, {self.n_items:,} items"
            )
        if grouping.session_gap is not None:
            said.append(f"session_gap {grouping.session_gap:g} minutes makes {self.n_histories:,} histories")
        return said


@dataclass(frozen=True)
class Histories:
    """The histories of some files, each in the order of time; the items of all lie in one mapped array."""

    users: list[str]
    items: list[str]
    owner_H: Ints
    """The user of each history."""
    ends_H: Ints
    item_N: Ints
    time_N: NDArray[np.float64] | None
    """Seconds since the beginning of 1970, as a rule."""
    effect: Effect

    def __len__(self) -> int:
        return len(self.owner_H)

    def row(self, number: int, file: str) -> Row:
        begin, end = self.ends_H[number - 1] if number else 0, self.ends_H[number]
        user = self.users[self.owner_H[number]]
        names = [self.items[item] for item in self.item_N[begin:end].tolist()]
        cells: dict[str, Any] = {"user": user, "items": names}
        if self.time_N is not None:
            cells["times"] = self.time_N[begin:end].tolist()
        return Row(cells, file, number + 1, f"user {user}")

    def rows(self, file: str) -> Iterator[Row]:
        return (self.row(number, file) for number in range(len(self)))

    @cached_property
    def last_of_user(self) -> dict[str, int]:
        """User → the number of the last history."""
        return {self.users[owner]: number for number, owner in enumerate(self.owner_H.tolist())}


class Names:
    """Names of users, or of items → numbers in the order of their coming."""

    def __init__(self, role: str) -> None:
        self.role = role
        self.numbers: dict[str, int] = {}

    def number(self, name: str, where: str) -> int:
        found = self.numbers.get(name)
        if found is not None:
            return found
        if not name:
            raise DataError(f"{where}: the {self.role} is empty; every interaction needs one")
        if len(name) > LONGEST:
            raise DataError(
                f"{where}: the {self.role} has {len(name):,} characters, the limit is {LONGEST:,}; "
                f"choose the right column with data.columns.{self.role}"
            )
        self.numbers[name] = len(self.numbers)
        return self.numbers[name]


def group(interactions: Iterable[Interaction], grouping: Grouping, refuse: Refuse) -> Histories:
    """Makes histories of interactions; those that cannot be used are refused one by one."""
    users, items, effect = Names("user"), Names("item"), Effect()
    with tempfile.TemporaryFile() as one, tempfile.TemporaryFile() as other:
        has_times = _spill(interactions, grouping, users, items, effect, one, refuse)
        if grouping.session_gap is not None and not has_times:
            raise DataError(
                "session_gap: the files have no column of times; leave it out, or name the column"
            )
        effect.n_users_read, effect.n_items_read = len(users.numbers), len(items.numbers)
        ends_U = _sort_by_user(_mapped(one), len(users.numbers), other)
        one.truncate(0)
        one.seek(0)
        owners = _tidy(_mapped(other), ends_U, grouping, effect, one, has_times=has_times)
        records = _mapped(one)
        keep_N = _core(records, len(owners), len(items.numbers), grouping, effect)
        other.truncate(0)
        other.seek(0)
        return _gathered(records, keep_N, owners, users, items, effect, has_times=has_times)


def seconds(text: str, where: str) -> float:
    """A time stamp: a number of seconds, milliseconds or microseconds, or a date."""
    try:
        number = float(text)
    except ValueError:
        found = stamp(text)
        if found is None:
            problem = (
                f"is {quoted(text)}, neither a number nor a date like 2024-05-31 13:00"
                if text
                else "is empty"
            )
            raise DataError(f"{where}: the time {problem}; correct it, or drop the row") from None
        return found.at / SECOND
    if not math.isfinite(number):
        raise DataError(f"{where}: the time is {quoted(text)}; correct it, or drop the row")
    return number / next((unit for least, unit in UNITS if abs(number) >= least), 1.0)


def _is_low(rating: str | None, least: float, where: str) -> bool:
    try:
        return float(rating or "") < least
    except ValueError:
        problem = f"is {quoted(rating)}" if rating else "is missing"
        raise DataError(
            f"{where}: min_rating needs a number, but the rating {problem}; correct it, or drop min_rating"
        ) from None


def _spill(
    interactions: Iterable[Interaction],
    grouping: Grouping,
    users: Names,
    items: Names,
    effect: Effect,
    file: IO[bytes],
    refuse: Refuse,
) -> bool:
    """Writes a record of numbers for each interaction; returns whether they have times."""
    block: list[tuple[int, int, float]] = []
    has_times = False
    for user, item, time, rating, where in interactions:
        try:
            if grouping.min_rating is not None and _is_low(rating, grouping.min_rating, where):
                effect.n_low += 1
                effect.n_read += 1
                continue
            at = 0.0 if time is None else seconds(time, where)
            block.append((users.number(user, where), items.number(item, where), at))
        except DataError as fault:
            refuse(fault)
            continue
        has_times = has_times or time is not None
        effect.n_read += 1
        if len(block) == BLOCK:
            file.write(np.array(block, RECORD).tobytes())
            block = []
    file.write(np.array(block, RECORD).tobytes())
    file.flush()
    return has_times


def _mapped(file: IO[bytes]) -> Records:
    file.flush()
    n = file.seek(0, 2) // RECORD.itemsize
    return np.memmap(file, RECORD, "r", shape=(n,)) if n else np.zeros(0, RECORD)


def _blocks(n: int) -> Iterator[slice]:
    return (slice(begin, min(begin + BLOCK, n)) for begin in range(0, n, BLOCK))


def _counts(numbers: Records, name: str, n: int, keep_N: NDArray[np.bool_] | None = None) -> Ints:
    """Count the records of each number, without those that are not kept."""
    total = np.zeros(n, np.int64)
    for part in _blocks(len(numbers)):
        found = numbers[name][part]
        total += np.bincount(found if keep_N is None else found[keep_N[part]], minlength=n)
    return total


def _sort_by_user(records: Records, n_users: int, file: IO[bytes]) -> Ints:
    """Writes the records user by user, each user's in the order of the file; returns where each user ends."""
    ends_U = np.cumsum(_counts(records, "history", n_users))
    if not len(records):
        return ends_U
    free_U = np.concatenate([[0], ends_U[:-1]])
    file.truncate(records.nbytes)
    sorted_N: Any = np.memmap(file, RECORD, "r+", shape=records.shape)
    for part in _blocks(len(records)):
        block = records[part]
        block = block[np.argsort(block["history"], kind="stable")]
        users = block["history"]
        sorted_N[free_U[users] + np.arange(len(block)) - np.searchsorted(users, users)] = block
        free_U += np.bincount(users, minlength=n_users)
    sorted_N.flush()
    return ends_U


def _tidy(
    records: Records, ends_U: Ints, grouping: Grouping, effect: Effect, file: IO[bytes], *, has_times: bool
) -> Ints:
    """Writes each user's records in the order of time, cut into histories; returns the users of these."""
    owners: list[Ints] = []
    n_histories = first = 0
    while first < len(ends_U):
        begin = int(ends_U[first - 1]) if first else 0
        after = max(first + 1, int(np.searchsorted(ends_U, begin + BLOCK, "right")))
        block = np.array(records[begin : ends_U[after - 1]])
        block = block[np.lexsort((block["time"], block["history"]))]
        if has_times:
            block = _without_duplicates(block, effect)
        if grouping.repeats != "keep":
            n = len(block)
            block = block[_firsts(block["history"], block["item"], last=grouping.repeats == "last")]
            effect.n_repeats += n - len(block)
        users = block["history"].copy()
        follows = np.diff(users, prepend=-1) == 0
        gaps = np.diff(block["time"], prepend=0)
        effect.n_equal_times += int((follows & (gaps == 0)).sum()) if has_times else 0
        if grouping.session_gap is not None:
            follows &= gaps <= 60 * grouping.session_gap
        block["history"] = n_histories - 1 + np.cumsum(~follows)
        owners.append(users[~follows])
        n_histories += len(owners[-1])
        file.write(block.tobytes())
        first = after
    return np.concatenate([*owners, np.zeros(0, np.int32)])


def _without_duplicates(block: Records, effect: Effect) -> Records:
    """The records without those that say the same as an earlier one, the time too."""
    kept = block[_firsts(block["history"], block["time"], block["item"])]
    effect.n_duplicates += len(block) - len(kept)
    return kept


def _firsts(*columns: NDArray[Any], last: bool = False) -> Ints:
    """The places, in their order, of the first, or the last, of records that are equal in all columns."""
    order = np.lexsort(columns[::-1])
    is_new = np.zeros(len(order), bool)
    for column in columns:
        changes = column[order][1:] != column[order][:-1]
        is_new[0 if last else 1 :][: len(changes)] |= changes
    is_new[-1 if last else 0 :][:1] = True
    return np.sort(order[is_new])


def _core(
    records: Records, n_histories: int, n_items: int, grouping: Grouping, effect: Effect
) -> NDArray[np.bool_]:
    """Which records remain when all histories and items with too few have been left out, again and again."""
    keep_N = np.ones(len(records), bool)
    if grouping.min_user <= 1 and grouping.min_item <= 1:
        return keep_N
    n_kept = -1
    while n_kept != (n_kept := int(keep_N.sum())):
        enough_H = _counts(records, "history", n_histories, keep_N) >= grouping.min_user
        enough_I = _counts(records, "item", n_items, keep_N) >= grouping.min_item
        for part in _blocks(len(records)):
            keep_N[part] &= enough_H[records["history"][part]] & enough_I[records["item"][part]]
        effect.rounds += 1
    effect.n_rare = len(records) - n_kept
    return keep_N


def _gathered(
    records: Records,
    keep_N: NDArray[np.bool_],
    owners: Ints,
    users: Names,
    items: Names,
    effect: Effect,
    *,
    has_times: bool,
) -> Histories:
    lengths_H = _counts(records, "history", len(owners), keep_N)
    counts_I = _counts(records, "item", len(items.numbers), keep_N)
    kept_H = np.flatnonzero(lengths_H)
    effect.n_kept, effect.n_histories = int(lengths_H.sum()), len(kept_H)
    effect.n_users, effect.n_items = len(np.unique(owners[kept_H])), int((counts_I > 0).sum())
    return Histories(
        list(users.numbers),
        list(items.numbers),
        owners[kept_H],
        np.cumsum(lengths_H[kept_H]),
        _column(records, "item", keep_N),
        _column(records, "time", keep_N) if has_times else None,
        effect,
    )


def _column(records: Records, name: str, keep_N: NDArray[np.bool_]) -> NDArray[Any]:
    """A column of the records that are kept, mapped from a file that goes when nobody maps it any more."""
    with tempfile.TemporaryFile() as file:
        for part in _blocks(len(records)):
            file.write(records[name][part][keep_N[part]].tobytes())
        file.flush()
        n = int(keep_N.sum())
        return np.memmap(file, RECORD[name], "r", shape=(n,)) if n else np.zeros(0, RECORD[name])
