"""Texts by way of their words: as if each had been cut by itself."""

from typing import get_args

import pytest
import tokenizers as hf
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import models, pre_tokenizers

from regard.text import token_cache
from regard.text.pretokenize import Kind, cuts_at_spaces
from regard.text.token_cache import TokenCache
from regard.text.tokenizer import Tokenizer, TokenizerConfig

TEXTS = [
    "der graue reiher steht still .",
    "我们 看见 鹤。",
    "我们看见鹤，还有雾",
    "1987 , 'x'!! ÉTÉ Straße ΟΔΟΣ",
] * 3
STYLES = [(kind, lowercase) for kind in get_args(Kind) for lowercase in (False, True)]
TOKENIZERS = {
    (kind, lowercase): Tokenizer.train(
        TokenizerConfig(kind=kind, vocab_size=331, min_frequency=1, lowercase=lowercase), TEXTS
    )
    for kind, lowercase in STYLES
}
SPACES = [" ", "  ", "\t", "\n", "\u3000", "\u00a0", "\u2028", "\x1c", "\x85", "\u200b"]
pieces = st.sampled_from(
    [
        *SPACES,
        *"ab1!.,▁#ー。、鹤我",
        "ΟΔΟΣ",
        "\u0301",
        "\u00a8",
        "İ",
        "##",
        "</s>",
        "!!!",
        "der",
        "🦩",
        "\x00",
    ]
)
texts = st.lists(
    st.lists(pieces).map("".join) | st.text(st.characters(exclude_categories=("Cs",))), max_size=5
)


@pytest.mark.parametrize("style", STYLES, ids=str)
@settings(max_examples=150, deadline=None)
@given(texts=texts)
def test_a_text_has_the_ids_it_has_alone(style: tuple[Kind, bool], texts: list[str]) -> None:
    tokenizer = TOKENIZERS[style]
    assert cuts_at_spaces(tokenizer._inner)
    assert tokenizer.ids(texts) == [tokenizer.encode(text).ids for text in texts]


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_cache, "MOST_WORDS", 7)
    words = TokenCache(TOKENIZERS["bpe", False]._inner)
    for n in range(30):
        text = f"fog {'x' * 65} reiher{n} still{n % 3}"
        assert words.ids([text, text]) == [TOKENIZERS["bpe", False].encode(text).ids] * 2
        for known in (words._first, words._later):
            assert len(known) <= 7
            assert all(len(word) <= 64 for word in known)


def test_a_tokenizer_that_cuts_otherwise_is_given_whole_texts() -> None:
    inner = hf.Tokenizer(models.WordLevel({"<pad>": 0, "<unk>": 1, "<s>": 2, "</s>": 3, "a b": 4}, "<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Split(",", "removed")
    assert not cuts_at_spaces(inner)
    assert Tokenizer(inner).ids(["a b,a b"]) == [[4, 4]]
