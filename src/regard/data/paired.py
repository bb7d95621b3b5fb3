"""Pairs for next-sentence prediction: two runs of sentences that do or do not follow, drawn anew every epoch.

A document gives an example for every `room` tokens, the last of them partly filled. Its windows are spread
evenly over it and shifted by up to half a window; each begins with a sentence and holds whole sentences. A
window is cut in two at a sentence; in half of the cases its second part is replaced by sentences of another
document, those of many draws that come closest to its length: otherwise the shorter text would give away that
it does not follow. All of this is drawn from (seed, epoch, example) and the mapped arrays, and nothing is
stored, so a resumed run sees the same pairs.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from regard.data.cache import Arrays, Encoder, Examples, Ints, Jagged
from regard.errors import DataError
from regard.fields.sentences import DOES_NOT, FOLLOWS, NO_PAIR
from regard.files.row import Row

MARKS = 3
"""Special tokens around two texts: one before them, one after each."""
DRAWS = 32
"""Draws of another document's sentences, of which the longest that fit are taken."""


class Pairing(Encoder, Protocol):
    """An encoder whose rows are documents, or parts of them, learnt from in pairs of runs of sentences.

    Their arrays are `ids`, `sentence_lengths`, and `closes`: 1 if the document ends with the row. A pair has
    the arrays `first`, `second` if there is a second run, and `follows`.
    """

    @property
    def room(self) -> int:
        """Tokens of both runs together; no sentence has more than half of them."""


class Run(NamedTuple):
    """Consecutive whole sentences: the place of their first token, and the tokens of each."""

    begin: int
    lengths: Ints


