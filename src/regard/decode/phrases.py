"""Phrases in what is being written, whatever pieces spell them.

Text is read as a stream in which words have spaces around them and every other character has too, so that
"cat" is found in "a cat." and in 喜欢cat, but not in "category", and 喜欢 is found anywhere. An automaton
(Aho and Corasick 1975) follows the stream: its nodes are the beginnings of phrases. Where each piece leads
from a node is worked out when a text first stands there, so that a step costs a look into a table, and long
phrases cost no more than the part of them that texts come to.
"""

import re
import unicodedata
from collections import deque
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

SPACE = " "
ROOT = 0
WITHOUT_SPACES = re.compile("[\u3005-\u3007\u3040-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]")
"""Ideographs and kana."""
AT_ONCE = 32
"""Nodes whose rows are worked out together."""

Bools = NDArray[np.bool_]
Ints = NDArray[np.int32]


def stream(text: str, *, byte_is_letter: bool = False) -> str:
    """As the automaton reads it. A single byte, of a character that is no piece, is no letter as a rule."""

    def is_inside(character: str) -> bool:
        return is_word_character(character) or (byte_is_letter and "\udc80" <= character <= "\udcff")

    return "".join(character if is_inside(character) else f" {character} " for character in text)


def contains(text: str, phrase: str) -> bool:
    """The slow twin: whether the text has the phrase in it."""
    return f" {' '.join(stream(phrase).split())} " in f" {' '.join(stream(text).split())} "


def is_word_character(character: str) -> bool:
    """Of a script that puts spaces between words."""
    if WITHOUT_SPACES.match(character):
        return False
    return character.isalnum() or unicodedata.category(character).startswith("M")


class _Pieces(NamedTuple):
    """The streams of all pieces, the longest first: a column for each place, of those that reach so far."""

    order_V: NDArray[np.int64]
    lengths_V: NDArray[np.int64]
    """In the order of the vocabulary."""
    columns: list[Ints]
    """Of code points."""


@lru_cache(maxsize=4)
def _pieces(spellings: tuple[str, ...], byte_is_letter: bool) -> _Pieces:
    streams = [stream(spelling, byte_is_letter=byte_is_letter) for spelling in spellings]
    lengths_V = np.array([len(letters) for letters in streams])
    order_V = np.argsort(-lengths_V, kind="stable")
    reach = [np.count_nonzero(lengths_V > place) for place in range(lengths_V.max())]
    columns = [
        np.array([ord(streams[piece][place]) for piece in order_V[:n]], np.int32)
        for place, n in enumerate(reach)
    ]
    return _Pieces(order_V, lengths_V, columns)


