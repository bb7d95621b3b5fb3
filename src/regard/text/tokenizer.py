"""Text to ids and back, with the place of every token in the text; saved as one plain tokenizer.json."""

import hashlib
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

import tokenizers as hf
from tokenizers import models

from regard.text import bytelevel, own_tokenizer, wordpiece
from regard.text.pretokenize import UNKNOWN, cuts_at_spaces
from regard.text.token_cache import TokenCache
from regard.text.tokenizer_files import read_object, without_panic
from regard.text.vocabulary import (
    BOS,
    BYTES,
    EOS,
    FIRST_BYTE,
    PAD,
    UNK,
    TokenizerConfig,
    learn,
    learn_bert,
    refuse_surrogates,
)

__all__ = ["BOS", "EOS", "OWN", "PAD", "UNK", "Encoded", "SpecialTokens", "Tokenizer", "TokenizerConfig"]


class Encoded(NamedTuple):
    """Ids without special tokens; `text[start:end]` is what each covers, without the space before it."""

    ids: list[int]
    offsets: list[tuple[int, int]]


class SpecialTokens(NamedTuple):
    """Ids of the special tokens: around the texts of one input, and for what is unknown or masked."""

    begin: tuple[int, ...]
    """Before the first text."""
    end: int
    """After every text."""
    unknown: int
    skipped: frozenset[int]
    """Ids that decoding leaves out."""
    mask: int | None = None
    """The mask of a BERT; no other vocabulary has one."""

    @property
    def not_generated(self) -> tuple[int, ...]:
        """Ids that may not be generated: all special tokens but the one that ends an answer."""
        return tuple(sorted({*self.skipped, self.unknown} - {self.end}))


OWN = SpecialTokens((), EOS, UNK, frozenset((PAD, BOS, EOS)))


