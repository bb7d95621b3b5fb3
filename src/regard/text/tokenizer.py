"""Text to ids and back, with the place of every piece in the text; kept as one plain tokenizer.json."""

import hashlib
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

import tokenizers as hf
from tokenizers import models

from regard.text import bytelevel, own, wordpiece
from regard.text.foreign import read_object, without_panic
from regard.text.vocabulary import (
    BOS,
    BYTES,
    EOS,
    FIRST_BYTE,
    PAD,
    UNK,
    TokenizerConfig,
    learn,
    learn_berts,
    refuse_surrogates,
)
from regard.text.words import Words
from regard.text.writing import UNKNOWN, cuts_at_spaces

__all__ = ["BOS", "EOS", "OWN", "PAD", "UNK", "Encoded", "Marks", "Tokenizer", "TokenizerConfig"]


class Encoded(NamedTuple):
    """Ids without BOS and EOS; `text[start:end]` is what each stands for, without the space before it."""

    ids: list[int]
    offsets: list[tuple[int, int]]


class Marks(NamedTuple):
    """What stands around texts that are read as one input, and what stands for the unreadable."""

    begin: tuple[int, ...]
    """Before the first text."""
    end: int
    """After every text."""
    unknown: int
    unspoken: frozenset[int]
    """Ids that add nothing to a text."""
    mask: int | None = None
    """What stands for a piece that is to be found; only a BERT has it."""

    @property
    def unwritten(self) -> tuple[int, ...]:
        """Ids that no answer may hold: all marks but the one that ends it."""
        return tuple(sorted({*self.unspoken, self.unknown} - {self.end}))


OWN = Marks((), EOS, UNK, frozenset((PAD, BOS, EOS)))


