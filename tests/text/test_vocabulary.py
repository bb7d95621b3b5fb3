"""The size asked for is kept, the rare is left out, and every run gives the same ids."""

import os
import subprocess
import sys
from typing import get_args

import pytest
from pydantic import ValidationError

from regard.errors import DataError
from regard.text.pretokenize import Kind
from regard.text.tokenizer import Tokenizer, TokenizerConfig
from regard.text.vocabulary import BYTES, SPECIALS, learn, learn_bert

KINDS: tuple[Kind, ...] = get_args(Kind)
SENTENCE = "ein mann , der auf einer leiter steht , putzt in 1987 das naïve fenster 我喜欢 学习中文 . 颜色"
TEXTS = [SENTENCE[i % 37 : 40 + i % 53] for i in range(211)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("vocab_size", [261, 277, 331])
def test_the_size_is_an_upper_bound_with_fixed_pieces_first(kind: Kind, vocab_size: int) -> None:
    config = TokenizerConfig(kind=kind, vocab_size=vocab_size)
    inner = learn(config, TEXTS)
    assert len(config.fixed) <= inner.get_vocab_size() <= vocab_size
    assert tuple(map(inner.id_to_token, range(len(config.fixed)))) == config.fixed
    assert config.fixed[: len(SPECIALS)] == SPECIALS
    assert set(BYTES) <= set(config.fixed) or kind not in ("bpe", "unigram")


@pytest.mark.parametrize("kind", ["wordpiece", "char", "word"])
def test_a_tiny_vocabulary_keeps_its_bound(kind: Kind) -> None:
    for vocab_size in (6, 7, 11, 29):
        assert learn(TokenizerConfig(kind=kind, vocab_size=vocab_size), TEXTS).get_vocab_size() <= vocab_size


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_vocabulary_without_room_for_the_bytes_is_refused(kind: Kind) -> None:
    with pytest.raises(ValidationError, match=rf"vocab_size \(260\) must be at least 261 for {kind}"):
        TokenizerConfig(kind=kind, vocab_size=260)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("texts", [[], [""], [" \n", "\u3000"]])
def test_no_text_is_refused(kind: Kind, texts: list[str]) -> None:
    with pytest.raises(DataError, match="no text to learn a vocabulary from"):
        learn(TokenizerConfig(kind=kind), texts)


def test_half_characters_are_refused() -> None:
    with pytest.raises(DataError, match=r"text 3, character 2: U\+DC00 is half of a surrogate pair"):
        learn(TokenizerConfig(), ["a", "b", "c\udc00"])


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_rarer_than_min_frequency_is_not_learnt(kind: Kind) -> None:
    texts = ["q"] * 3 + ["x"] * 2
    names = learn(TokenizerConfig(kind=kind, min_frequency=3), texts).get_vocab()
    learnt = {name.strip(" #") for name in names if name not in SPECIALS + BYTES}
    assert "q" in learnt
    assert "x" not in learnt


def test_wordpiece_does_not_learn_from_words_that_it_would_not_read() -> None:
    """It takes the square of their length: of a million characters, more than a minute."""
    config, long = TokenizerConfig(kind="wordpiece"), "q" * 1_000_000
    for learnt in (learn, learn_bert):
        plain, given = learnt(config, TEXTS), learnt(config, [*TEXTS, f"{long} der {long}", "z" * 100])
        new = {piece.removeprefix("##") for piece in given.get_vocab().keys() - plain.get_vocab().keys()}
        assert {*"".join(new)} == {"z"}
        assert given.encode(long, add_special_tokens=False).ids == [1]


@pytest.mark.parametrize("limits", [{"vocab_size": 5}, {"min_frequency": 1000}])
def test_a_bert_of_marks_alone_is_refused(limits: dict[str, int]) -> None:
    config = TokenizerConfig(kind="wordpiece", **limits)
    with pytest.raises(
        DataError, match=r"no token can be learnt .*vocab_size = \d+ and min_frequency = \d+;"
    ):
        learn_bert(config, TEXTS[:3])


def test_words_are_kept_by_frequency() -> None:
    texts = ["a a a a a b b b b b b c c c d d"]
    names = learn(TokenizerConfig(kind="word", vocab_size=8), texts).get_vocab()
    assert sorted(names, key=names.__getitem__) == [*SPECIALS, " ", " b", " a", " c"]


def test_rare_characters_leave_half_of_the_room_to_longer_pieces() -> None:
    texts = ["".join(map(chr, range(0x4E00, 0x4E00 + 997))) * 2, "hello hello hello"]
    inner = learn(TokenizerConfig(vocab_size=360), texts)
    learnt = [name for name in inner.get_vocab() if name not in SPECIALS + BYTES]
    assert sum(len(name) == 1 for name in learnt) <= 50
    assert " hello" in learnt


@pytest.mark.parametrize("kind", ["bpe", "unigram", "word"])
def test_segmented_chinese_keeps_its_spaces(kind: Kind) -> None:
    texts = ["我们 喜欢 学习 中文 。", "图书馆 在 哪里 ？"] * 3
    tokenizer = Tokenizer.train(TokenizerConfig(kind=kind, vocab_size=461), texts)
    ids = tokenizer.encode(texts[0]).ids
    assert tokenizer.decode(ids) == texts[0]
    assert tokenizer.tokens(ids) == texts[0].split()


def test_lowercase_learns_no_capitals() -> None:
    names = learn(TokenizerConfig(lowercase=True), ["Ein MANN"] * 5).get_vocab()
    assert " mann" in names
    assert not any(name != name.lower() for name in names if name not in BYTES)


def test_every_process_learns_the_same_ids_on_any_number_of_threads() -> None:
    """The library's own unigram and WordPiece trainers give other ids on every run."""
    program = f"""if True:
        from regard.text.vocabulary import TokenizerConfig, learn
        for kind in {KINDS!r}:
            print(learn(TokenizerConfig(kind=kind, vocab_size=331), {TEXTS!r}).to_str())
    """
    elsewhere = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"RAYON_NUM_THREADS": "1", "PYTHONHASHSEED": "7", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        check=True,
    ).stdout.decode()
    configs = [TokenizerConfig(kind=kind, vocab_size=331) for kind in KINDS]
    assert elsewhere.splitlines() == [learn(config, reversed(TEXTS)).to_str() for config in configs]