class Tokenizer:
    """A vocabulary learnt here, or that of a BERT or a GPT-2 (decision 13); `special` has its
    special tokens.
    """

    def __init__(self, inner: hf.Tokenizer) -> None:
        self._inner, self.special = inner, _special_tokens(inner)
        self._is_bytelevel = bytelevel.is_gpt2(inner)
        spells_bytes = inner.id_to_token(FIRST_BYTE) == BYTES[0]
        self.byte_ids = range(FIRST_BYTE, FIRST_BYTE + len(BYTES)) if spells_bytes else range(0)
        """Ids of single bytes, for characters too rare to have been learnt."""

    @classmethod
    def train(cls, config: TokenizerConfig, texts: Iterable[str]) -> Self:
        return cls(learn(config, texts))

    @classmethod
    def train_bert(cls, config: TokenizerConfig, texts: Iterable[str]) -> Self:
        """Learn a WordPiece vocabulary with the special tokens of a BERT, `[MASK]` among them."""
        return cls(learn_bert(config, texts))

    @classmethod
    def load(cls, path: Path) -> Self:
        return cls.from_json(path, read_object(path))

    @classmethod
    def from_json(cls, path: Path, content: dict[str, Any]) -> Self:
        """Rebuild a tokenizer from a tokenizer.json; a step that regard would not have put there
        is refused.
        """
        match content:
            case {"model": {"type": "WordPiece", "unk_token": wordpiece.UNKNOWN}}:
                return cls(wordpiece.from_json(path, content))
            case {"pre_tokenizer": {"type": "ByteLevel"}}:
                return cls(bytelevel.from_json(path, content))
            case _:
                return cls(own_tokenizer.from_json(path, content))

    @classmethod
    def from_bert(cls, folder: Path) -> Self:
        """Read the vocabulary of a BERT from a Hugging Face folder."""
        return cls(wordpiece.read_wordpiece(folder))

    @classmethod
    def from_gpt2(cls, folder: Path) -> Self:
        """Read the vocabulary of a GPT-2 from a Hugging Face folder."""
        return cls(bytelevel.read_bytelevel(folder))

    def save(self, path: Path) -> None:
        path.write_text(self._inner.to_str(pretty=True), encoding="utf-8")

    def __len__(self) -> int:
        return self._inner.get_vocab_size()

    @cached_property
    def digest(self) -> str:
        """A fingerprint: equal where every text is cut into the same ids."""
        return hashlib.sha256(self._inner.to_str().encode()).hexdigest()[:12]

    def is_like(self, other: "Tokenizer") -> bool:
        return self.digest == other.digest

    @property
    def names(self) -> list[str]:
        """Every token as tokenizer.json has it, by id."""
        return [self._inner.id_to_token(i) or "" for i in range(len(self))]

    def encode(self, text: str) -> Encoded:
        """Ids and places of the tokens of a text.

        Unigram merges the places of neighbouring characters that it spells in bytes; they are separated
        again.
        """
        refuse_surrogates([text])
        with without_panic():
            encoding = self._inner.encode(text, add_special_tokens=False)
        spans: list[tuple[int, int]] = []
        fused, place = (0, 0), 0
        for id_, span in zip(encoding.ids, encoding.offsets, strict=True):
            if id_ in self.byte_ids and span[1] - span[0] > 1:
                begins_a_character = (id_ - FIRST_BYTE) & 0xC0 != 0x80
                if span != fused:
                    fused, place = span, span[0]
                elif begins_a_character:
                    place = min(place + 1, span[1] - 1)
                span = (place, place + 1)
            spans.append(_without_space(text, *span))
        return Encoded(encoding.ids, spans)

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of many texts at once, without places."""
        refuse_surrogates(texts)
        with without_panic():
            if self._cache is not None:
                return self._cache.ids(texts)
            encodings = self._inner.encode_batch_fast(list(texts), add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def with_special_tokens(self, *texts: Sequence[int]) -> list[int]:
        """The ids of one or two texts as a model reads them, with special tokens between and around them."""
        return [*self.special.begin, *(i for ids in texts for i in (*ids, self.special.end))]

    def segments(self, *texts: Sequence[int]) -> list[int]:
        """The number of the text that each id belongs to, special tokens included."""
        n_begin = len(self.special.begin)
        return [0] * n_begin + [number for number, ids in enumerate(texts) for _ in range(len(ids) + 1)]

    def token_texts(self, text: str, most: int) -> tuple[str, ...]:
        """The part of the text that each of its first tokens covers."""
        ids, offsets = self.encode(text)
        return self.visible(ids[:most], [text[start:end] for start, end in offsets[:most]])

    def visible(self, ids: Sequence[int], texts: Sequence[str]) -> tuple[str, ...]:
        """Labels of tokens: the text that each covers, or its own form where it covers none (a leading
        space).
        """
        return tuple(text or self.tokens([id_])[0] for id_, text in zip(ids, texts, strict=True))

    def decode(self, ids: Sequence[int]) -> str:
        """The text without special tokens; an unknown token stays visible as `<unk>`."""
        kept = [i for i in ids if i not in self.special.skipped]
        return self._inner.decode(kept, skip_special_tokens=False)

    @cached_property
    def _cache(self) -> TokenCache | None:
        return TokenCache(self._inner) if cuts_at_spaces(self._inner) else None

    @cached_property
    def spellings(self) -> list[str]:
        """The text that each id adds, with the space before a word; special tokens add none.

        A byte of a longer character is written as Python's `surrogateescape` has it.
        """
        names = self.names
        if isinstance(self._inner.model, models.WordPiece):
            names = [name.removeprefix("##") if name.startswith("##") else f" {name}" for name in names]
        if self._is_bytelevel:
            names = list(map(bytelevel.spelling, names))
        for place in (*self.special.skipped, self.special.unknown):
            names[place] = ""
        for byte, place in enumerate(self.byte_ids):
            names[place] = bytes([byte]).decode("utf-8", "surrogateescape")
        return names

    def surface(self, text: str) -> str:
        """The text as its tokens spell it."""
        return "".join(self.spellings[i] for i in self.encode(text).ids)

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Readable form of each token, without spacing marks: a byte is `<0xE4>`, a space `␣`, a line end
        `⏎`.
        """
        names = [self._inner.id_to_token(i) or UNKNOWN for i in ids]
        if isinstance(self._inner.model, models.WordPiece):
            return [name.removeprefix("##") for name in names]
        if self._is_bytelevel:
            names = [bytelevel.legible(bytelevel.spelling(name)) for name in names]
        return [name.removeprefix(" ").replace("\n", "⏎") or "␣" for name in names]


def _without_space(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    return start, end


def _special_tokens(inner: hf.Tokenizer) -> SpecialTokens:
    if bytelevel.is_gpt2(inner):
        end = inner.get_vocab()[bytelevel.END]
        return SpecialTokens(
            (), end, end, frozenset((end,))
        )  # GPT-2 has no unknown token and names its end token instead
    if not (isinstance(inner.model, models.WordPiece) and inner.model.unk_token == wordpiece.UNKNOWN):
        return OWN
    ids = inner.get_vocab()
    pad, unknown, begin, end = (ids[mark] for mark in wordpiece.NEEDED)
    mask = ids.get(wordpiece.MASK)
    skipped = frozenset((pad, begin, end)) | ({mask} if mask is not None else set())
    return SpecialTokens((begin,), end, unknown, skipped, mask)
