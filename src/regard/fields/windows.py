"""Texts longer than a model reads at once, in overlapping windows: an example is several rows of a batch.

A sentence is cut between words. Its next window begins half a window further, so that every word but those at
the ends of the sentence has something before and after it in one window or the other; a word is answered
where it stands best. A context is cut anywhere, each of its parts after the same question.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from regard.fields.axis import Axis, ended
from regard.fields.field import Arrays, Coded, Occlusion
from regard.fields.joined import Joined
from regard.fields.padding import NOWHERE, integers, lengths, padded

Place = tuple[int, int]
"""Begin and end, the end not included."""
BETWEEN = 1
"""The mark that stands between a question and its context."""


@dataclass(frozen=True)
class WordWindows(Joined):
    """A sentence whose words are told apart.

    Arrays: `ids`, without marks, and the `word_lengths` in tokens. A batch has rows of framed windows, and in
    `places` a row of words for each sentence: where among all the tokens of the batch each word begins.
    """

    def assemble(self, parts: Sequence[Coded]) -> Coded:
        """A word of more than half a window is cut."""
        (part,) = parts
        ids, n_tokens = part.arrays["ids"], part.arrays["word_lengths"]
        most = self.limit // 2
        within = np.arange(len(ids)) - np.repeat(_begins(n_tokens), n_tokens)
        arrays = {"ids": ids[within < most], "word_lengths": np.minimum(n_tokens, most)}
        return Coded(arrays, {"cut": bool((n_tokens > most).any())})

    def is_empty(self, arrays: Arrays) -> bool:
        return not len(arrays["ids"])

    def size(self, arrays: Arrays) -> int:
        return len(arrays["ids"]) + len(self.fields[0].tokenizer.with_special_tokens(()))

    def collate(self, many: Sequence[Arrays]) -> Arrays:
        tokenizer = self.fields[0].tokenizer
        rows: list[Any] = []
        places = []
        for arrays in many:
            n_tokens = integers(arrays["word_lengths"])
            spans, owner = word_windows(n_tokens, self.limit)
            firsts = np.array([begin for begin, _ in spans])
            within = _begins(n_tokens) - firsts[owner] + len(tokenizer.special.begin)
            places.append(np.stack([len(rows) + owner, within]))
            ids = arrays["ids"].tolist()
            rows += [tokenizer.with_special_tokens(ids[begin:end]) for begin, end in spans]
        ids_RT = padded(rows)
        flat = [row * ids_RT.shape[1] + within for row, within in places]
        return {"ids": ids_RT, "lengths": lengths(rows), "places": padded(flat, NOWHERE, least=1)}

    def first_window(self, arrays: Arrays) -> Arrays:
        n_tokens = integers(arrays["word_lengths"])
        _, end = word_windows(n_tokens, self.limit).spans[0]
        n_words = int((np.cumsum(n_tokens) <= end).sum())
        return {"ids": arrays["ids"][:end], "word_lengths": n_tokens[:n_words]}

    def without(self, batch: Arrays, axis: Axis, units: Sequence[int], how: Occlusion) -> Arrays:
        """Whatever is asked, a token of a word becomes unknown: one that is gone could not be answered."""
        rows = super().without(batch, axis, units, "blank")
        shift = np.arange(len(units))[:, None] * batch["ids"].shape[1]
        return {**rows, "places": rows["places"] + shift}

    def axis(self, values: Sequence[Any], coded: Coded) -> Axis:
        """The units of one window."""
        (sentence,), tokenizer = values, self.fields[0].tokenizer
        words = zip(sentence.words, coded.arrays["word_lengths"], strict=False)
        tokens = [token for word, n in words for token in tokenizer.token_texts(word, n) or (word,)]
        marks = tokenizer.tokens(tokenizer.with_special_tokens(()))
        return ended(self.name, (*marks[:-1], *tokens, marks[-1]))


@dataclass(frozen=True)
class ContextWindows(Joined):
    """A question and its context, which is read in windows, each after the question.

    Arrays: `ids`, the framed windows one after another; the `lengths` of these; `second`, where the context
    begins in every one of them. Notes: the token of the context that each window `begins` with, and the
    `offsets` of all tokens of the context, the characters that each stands for.
    """

    name: str = "question and context"
    max_question: int = 64
    """Tokens of a question; longer ones are cut."""
    overlap: int = 128
    """Tokens that a window shares with the one before."""

    def assemble(self, parts: Sequence[Coded]) -> Coded:
        tokenizer = self.fields[0].tokenizer
        ids, context = (part.arrays["ids"].tolist() for part in parts)
        question = ids[: self.max_question]
        spans = context_windows(len(context), self.limit - BETWEEN - len(question), self.overlap)
        windows = [tokenizer.with_special_tokens(question, context[begin:end]) for begin, end in spans]
        arrays = {
            "ids": np.concatenate(windows),
            "lengths": lengths(windows),
            "second": np.array([len(tokenizer.with_special_tokens(question))]),
        }
        notes = {
            "cut": len(question) < len(ids),
            "begins": np.array([begin for begin, _ in spans]),
            "offsets": parts[1].notes["offsets"],
        }
        return Coded(arrays, notes)

    def is_empty(self, arrays: Arrays) -> bool:
        second = int(arrays["second"][0])
        nothing_asked = second == len(self.fields[0].tokenizer.with_special_tokens(()))
        return nothing_asked or int(arrays["lengths"][0]) == second + BETWEEN

    def collate(self, many: Sequence[Arrays]) -> Arrays:
        windows = [window for arrays in many for window in np.split(arrays["ids"], _ends(arrays)[:-1])]
        ids = padded(windows)
        seconds = np.repeat(
            [int(arrays["second"][0]) for arrays in many], [len(_ends(arrays)) for arrays in many]
        )
        segments = np.arange(ids.shape[1]) >= seconds[:, None]
        return {"ids": ids, "lengths": lengths(windows), "segments": segments.astype(np.int64)}

    def window(self, coded: Coded, at: int) -> Coded:
        """One of the windows alone."""
        own, ends = slice(at, at + 1), _ends(coded.arrays)
        n = int(coded.arrays["lengths"][at])
        arrays = {
            "ids": coded.arrays["ids"][ends[at] - n : ends[at]],
            "lengths": coded.arrays["lengths"][own],
            "second": coded.arrays["second"],
        }
        return Coded(arrays, {**coded.notes, "begins": coded.notes["begins"][own]})

    def ends(self, coded: Coded, characters: Place) -> Any:
        """The first and the last place that hold these characters of the context, in each window.

        0 0 in a window that does not hold all of them; None if no token stands for any of them.
        """
        touched = tokens_at(coded.notes["offsets"], characters)
        if touched is None:
            return None
        second = int(coded.arrays["second"][0])
        n_tokens = coded.arrays["lengths"] - second - BETWEEN
        within = np.array(touched) - coded.notes["begins"][:, None]
        is_whole = (within[:, 0] >= 0) & (within[:, 1] < n_tokens)
        return np.where(is_whole[:, None], within + second, 0)

    def characters(self, coded: Coded, window: int, first: int, last: int) -> Place:
        """The characters of the context from one place of a window to another."""
        shift = int(coded.notes["begins"][window]) - int(coded.arrays["second"][0])
        offsets = coded.notes["offsets"]
        return int(offsets[first + shift][0]), int(offsets[last + shift][1])

    def axis(self, values: Sequence[str], coded: Coded) -> Axis:
        """The units of one window: a mark, or what stands there in the text."""
        question, context = values
        tokenizer = self.fields[0].tokenizer
        marks = tokenizer.tokens(tokenizer.with_special_tokens((), ()))
        begin = int(coded.notes["begins"][0])
        n_tokens = int(coded.arrays["lengths"][0]) - int(coded.arrays["second"][0]) - BETWEEN
        words = (context[start:end] for start, end in coded.notes["offsets"][begin : begin + n_tokens])
        read = tokenizer.token_texts(question, self.max_question)
        return ended(self.name, (*marks[:-2], *read, marks[-2], *words, marks[-1]))


class Windows(NamedTuple):
    spans: list[Place]
    """The tokens of each window."""
    owner: Any
    """The window that answers for each word."""


def word_windows(n_tokens: Any, most: int) -> Windows:
    """Windows of at most so many tokens, of words that have so many each, none more than half of `most`.

    A sentence without words has one window, with nothing in it.
    """
    if not len(n_tokens):
        return Windows([(0, 0)], np.zeros(0, np.int64))
    ends = np.cumsum(n_tokens)
    starts = ends - n_tokens
    total = int(ends[-1])
    spans = [(0, int(ends[ends <= most][-1]))]
    while spans[-1][1] < total:
        begin = int(starts[starts >= spans[-1][0] + (most + 1) // 2][0])
        spans.append((begin, int(ends[ends <= begin + most][-1])))
    return Windows(spans, np.stack([_depths(starts, ends, span, total) for span in spans]).argmax(0))


def _depths(starts: Any, ends: Any, span: Place, total: int) -> Any:
    """Count the tokens around each word in a window, on the poorer side; −1 for words outside.

    The ends of the sentence are no edges: beyond them there is nothing to miss.
    """
    begin, end = span
    before = starts - begin if begin else np.full_like(starts, total)
    after = end - ends if end < total else np.full_like(ends, total)
    return np.maximum(np.minimum(before, after), -1)


def context_windows(n_tokens: int, room: int, overlap: int) -> list[Place]:
    """The parts of a context that are read together; one without tokens has one, empty."""
    windows = [(0, min(room, n_tokens))]
    while windows[-1][1] < n_tokens:
        begin = windows[-1][0] + room - overlap
        windows.append((begin, min(begin + room, n_tokens)))
    return windows


def tokens_at(offsets: Any, characters: Place) -> Place | None:
    """The first and the last token that hold any of these characters."""
    start, end = characters
    begins, ends = np.reshape(offsets, (-1, 2)).T
    touched = np.flatnonzero((begins < end) & (ends > start))
    return (int(touched[0]), int(touched[-1])) if len(touched) else None


def _begins(n_tokens: Any) -> Any:
    return np.cumsum(n_tokens) - n_tokens


def _ends(arrays: Arrays) -> Any:
    """The end of each window."""
    return np.cumsum(integers(arrays["lengths"]))
