"""Phrases in what is being written, whatever pieces spell them.

Text is read as a stream in which words have spaces around them and every other character has too, so that
"cat" is found in "a cat." and in 喜欢cat, but not in "category", and 喜欢 is found anywhere. An automaton
(Aho and Corasick 1975) follows the stream: its nodes are the beginnings of phrases, and where a piece leads
from every node is worked out once, so that a step costs a look into a table.
"""

import unicodedata
from collections import deque
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

SPACE = " "
ROOT = 0


def stream(text: str) -> str:
    """As the automaton reads it."""
    return "".join(character if is_of_a_word(character) else f" {character} " for character in text)


def contains(text: str, phrase: str) -> bool:
    """The slow twin: whether the text has the phrase in it."""
    return f" {' '.join(stream(phrase).split())} " in f" {' '.join(stream(text).split())} "


def is_of_a_word(character: str) -> bool:
    """Of a script that puts spaces between words."""
    if "\u3040" <= character <= "\u9fff":
        return False
    return character.isalnum() or unicodedata.category(character).startswith("M")


class Phrases:
    """`spellings` are the texts of all pieces, the space before a word included; nothing for marks."""

    def __init__(self, phrases: Sequence[str], spellings: Sequence[str], end: int) -> None:
        self._spellings, self._end = spellings, end
        words = [f" {' '.join(stream(phrase).split())} " for phrase in phrases]
        letters = sorted({*"".join(words)})
        self._letters = {letter: number for number, letter in enumerate(letters, 1)}
        """Characters that no phrase has are all 0: they lead back to the root."""
        self._goto, self._complete = _automaton([[self._letters[c] for c in word] for word in words])

    @cached_property
    def _tables(self) -> tuple[Tensor, Tensor, Tensor]:
        """By node and piece: where it leads, whether a phrase is complete on the way; by node: at the end."""
        read = [[self._letters.get(c, 0) for c in stream(spelling)] for spelling in self._spellings]
        letters_VL = np.zeros((len(read), max(map(len, read))), np.int64)
        for piece, letters in enumerate(read):
            letters_VL[piece, : len(letters)] = letters
        lengths_V = np.array([len(letters) for letters in read])
        node_SV = np.repeat(np.arange(len(self._goto))[:, None], len(read), axis=1)
        complete_SV = np.zeros(node_SV.shape, bool)
        for place in range(letters_VL.shape[1]):
            inside_V = place < lengths_V
            node_SV = np.where(inside_V, self._goto[node_SV, letters_VL[:, place]], node_SV)
            complete_SV |= self._complete[node_SV] & inside_V
        at_end_S = self._complete[self._goto[:, self._letters[SPACE]]]
        complete_SV[:, self._end] = at_end_S
        says_V = lengths_V > 0
        usable_V = says_V | (np.arange(len(read)) == self._end)
        while True:  # what can only go on to a phrase is as good as one
            lost_S: NDArray[np.bool_] = np.logical_and.reduce(complete_SV[:, usable_V], axis=1)
            lost_SV = lost_S[node_SV] & says_V & ~complete_SV
            if not lost_SV.any():
                break
            complete_SV |= lost_SV
        return torch.from_numpy(node_SV), torch.from_numpy(complete_SV), torch.from_numpy(at_end_S)

    def completed_by(self, written_NT: Tensor, last: Sequence[bool]) -> Tensor:
        """closed_NV: pieces that would complete a phrase; where only the end may follow (`last`), with it."""
        leads_SV, complete_SV, at_end_S = (table.to(written_NT.device) for table in self._tables)
        node_N, _ = self._followed(written_NT)
        closed_NV = complete_SV[node_N]
        if any(last):
            last_N1 = torch.tensor(last, device=written_NT.device)[:, None]
            closed_NV = closed_NV | (last_N1 & at_end_S[leads_SV[node_N]])
        return closed_NV

    def contained_in(self, written_NT: Tensor) -> tuple[Tensor, Tensor]:
        """Whether a phrase is contained if the text ends here, and if it ends after each of the pieces."""
        leads_SV, complete_SV, at_end_S = (table.to(written_NT.device) for table in self._tables)
        node_N, complete_N = self._followed(written_NT)
        after_NV = complete_N[:, None] | complete_SV[node_N] | at_end_S[leads_SV[node_N]]
        return complete_N | at_end_S[node_N], after_NV

    def _followed(self, written_NT: Tensor) -> tuple[Tensor, Tensor]:
        """The node where each row stands, and whether a phrase was complete on its way."""
        leads_SV, complete_SV, _ = (table.to(written_NT.device) for table in self._tables)
        before_all = int(self._goto[ROOT, self._letters[SPACE]])
        node_N = torch.full((len(written_NT),), before_all, device=written_NT.device)
        complete_N = torch.zeros(len(written_NT), dtype=torch.bool, device=written_NT.device)
        for piece_N in written_NT.unbind(1):
            complete_N = complete_N | complete_SV[node_N, piece_N]
            node_N = leads_SV[node_N, piece_N]
        return node_N, complete_N


def _automaton(words: Sequence[Sequence[int]]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
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
    goto = np.zeros((len(children), 1 + max(max(word) for word in words)), np.int64)
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
