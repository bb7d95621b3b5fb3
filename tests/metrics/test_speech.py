"""Word and character error rates: what jiwer counts, for texts as they are heard."""

import jiwer
import numpy as np
import pytest

from regard.metrics.speech import Errors, aligned, character_errors, heard, word_errors

PAIRS = [
    ("the cat sat", "the cat sat on the mat"),
    ("a b c d", "b c e d f"),
    ("seven six", "six seven six"),
    ("x", "a b"),
]


@pytest.mark.parametrize(("found", "right"), PAIRS)
def test_errors_are_jiwers(found: str, right: str) -> None:
    words, characters = word_errors(found, right), character_errors(found, right)
    assert words.total / words.n == pytest.approx(jiwer.wer(right, found))
    assert characters.total / characters.n == pytest.approx(jiwer.cer(right, found))


def test_case_and_punctuation_are_not_heard() -> None:
    assert heard("“Don't!”, said Mr. O'Neil — twice-daily; OK?") == "don't said mr o'neil twice-daily ok"
    assert word_errors("hello world", "Hello, World!").total == 0


def test_empty_texts_count() -> None:
    assert word_errors("", "a b") == Errors(0, 2, 0, 2)
    assert word_errors("a b", "") == Errors(0, 0, 2, 0)
    assert word_errors("", "") == Errors(0, 0, 0, 0)
    assert character_errors("", "a b").n == 3


def test_an_alignment_makes_one_text_of_the_other() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        found, right = (" ".join(rng.choice(list("abc"), int(rng.integers(0, 6)))) for _ in range(2))
        words, wanted, made = found.split(), right.split(), []
        for kind, place, at in aligned(found, right):
            if kind == "equal":
                assert words[at] == wanted[place]
            if kind != "delete":
                made.append(words[at])
        assert made == words
