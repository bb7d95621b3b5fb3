"""Where text is cut, and what the spaces of the training text say about Chinese words."""

import pytest
from tokenizers import models

from regard.text.pretokenize import MAX_IDEOGRAPHS, MAX_REPEATED, MAX_WORD, Kind, is_segmented, with_pipeline


def cuts(text: str, kind: Kind = "bpe", segmented: bool = False) -> list[str]:
    tokenizer = with_pipeline(models.BPE(), kind, lowercase=False, segmented=segmented)
    clean = tokenizer.normalizer.normalize_str(text)
    return [piece for piece, _ in tokenizer.pre_tokenizer.pre_tokenize_str(clean)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello, world", [" Hello", ",", " world"]),
        ("ein mann , der", [" ein", " mann", " ,", " der"]),
        ("我喜欢ABC，你呢？", ["我喜欢", "ABC", "，", "你呢", "？"]),
        ("I like 你 !", [" I", " like", " ", "你", " !"]),
        ("「你」", ["「", "你", "」"]),
        ("in 1987...", [" in", " 1", "9", "8", "7", "..."]),
        ("café naïve", [" café", " naïve"]),
        ("ラーメン屋", ["ラーメン屋"]),
        ("<pad></s><0x41>", [" <", "pad", ">", "<", "/", "s", ">", "<", "0", "x", "4", "1", ">"]),
    ],
)
def test_words_ideographs_digits_and_marks_are_kept_apart(text: str, expected: list[str]) -> None:
    assert cuts(text) == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("bpe", ["To", " be", ",", "\n", " ", " ", " or", "\t", "not", "\n", "\n"]),
        ("char", [*"To be,\n   or\tnot\n\n"]),
    ],
)
def test_white_space_can_be_kept(kind: Kind, expected: list[str]) -> None:
    tokenizer = with_pipeline(models.BPE(), kind, lowercase=False, segmented=False, space="kept")
    found = tokenizer.pre_tokenizer.pre_tokenize_str("To be,\n   or\tnot\n\n")
    assert [piece for piece, _ in found] == expected


def test_runs_are_bounded() -> None:
    assert max(map(len, cuts("a" * 1009))) == MAX_WORD + 1  # the first with its space
    assert max(map(len, cuts("我" * 1009))) == MAX_IDEOGRAPHS
    assert max(map(len, cuts("!" * 1009))) == MAX_REPEATED + 1


def test_ideographs_are_words_when_the_training_text_separates_words() -> None:
    assert cuts("我喜欢 you", "word") == ["我", "喜", "欢", " you"]
    assert cuts("我 喜欢 you", "word", segmented=True) == [" 我", " 喜欢", " you"]
    assert cuts("我 喜欢", "char") == ["我", " ", "喜", "欢"]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["我们喜欢 Python 语言。", "你好"], False),
        (["我们 喜欢 学习 中文 。", "图书馆 在 哪里 ？"], True),
        (["no ideographs at all"], False),
        ([], False),
    ],
)
def test_segmented_text_is_recognised(texts: list[str], expected: bool) -> None:
    assert is_segmented(texts) is expected