class Paired(Examples):
    def __init__(
        self,
        encoder: Pairing,
        arrays: Arrays,
        files: Sequence[str],
        left_out: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(encoder, arrays, files, left_out)
        self._room, self._epoch = encoder.room, (0, 0)
        self.n_documents = self.n_with_next = 0
        """Documents with any text, and documents with two sentences or more."""
        if not self.columns:
            return
        self._tokens, self._lengths, closes = (
            self.columns[name] for name in ("ids", "sentence_lengths", "closes")
        )
        rows = np.flatnonzero(closes.values) + 1
        n_rows = len(closes.values)
        self._rows = rows if len(rows) and rows[-1] == n_rows else np.append(rows, n_rows)
        """The row after the last of every document."""
        self._ends: Ints = np.asarray(self._tokens.ends[self._rows - 1])
        n_tokens = np.diff(self._ends, prepend=0)
        n_examples = -(-n_tokens // self._room)
        self._numbers = np.cumsum(n_examples)
        """The example after the last of every document."""
        self.n_documents = int(np.count_nonzero(n_tokens))
        n_sentences = np.diff(self._lengths.ends[self._rows - 1], prepend=0)
        self.n_with_next = int(np.count_nonzero(n_sentences > 1))
        longest = np.minimum(n_tokens, self._room) + MARKS
        self.sizes = np.repeat(longest, n_examples).astype(np.int32)[:, None]

    @property
    def documents(self) -> Jagged:
        """The tokens of every document, in order."""
        return Jagged(self._tokens.values, self._ends)

    def in_epoch(self, seed: int, epoch: int) -> Self:
        drawn = copy(self)
        drawn._epoch = seed, epoch
        return drawn

    def __getitem__(self, i: Any) -> Any:
        if not 0 <= i < len(self):
            raise IndexError(i)
        rng = np.random.default_rng((*self._epoch, i, MARKS))
        pair = self._encoder.revive(self.row(i), self._pair(i, rng))
        return self._encoder.draw(pair, rng, self)

    def _pair(self, i: int, rng: np.random.Generator) -> Arrays:
        """The one or two runs of an example, and whether the second follows the first."""
        document, room = self._document(i), int(self.sizes[i, 0]) - MARKS
        begin, lengths = self._run_at(self._place(document, i, rng), room)
        if len(lengths) < 2 or self.n_documents < 2:
            return {"first": self._tokens_of(begin, lengths), "follows": np.array([NO_PAIR])}
        n_first = int(rng.integers(1, len(lengths)))
        first, rest = self._tokens_of(begin, lengths[:n_first]), lengths[n_first:]
        if rng.random() < 0.5:
            second, follows = self._tokens_of(begin + len(first), rest), FOLLOWS
        else:
            second, follows = self._elsewhere(document, int(rest.sum()), rng), DOES_NOT
        return {"first": first, "second": second, "follows": np.array([follows])}

    def row(self, i: int) -> Row:
        """The row in which its document begins."""
        document = self._document(i)
        return super().row(int(self._rows[document - 1]) if document else 0)

    def _document(self, i: int) -> int:
        return int(np.searchsorted(self._numbers, i, side="right"))

    def _span(self, document: int) -> tuple[int, int]:
        return int(self._ends[document - 1]) if document else 0, int(self._ends[document])

    def _place(self, document: int, i: int, rng: np.random.Generator) -> int:
        """A token of the sentence that the window begins with."""
        begin, end = self._span(document)
        before, after = int(self._numbers[document - 1]) if document else 0, int(self._numbers[document])
        room, last = self._room, after - before - 1
        if not last:
            return begin
        evenly = (end - begin - room) * (i - before) / last
        moved = evenly + rng.uniform(-room / 2, room / 2)
        return begin + int(np.clip(moved, 0, end - begin - room))

    def _run_at(self, place: int, room: int) -> Run:
        """The run from the beginning of the sentence of a token."""
        row = int(np.searchsorted(self._tokens.ends, place, side="right"))
        ends = np.cumsum(self._lengths[row], dtype=np.int64)
        within = int(np.searchsorted(ends, place - self._begin(row), side="right"))
        return self._run(row, within, room)

    def _run(self, row: int, within: int, room: int) -> Run:
        """The run from a sentence of a row: as many sentences as fit, up to the end of the document."""
        before = int(self._lengths[row][:within].sum(dtype=np.int64))
        first = int(self._lengths.ends[row - 1] if row else 0) + within
        document = int(np.searchsorted(self._rows, row, side="right"))
        last = int(self._lengths.ends[self._rows[document] - 1])
        lengths = self._lengths.values[first : min(last, first + room)].astype(np.int64)
        return Run(self._begin(row) + before, lengths[: np.searchsorted(np.cumsum(lengths), room, "right")])

    def _begin(self, row: int) -> int:
        return int(self._tokens.ends[row - 1]) if row else 0

    def _tokens_of(self, begin: int, lengths: Ints) -> Ints:
        return self._tokens.values[begin : begin + int(lengths.sum())]

    def _elsewhere(self, document: int, room: int, rng: np.random.Generator) -> Ints:
        """Sentences of another document; longer parts are drawn more often.

        If no drawn sentence is short enough, the beginning of one.
        """
        begin, end = self._span(document)
        best = self._tokens.values[:0]
        for _ in range(DRAWS):
            place = int(rng.integers(int(self._ends[-1]) - (end - begin)))
            place += (end - begin) * (place >= begin)
            row = int(np.searchsorted(self._tokens.ends, place, side="right"))
            run = self._run(row, int(rng.integers(len(self._lengths[row]))), room)
            best = max(best, self._tokens_of(*run), key=len)
            if len(best) == room:
                break
        return best if len(best) else self._tokens.values[run.begin : run.begin + room]

    def refuse_unfit(self, name: str) -> None:
        """Raise DataError if no sentence follows another, or there is only one document."""
        if not self.n_documents:
            raise DataError(f"{name}: holds no text")
        if self.n_documents < 2:
            raise DataError(
                f"{name}: holds only one document, so no sentence can come from another; put a blank line "
                "between documents, or set task.documents to what a document is (lines, paragraphs or files)"
            )
        if not self.n_with_next:
            raise DataError(
                f"{name}: every document has only one sentence, so none follows another; write one sentence "
                "a line with a blank line between documents, or split texts at punctuation with "
                'task.sentences = "marks"'
            )
