"""Windows of long sentences and of long contexts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.fields.windows import context_windows, tokens_at, word_windows


def test_a_short_sentence_has_one_window() -> None:
    spans, owner = word_windows(np.array([1, 3, 2]), 6)
    assert spans == [(0, 6)]
    assert owner.tolist() == [0, 0, 0]


def test_a_sentence_without_words_has_an_empty_one() -> None:
    spans, owner = word_windows(np.array([], np.int64), 6)
    assert spans == [(0, 0)]
    assert len(owner) == 0


def test_a_word_is_answered_where_most_stands_around_it() -> None:
    spans, owner = word_windows(np.ones(12, np.int64), 6)
    assert spans == [(0, 6), (3, 9), (6, 12)]
    assert owner.tolist() == [0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=60), st.integers(10, 23))
def test_every_word_stands_whole_in_its_window_and_none_stands_better(lengths: list[int], most: int) -> None:
    n_tokens = np.array(lengths)
    ends = np.cumsum(n_tokens)
    spans, owner = word_windows(n_tokens, most)
    assert spans[-1][1] == ends[-1]
    borders = {0, *ends.tolist()}
    for begin, end in spans:
        assert 0 < end - begin <= most
        assert {begin, end} <= borders

    def room(word: int, span: tuple[int, int]) -> float:
        begin, end = span
        start, stop = int(ends[word] - n_tokens[word]), int(ends[word])
        before = start - begin if begin else np.inf
        after = end - stop if end < ends[-1] else np.inf
        return float(min(before, after))

    for word, chosen in enumerate(owner):
        assert room(word, spans[chosen]) >= 0
        assert room(word, spans[chosen]) == pytest.approx(max(room(word, span) for span in spans))


def test_windows_cover_the_context_and_overlap() -> None:
    assert context_windows(0, 5, 2) == [(0, 0)]
    assert context_windows(5, 5, 2) == [(0, 5)]
    assert context_windows(9, 5, 2) == [(0, 5), (3, 8), (6, 9)]


def test_an_answer_inside_a_token_takes_the_token() -> None:
    offsets = [(0, 3), (4, 9), (9, 9), (10, 12)]
    assert tokens_at(offsets, (5, 7)) == (1, 1)
    assert tokens_at(offsets, (2, 11)) == (0, 3)
    assert tokens_at(offsets, (3, 4)) is None
    assert tokens_at([], (3, 4)) is None