class Tokenizer:
    """Learnt here, or a BERT's or a GPT-2's own (decision 13): `marks` says where its marks are."""

    def __init__(self, inner: hf.Tokenizer) -> None:
        self._inner, self.marks = inner, _marks(inner)
        self._is_bytelevel = bytelevel.is_assembled(inner)
        spells_bytes = inner.id_to_token(FIRST_BYTE) == BYTES[0]
        self.byte_ids = range(FIRST_BYTE, FIRST_BYTE + len(BYTES)) if spells_bytes else range(0)
        """Ids that spell one byte of a character too rare to have been learnt."""

    @classmethod
    def train(cls, config: TokenizerConfig, texts: Iterable[str]) -> Self:
        return cls(learn(config, texts))

    @classmethod
    def train_berts(cls, config: TokenizerConfig, texts: Iterable[str]) -> Self:
        """With the marks of a BERT, `[MASK]` among them: every tool that reads BERTs reads it."""
        return cls(learn_berts(config, texts))

    @classmethod
    def load(cls, path: Path) -> Self:
        return cls.rebuilt(path, read_object(path))

    @classmethod
    def rebuilt(cls, path: Path, told: dict[str, Any]) -> Self:
        """Of what a tokenizer.json says; nothing runs in it that regard would not have put there."""
        match told:
            case {"model": {"type": "WordPiece", "unk_token": wordpiece.UNKNOWN}}:
                return cls(wordpiece.rebuilt(path, told))
            case {"pre_tokenizer": {"type": "ByteLevel"}}:
                return cls(bytelevel.rebuilt(path, told))
            case _:
                return cls(own.rebuilt(path, told))

    @classmethod
    def of_bert(cls, folder: Path) -> Self:
        """The vocabulary of a BERT of Hugging Face."""
        return cls(wordpiece.read_wordpiece(folder))

    @classmethod
    def of_gpt2(cls, folder: Path) -> Self:
        """The vocabulary of a GPT-2 of Hugging Face."""
        return cls(bytelevel.read_bytelevel(folder))

    def save(self, path: Path) -> None:
        path.write_text(self._inner.to_str(pretty=True), encoding="utf-8")

    def __len__(self) -> int:
        return self._inner.get_vocab_size()

    @cached_property
    def digest(self) -> str:
        """The same where any text is cut into the same ids."""
        return hashlib.sha256(self._inner.to_str().encode()).hexdigest()[:12]

    def is_like(self, other: "Tokenizer") -> bool:
        return self.digest == other.digest

    @property
    def names(self) -> list[str]:
        """Every piece as tokenizer.json has it, by id."""
        return [self._inner.id_to_token(i) or "" for i in range(len(self))]

    def encode(self, text: str) -> Encoded:
        """Unigram fuses neighbouring characters that it spells in bytes: each byte gets its own one again."""
        refuse_surrogates([text])
        with without_panic():
            found = self._inner.encode(text, add_special_tokens=False)
        spans: list[tuple[int, int]] = []
        fused, place = (0, 0), 0
        for piece, span in zip(found.ids, found.offsets, strict=True):
            if piece in self.byte_ids and span[1] - span[0] > 1:
                begins_a_character = (piece - FIRST_BYTE) & 0xC0 != 0x80
                if span != fused:
                    fused, place = span, span[0]
                elif begins_a_character:
                    place = min(place + 1, span[1] - 1)
                span = (place, place + 1)
            spans.append(_without_space(text, *span))
        return Encoded(found.ids, spans)

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Of many texts at once, without their places."""
        refuse_surrogates(texts)
        with without_panic():
            if self._words is not None:
                return self._words.ids(texts)
            found = self._inner.encode_batch_fast(list(texts), add_special_tokens=False)
        return [each.ids for each in found]

    def framed(self, *texts: Sequence[int]) -> list[int]:
        """The ids of one text, or two, as a model reads them: with the marks between and around them."""
        return [*self.marks.begin, *(i for ids in texts for i in (*ids, self.marks.end))]

    def segments(self, *texts: Sequence[int]) -> list[int]:
        """Which of the texts each of the framed ids belongs to."""
        n_begin = len(self.marks.begin)
        return [0] * n_begin + [number for number, ids in enumerate(texts) for _ in range(len(ids) + 1)]

    def words(self, text: str, most: int) -> tuple[str, ...]:
        """What the first pieces stand for."""
        ids, offsets = self.encode(text)
        return self.shown(ids[:most], [text[start:end] for start, end in offsets[:most]])

    def shown(self, ids: Sequence[int], words: Sequence[str]) -> tuple[str, ...]:
        """What the pieces stand for in a text; a space that it lacks, before its first sign, is a space."""
        return tuple(word or self.pieces([id_])[0] for id_, word in zip(ids, words, strict=True))

    def decode(self, ids: Sequence[int]) -> str:
        """The text without padding and sentence marks; an unknown piece stays visible as `<unk>`."""
        kept = [i for i in ids if i not in self.marks.unspoken]
        return self._inner.decode(kept, skip_special_tokens=False)

    @cached_property
    def _words(self) -> Words | None:
        return Words(self._inner) if cuts_at_spaces(self._inner) else None

    @cached_property
    def spellings(self) -> list[str]:
        """What each id adds to a text, with the space before a word; marks add nothing.

        A byte of a longer character is written as Python does in `surrogateescape`.
        """
        names = self.names
        if isinstance(self._inner.model, models.WordPiece):
            names = [name.removeprefix("##") if name.startswith("##") else f" {name}" for name in names]
        if self._is_bytelevel:
            names = list(map(bytelevel.spelling, names))
        for place in (*self.marks.unspoken, self.marks.unknown):
            names[place] = ""
        for byte, place in enumerate(self.byte_ids):
            names[place] = bytes([byte]).decode("utf-8", "surrogateescape")
        return names

    def spelt(self, text: str) -> str:
        """The text as its pieces spell it."""
        return "".join(self.spellings[i] for i in self.encode(text).ids)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """A label for each id, without marks of spacing: a byte is `<0xE4>`, a space `␣`, a line end `⏎`."""
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


def _marks(inner: hf.Tokenizer) -> Marks:
    if bytelevel.is_assembled(inner):
        end = inner.get_vocab()[bytelevel.END]
        return Marks((), end, end, frozenset((end,)))  # nothing is unknown, and GPT-2 calls its end so
    if not (isinstance(inner.model, models.WordPiece) and inner.model.unk_token == wordpiece.UNKNOWN):
        return OWN
    ids = inner.get_vocab()
    pad, unknown, begin, end = (ids[mark] for mark in wordpiece.NEEDED)
    mask = ids.get(wordpiece.MASK)
    unspoken = frozenset((pad, begin, end)) | ({mask} if mask is not None else set())
    return Marks((begin,), end, unknown, unspoken, mask)
