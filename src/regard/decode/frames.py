"""Searches over frames: what a transducer writes while it hears, and what CTC says at every frame.

A search goes through the frames once, in their order, and keeps all it needs in a value. So it may be fed in
pieces of any size, and what it finds is the same. Ways that write the same labels are one path, whose
probabilities are added up.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from regard.decode.hot_words import HotWords

BLANK = 0
"""The label that writes nothing."""
State = tuple[Tensor, ...]
"""Of a prediction network: a row for each path, and first of all what the joint network reads of it."""


class Transducing(Protocol):
    """What a search asks of a transducer."""

    def begin(self, n_rows: int) -> State: ...

    def write(self, labels_N: Tensor, state: State) -> State: ...

    def score(self, entered_NF: Tensor, state: State) -> Tensor:
        """log_probs_NV of the next label at a frame; the blank goes on to the next one."""


class Settings(NamedTuple):
    width: int
    """Paths that are kept; 1 takes the likeliest label at every frame."""
    most: int
    """Labels that are written at one frame at most."""
    never: Tensor
    """Labels that are never written."""
    hot_words: HotWords | None = None


@dataclass(frozen=True, slots=True)
class Path:
    """Labels that were written, each with the frame where it was and how probable it was there."""

    labels: tuple[int, ...] = ()
    frames: tuple[int, ...] = ()
    steps: tuple[float, ...] = ()
    log_prob: float = 0.0
    """Of the labels, added up over all ways that were kept."""
    bonus: float = 0.0
    """For hot words."""
    hot: int = 0
    """How much of a hot word has been written."""
    ends: tuple[float, float] = (0.0, -math.inf)
    """Of CTC: log-probability of the ways that end in a blank, and of those that end in the last label."""

    @property
    def score(self) -> float:
        return self.log_prob + self.bonus

    def written(self, label: int, frame: int, step: float, hot_words: HotWords | None) -> "Path":
        """With one label more."""
        hot, bonus = (0, 0.0) if hot_words is None else hot_words.after(self.hot, label)
        return replace(
            self,
            labels=(*self.labels, label),
            frames=(*self.frames, frame),
            steps=(*self.steps, step),
            log_prob=self.log_prob + step,
            bonus=self.bonus + bonus,
            hot=hot,
        )

    def first(self, n: int) -> "Path":
        """Its first labels alone."""
        return Path(self.labels[:n], self.frames[:n], self.steps[:n])

    def without_first(self, n: int) -> "Path":
        """Without its first labels, with all else that a search needs of it."""
        return replace(self, labels=self.labels[n:], frames=self.frames[n:], steps=self.steps[n:])

    def joined(self, other: "Path") -> "Path":
        """Both ways to the same labels as one path, with the times of the likelier one."""
        first = self if self.log_prob >= other.log_prob else other
        ends = _added(self.ends[0], other.ends[0]), _added(self.ends[1], other.ends[1])
        return replace(first, log_prob=_added(self.log_prob, other.log_prob), ends=ends)


@dataclass(frozen=True)
class Searched:
    """The paths after so many frames, the best first; of each row."""

    rows: tuple[tuple[Path, ...], ...]
    states: tuple[State, ...] = ()
    """Of the prediction network: for each row, a row for each of its paths."""
    n_frames: int = 0
    last: tuple[int, ...] = field(default=())
    """Of CTC: the label at the last frame, of each row."""

    def certain(self, row: int = 0) -> tuple[int, ...]:
        """The labels with which all paths begin."""
        paths = [path.labels for path in self.rows[row]]
        shortest = min(map(len, paths))
        alike = (at for at in range(shortest) if len({labels[at] for labels in paths}) > 1)
        return paths[0][: next(alike, shortest)]

    def without_first(self, n: int) -> "Searched":
        """The search of one row without the first labels, which all its paths share.

        At least one label stays, as CTC needs the last one.
        """
        (paths,) = self.rows
        return replace(self, rows=(tuple(path.without_first(n) for path in paths),)) if n else self


def settled(searched: Searched, frame: int) -> Searched:
    """The search of one row without the paths that have other labels before this frame than the best one."""
    (paths,) = searched.rows
    n = sum(one < frame for one in paths[0].frames)
    kept = [at for at, path in enumerate(paths) if path.labels[:n] == paths[0].labels[:n]]
    if len(kept) == len(paths):
        return searched
    states = tuple(tuple(part[kept] for part in state) for state in searched.states)
    return replace(searched, rows=(tuple(paths[at] for at in kept),), states=states)


def _added(one: float, other: float) -> float:
    """log(exp(one) + exp(other))"""
    low, high = sorted((one, other))
    return high if low == -math.inf else high + math.log1p(math.exp(low - high))


# transducers


def begin_transducing(model: Transducing, n_rows: int) -> Searched:
    state = model.begin(n_rows)
    states = tuple(tuple(part[row : row + 1] for part in state) for row in range(n_rows))
    return Searched(((Path(),),) * n_rows, states)


def transduce(
    model: Transducing, entered_BTF: Tensor, n_frames_B: Sequence[int], before: Searched, settings: Settings
) -> Searched:
    """The paths after some more frames; rows may have fewer of them."""
    if settings.width == 1 and settings.hot_words is None:
        return _greedy(model, entered_BTF, n_frames_B, before, settings)
    rows, states = [], []
    for row, (paths, state) in enumerate(zip(before.rows, before.states, strict=True)):
        for at in range(n_frames_B[row]):
            paths, state = _one_frame(
                model, entered_BTF[row, at], before.n_frames + at, paths, state, settings
            )
        rows.append(paths)
        states.append(state)
    return Searched(tuple(rows), tuple(states), before.n_frames + entered_BTF.shape[1])


def _greedy(
    model: Transducing, entered_BTF: Tensor, n_frames_B: Sequence[int], before: Searched, settings: Settings
) -> Searched:
    """All rows at once: the likeliest label at every frame, until that is the blank."""
    paths = [row[0] for row in before.rows]
    labels = [[*path.labels] for path in paths]
    frames, steps = [[*path.frames] for path in paths], [[*path.steps] for path in paths]
    log_probs = [path.log_prob for path in paths]
    state = tuple(torch.cat(parts) for parts in zip(*before.states, strict=True))
    for at in range(entered_BTF.shape[1]):
        hearing = [row for row, n_frames in enumerate(n_frames_B) if at < n_frames]
        for n_written in range(settings.most + 1):
            if not hearing:
                break
            rows_N = torch.tensor(hearing, device=entered_BTF.device)
            log_probs_NV = model.score(entered_BTF[rows_N, at], tuple(part[rows_N] for part in state))
            if n_written == settings.most:
                for row, blank in zip(hearing, log_probs_NV[:, BLANK].tolist(), strict=True):
                    log_probs[row] += blank
                break
            best_N, label_N = log_probs_NV.index_fill(1, settings.never, -torch.inf).max(1)
            found = zip(hearing, label_N.tolist(), best_N.tolist(), strict=True)
            hearing, wrote = [], label_N != BLANK
            for row, label, step in found:
                log_probs[row] += step
                if label != BLANK:
                    labels[row].append(label)
                    frames[row].append(before.n_frames + at)
                    steps[row].append(step)
                    hearing.append(row)
            if hearing:
                rows_N = rows_N[wrote]
                after = model.write(label_N[wrote], tuple(part[rows_N] for part in state))
                state = tuple(part.index_copy(0, rows_N, new) for part, new in zip(state, after, strict=True))
    made = zip(labels, frames, steps, log_probs, strict=True)
    rows = tuple((Path(tuple(a), tuple(b), tuple(c), log_prob),) for a, b, c, log_prob in made)
    states = tuple(tuple(part[row : row + 1] for part in state) for row in range(len(rows)))
    return Searched(rows, states, before.n_frames + entered_BTF.shape[1])


def _one_frame(
    model: Transducing,
    entered_F: Tensor,
    frame: int,
    paths: tuple[Path, ...],
    state: State,
    settings: Settings,
) -> tuple[tuple[Path, ...], State]:
    """The paths of one row after a frame, at which each may write some labels."""
    through: dict[tuple[int, ...], tuple[Path, State, int]] = {}
    active, active_state = list(paths), state
    for n_written in range(settings.most + 1):
        n = len(active)
        log_probs_NV = model.score(entered_F.expand(n, -1), active_state)
        for place, (path, blank) in enumerate(zip(active, log_probs_NV[:, BLANK].tolist(), strict=True)):
            passed = replace(path, log_prob=path.log_prob + blank)
            if path.labels in through:
                first, *where = through[path.labels]
                through[path.labels] = (first.joined(passed), *where)  # type: ignore[assignment]
            else:
                through[path.labels] = passed, active_state, place
        if n_written == settings.most:
            break
        ranked = sorted((path.score for path, _, _ in through.values()), reverse=True)
        least = ranked[settings.width - 1] if len(ranked) >= settings.width else -math.inf
        grown = _grown(active, log_probs_NV, frame, least, settings)
        if not grown:
            break
        parents_N = torch.tensor([place for _, place in grown], device=entered_F.device)
        labels_N = torch.tensor([path.labels[-1] for path, _ in grown], device=entered_F.device)
        active_state = model.write(labels_N, tuple(part[parents_N] for part in active_state))
        active = [path for path, _ in grown]
    best = sorted(through.values(), key=lambda one: -one[0].score)[: settings.width]
    rows = [tuple(part[place : place + 1] for part in state) for _, state, place in best]
    return tuple(path for path, _, _ in best), tuple(torch.cat(parts) for parts in zip(*rows, strict=True))


def _grown(
    active: Sequence[Path], log_probs_NV: Tensor, frame: int, least: float, settings: Settings
) -> list[tuple[Path, int]]:
    """Paths with a label more that may be among the best, each with the place of the one it continues."""
    open_NV = log_probs_NV.index_fill(1, settings.never, -torch.inf)
    open_NV = torch.cat([torch.full_like(open_NV[:, :1], -torch.inf), open_NV[:, 1:]], 1)
    n_best = min(settings.width + (settings.hot_words is not None) * 8, open_NV.shape[1])
    steps, labels = (found.tolist() for found in open_NV.topk(n_best))
    grown: dict[tuple[int, ...], tuple[Path, int]] = {}
    for place, path in enumerate(active):
        for label, step in zip(labels[place], steps[place], strict=True):
            if step == -math.inf:
                break
            longer = path.written(label, frame, step, settings.hot_words)
            if longer.score < least:
                continue
            known = grown.get(longer.labels)
            grown[longer.labels] = (longer if known is None else known[0].joined(longer), place)
    return sorted(grown.values(), key=lambda one: -one[0].score)[: settings.width]


# CTC


def begin_saying(n_rows: int) -> Searched:
    return Searched(((Path(),),) * n_rows, last=(BLANK,) * n_rows)


def say(log_probs_BTV: Tensor, n_frames_B: Sequence[int], before: Searched, settings: Settings) -> Searched:
    """The paths after some more frames of CTC: a label that is said again without a blank is the same one."""
    advance = _likeliest if settings.width == 1 and settings.hot_words is None else _prefixes
    open_BTV = log_probs_BTV.index_fill(2, settings.never, -torch.inf)
    rows, last = [], []
    for row, paths in enumerate(before.rows):
        found, final = advance(
            open_BTV[row, : n_frames_B[row]], before.n_frames, paths, before.last[row], settings
        )
        rows.append(found)
        last.append(final)
    return Searched(tuple(rows), (), before.n_frames + log_probs_BTV.shape[1], tuple(last))


def _likeliest(
    log_probs_TV: Tensor, first: int, paths: tuple[Path, ...], last: int, settings: Settings
) -> tuple[tuple[Path, ...], int]:
    (path,) = paths
    best_T, label_T = log_probs_TV.max(1)
    for at, (label, step) in enumerate(zip(label_T.tolist(), best_T.tolist(), strict=True)):
        if label in (BLANK, last):
            path = replace(path, log_prob=path.log_prob + step)
        else:
            path = path.written(label, first + at, step, None)
        last = label
    return (path,), last


def _prefixes(
    log_probs_TV: Tensor, first: int, paths: tuple[Path, ...], last: int, settings: Settings
) -> tuple[tuple[Path, ...], int]:
    """Prefix beam search (Hannun et al. 2014): paths add up their ways, by whether they end in a blank."""
    for at, log_probs_V in enumerate(log_probs_TV):
        n_best = min(settings.width + 8, len(log_probs_V))
        likely = [label for label in log_probs_V.topk(n_best).indices.tolist() if label != BLANK]
        steps: list[float] = log_probs_V.tolist()
        found: dict[tuple[int, ...], Path] = {}
        for path in paths:
            by_blank, by_label = path.ends
            again = by_label + steps[path.labels[-1]] if path.labels else -math.inf
            blank = _added(by_blank, by_label) + steps[BLANK]
            _merge(found, replace(path, ends=(blank, again), log_prob=_added(blank, again)))
            for label in likely:
                same = bool(path.labels) and label == path.labels[-1]
                way = (by_blank if same else _added(by_blank, by_label)) + steps[label]
                if way > -math.inf:
                    longer = path.written(label, first + at, steps[label], settings.hot_words)
                    _merge(found, replace(longer, ends=(-math.inf, way), log_prob=way))
        paths = tuple(sorted(found.values(), key=lambda one: -one.score)[: settings.width])
    return paths, last


def _merge(found: dict[tuple[int, ...], Path], path: Path) -> None:
    known = found.get(path.labels)
    found[path.labels] = path if known is None else known.joined(path)


Search = Callable[[Tensor, Sequence[int], Searched, Settings], Searched]


def searching(model: Any) -> tuple[Callable[[int], Searched], Search]:
    """How the search of a model begins, and how it goes on."""
    if model.labels_per_frame:
        return (
            lambda n_rows: begin_transducing(model, n_rows),
            lambda entered, n_frames, before, settings: transduce(model, entered, n_frames, before, settings),
        )
    return begin_saying, say