class Phrases:
    """`spellings` are the texts of all pieces, the space before a word included; nothing for marks."""

    def __init__(
        self, phrases: Sequence[str], spellings: Sequence[str], end: int, *, byte_is_letter: bool = False
    ) -> None:
        self._end, self._pieces = end, _pieces(tuple(spellings), byte_is_letter)
        streams = (stream(phrase, byte_is_letter=byte_is_letter) for phrase in phrases)
        words = [f" {' '.join(letters.split())} " for letters in streams]
        letters = np.array(sorted({*map(ord, "".join(words))}), np.int32)
        self._space = 1 + int(np.searchsorted(letters, ord(SPACE)))
        self._columns = [_numbered(column, letters) for column in self._pieces.columns]
        self._goto, self._complete = _automaton(
            [_numbered(np.array([*map(ord, word)], np.int32), letters).tolist() for word in words]
        )
        self._row_of_S = np.full(len(self._goto), -1)
        self._n_rows = 0
        self._leads_RV: Ints = np.empty((0, len(spellings)), np.int32)
        self._closed_RV: Bools = np.empty((0, len(spellings)), np.bool_)

    def completed_by(self, written_NT: Tensor, last: Sequence[bool]) -> Tensor:
        """closed_NV: pieces that would complete a phrase; where only the end may follow (`last`), with it."""
        row_N, _ = self._followed(written_NT)
        closed_NV = self._closed_RV[row_N]
        if any(last):
            closed_NV |= np.array(last)[:, None] & self._at_end_S[self._leads_RV[row_N]]
        return torch.from_numpy(closed_NV).to(written_NT.device)

    def contained_in(self, written_NT: Tensor) -> tuple[Tensor, Tensor]:
        """Whether a phrase is contained if the text ends here, and if it ends after each of the pieces."""
        row_N, complete_N = self._followed(written_NT)
        after_NV = complete_N[:, None] | self._closed_RV[row_N] | self._at_end_S[self._leads_RV[row_N]]
        now_N = complete_N | self._closed_RV[row_N, self._end]
        device = written_NT.device
        return torch.from_numpy(now_N).to(device), torch.from_numpy(after_NV).to(device)

    def _followed(self, written_NT: Tensor) -> tuple[NDArray[np.int64], Bools]:
        """The table's row where each text stands, and whether a phrase was complete on its way."""
        before_all = int(self._goto[ROOT, self._space])
        node_N = np.full(len(written_NT), before_all, np.int32)
        complete_N = np.zeros(len(written_NT), np.bool_)
        for piece_N in written_NT.cpu().numpy().T:
            row_N = self._rows(node_N)
            complete_N |= self._closed_RV[row_N, piece_N]
            node_N = self._leads_RV[row_N, piece_N]
        return self._rows(node_N), complete_N

    def _rows(self, node_N: Ints) -> NDArray[np.int64]:
        """Of the table, for each of the nodes; those that are not there yet are added."""
        new = np.unique(node_N[self._row_of_S[node_N] < 0])
        if len(new):
            n_before, self._n_rows = self._n_rows, self._n_rows + len(new)
            if self._n_rows > len(self._leads_RV):
                self._leads_RV, self._closed_RV = (
                    np.concatenate(
                        [table[:n_before], np.empty_like(table, shape=(self._n_rows, table.shape[1]))]
                    )
                    for table in (self._leads_RV, self._closed_RV)
                )
            leads, closed = self._worked_out(new)
            added = slice(n_before, self._n_rows)
            self._leads_RV[added], self._closed_RV[added] = leads, closed | self._leading(leads, self._lost_S)
            self._row_of_S[new] = np.arange(n_before, self._n_rows)
        return self._row_of_S[node_N]

    def _worked_out(self, nodes: Ints) -> tuple[Ints, Bools]:
        """Where each piece leads from these nodes, and whether a phrase is complete on the way."""
        shape = len(nodes), len(self._pieces.order_V)
        leads, complete = np.repeat(nodes[:, None], shape[1], axis=1), np.zeros(shape, np.bool_)
        for column in self._columns:
            n = len(column)
            leads[:, :n] = self._goto[leads[:, :n], column]
            complete[:, :n] |= self._complete[leads[:, :n]]
        leads_RV, closed_RV = np.empty_like(leads), np.empty_like(complete)
        leads_RV[:, self._pieces.order_V], closed_RV[:, self._pieces.order_V] = leads, complete
        closed_RV[:, self._end] = self._at_end_S[nodes]
        return leads_RV, closed_RV

    @cached_property
    def _at_end_S(self) -> Bools:
        """Whether a phrase is complete if the text ends there."""
        return self._complete[self._goto[:, self._space]]

    @cached_property
    def _lost_S(self) -> Bools:
        """Nodes from which whatever may come completes a phrase, or leads to such a node.

        The end may come from each, so they are among those where it completes one.
        """
        usable_V = self._pieces.lengths_V > 0
        usable_V[self._end] = True
        rows: dict[int, tuple[Ints, Bools]] = {}
        candidates = self._at_end_S.nonzero()[0].astype(np.int32)
        for some in np.split(candidates, range(AT_ONCE, len(candidates), AT_ONCE)):
            for node, leads_V, closed_V in zip(some.tolist(), *self._worked_out(some), strict=True):
                if (closed_V | self._leading(leads_V, self._at_end_S))[usable_V].all():
                    rows[node] = leads_V.copy(), closed_V.copy()
        lost_S = np.zeros(len(self._goto), np.bool_)
        while True:
            more = [
                node
                for node, (leads_V, closed_V) in rows.items()
                if not lost_S[node] and (closed_V | self._leading(leads_V, lost_S))[usable_V].all()
            ]
            if not more:
                return lost_S
            lost_S[more] = True

    def _leading(self, leads: Ints, to_S: Bools) -> Bools:
        """Pieces that say something and lead to such a node."""
        return to_S[leads] & (self._pieces.lengths_V > 0)


def _numbered(code_points: Ints, letters: Ints) -> Ints:
    """The place of each among the letters, from 1; those that no phrase has are 0: they lead to the root."""
    place = np.searchsorted(letters, code_points).clip(max=len(letters) - 1)
    return np.where(letters[place] == code_points, place + 1, 0).astype(np.int32)


def _automaton(words: Sequence[Sequence[int]]) -> tuple[Ints, Bools]:
    """Where each letter leads from each node, and which nodes end a word. All words begin with a space.

    What is no beginning falls back to its longest suffix that is one. Two spaces are as one.
    """
    children: list[dict[int, int]] = [{}]
    ends: list[bool] = [False]
    spaces: list[bool] = [False]
    space = words[0][0]
    for word in words:
        node = ROOT
        for letter in word:
            if letter not in children[node]:
                children[node][letter] = len(children)
                children.append({})
                ends.append(False)
                spaces.append(letter == space)
            node = children[node][letter]
        ends[node] = True
    goto = np.zeros((len(children), 1 + max(max(word) for word in words)), np.int32)
    falls = [ROOT] * len(children)
    queue = deque([ROOT])
    while queue:
        node = queue.popleft()
        if node != ROOT:
            goto[node] = goto[falls[node]]
            ends[node] |= ends[falls[node]]
        for letter, child in children[node].items():
            falls[child] = ROOT if node == ROOT else int(goto[node, letter])
            goto[node, letter] = child
            queue.append(child)
        if spaces[node]:
            goto[node, space] = node
    return goto, np.array(ends)
