"""Learn a vocabulary from the user's own text: the same texts always give the same pieces with the same ids.

The trainers of the `tokenizers` library are used where they keep that promise (`unigram.py` says where not).
Special pieces are entries of the vocabulary and nothing more: they are never looked for in a text, so that no
text can end its own sentence. Characters too rare to learn are spelt in bytes (bpe, unigram) or unknown.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Self

from pydantic import Field, model_validator
from tokenizers import Tokenizer, models, trainers

from regard.config import Config
from regard.errors import DataError
from regard.text import wordpiece
from regard.text.unigram import learn_pieces
from regard.text.writing import UNKNOWN, Kind, Space, around, is_segmented

PAD, UNK, BOS, EOS = 0, 1, 2, 3
SPECIALS = ("<pad>", UNKNOWN, "<s>", "</s>")
BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
FIRST_BYTE = len(SPECIALS)
MODELS: dict[Kind, Callable[..., models.Model]] = {
    "bpe": partial(models.BPE, unk_token=UNKNOWN, byte_fallback=True),
    "unigram": partial(models.Unigram, unk_id=UNK, byte_fallback=True),
    "wordpiece": partial(models.WordPiece, unk_token=UNKNOWN),
    "char": partial(models.WordLevel, unk_token=UNKNOWN),
    "word": partial(models.WordLevel, unk_token=UNKNOWN),
}
"""Which take pieces, with their ids or (unigram) their scores, and (bpe) what is merged."""
MAYBE_LONG = re.compile(rf"\S{{{wordpiece.LONGEST_WORD + 1}}}")
"""Where a word may be too long for WordPiece."""


class TokenizerConfig(Config):
    kind: Kind = "bpe"
    vocab_size: int = Field(8000, ge=5, le=1_000_000)
    """Upper bound for all pieces together, with the special ones and the 256 bytes of bpe and unigram."""
    lowercase: bool = False
    space: Space = Field(
        "one",
        description="white space: made one space, or kept as it is, line ends too (bpe, unigram, char)",
    )
    min_frequency: int = Field(2, ge=1)
    """Characters, pieces and words seen less often are not learnt."""

    @property
    def fixed(self) -> tuple[str, ...]:
        """The pieces that need no learning; they have the first ids."""
        match self.kind:
            case "bpe" | "unigram":
                return SPECIALS + BYTES
            case "char" | "word":
                return (*SPECIALS, " ")
            case "wordpiece":
                return SPECIALS

    @model_validator(mode="after")
    def _leaves_room(self) -> Self:
        if self.space == "kept" and self.kind in ("word", "wordpiece"):
            raise ValueError(f"kind {self.kind} cannot keep white space; take bpe, unigram or char")
        least = len(self.fixed) + 1
        if self.vocab_size < least:
            raise ValueError(
                f"vocab_size ({self.vocab_size}) must be at least {least} for {self.kind}, "
                f"which begins with {len(self.fixed)} fixed pieces"
            )
        return self


def refuse_surrogates(texts: Sequence[str]) -> None:
    """JSON may hold halves of characters ("\\ud800"), which no other text file can."""
    for number, text in enumerate(texts, start=1):
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            half = f"U+{ord(text[error.start]):04X}"
            raise DataError(
                f"text {number}, character {error.start + 1}: {half} is half of a surrogate pair; remove it"
            ) from error


def learn(config: TokenizerConfig, texts: Iterable[str]) -> Tokenizer:
    texts = list(texts)
    refuse_surrogates(texts)
    style = partial(
        around,
        kind=config.kind,
        lowercase=config.lowercase,
        segmented=is_segmented(texts),
        space=config.space,
    )
    workshop = style(models.BPE())
    texts = [workshop.normalizer.normalize_str(text) for text in texts]
    if not any(map(str.strip, texts)):
        raise DataError("no text to learn a vocabulary from: every training text is empty")
    match config.kind:
        case "char" | "word":
            model = _learn_words(config, workshop, texts)
        case "bpe":
            model = _learn_bpe(config, workshop, _without_rare(config, texts))
        case "unigram":
            model = _learn_unigram(config, workshop, _without_rare(config, texts))
        case "wordpiece":
            pieces = _learn_wordpiece(config, workshop, _without_rare(config, texts), SPECIALS, UNKNOWN)
            model = MODELS["wordpiece"](pieces)
    return style(model)


def learn_berts(config: TokenizerConfig, texts: Iterable[str]) -> Tokenizer:
    """WordPiece as a BERT has it, with the paper's marks in the place of ours (decision 13)."""
    marks = (*wordpiece.NEEDED, wordpiece.MASK)
    cleaning = wordpiece.CLEANING | {"lowercase": config.lowercase}
    workshop = wordpiece.assembled({mark: place for place, mark in enumerate(marks)}, cleaning)
    texts = list(texts)
    refuse_surrogates(texts)
    texts = [workshop.normalizer.normalize_str(text) for text in texts]
    if not any(map(str.strip, texts)):
        raise DataError("no text to learn a vocabulary from: every training text is empty")
    pieces = _learn_wordpiece(config, workshop, _without_rare(config, texts), marks, wordpiece.UNKNOWN)
    if len(pieces) == len(marks):
        raise DataError(
            "no piece can be learnt from the training texts with task.tokenizer.vocab_size = "
            f"{config.vocab_size} and min_frequency = {config.min_frequency}; give more text, or a larger "
            "vocab_size or a smaller min_frequency"
        )
    return wordpiece.assembled(pieces, cleaning)


def _learn_words(config: TokenizerConfig, workshop: Tokenizer, texts: list[str]) -> models.Model:
    counts = _count_words(workshop, texts)
    words = sorted(counts.keys() - set(config.fixed), key=lambda word: (-counts[word], word))
    names = [*config.fixed, *(word for word in words if counts[word] >= config.min_frequency)]
    vocab = {name: i for i, name in enumerate(names[: config.vocab_size])}
    return MODELS[config.kind](vocab)


def _learn_bpe(config: TokenizerConfig, workshop: Tokenizer, texts: list[str]) -> models.Model:
    trainer = trainers.BpeTrainer(**_limits(config), special_tokens=list(config.fixed))
    found = _train(workshop, trainer, texts)
    merges = [(left, right) for left, right in found["merges"]]
    return MODELS["bpe"](found["vocab"], merges)


def _learn_unigram(config: TokenizerConfig, workshop: Tokenizer, texts: list[str]) -> models.Model:
    room = config.vocab_size - len(config.fixed)
    words = _count_words(workshop, texts)
    words[" "] += 1  # so that a space is never spelt in bytes
    pieces = learn_pieces(words, room, config.min_frequency)
    return MODELS["unigram"]([*((name, 0.0) for name in config.fixed), *pieces])


def _learn_wordpiece(
    config: TokenizerConfig, workshop: Tokenizer, texts: list[str], marks: Sequence[str], unknown: str
) -> dict[str, int]:
    """The trainer numbers its continuation characters in random order, so they are given to it beforehand."""
    texts = _without_long(workshop, texts)
    characters = {character for word in _count_words(workshop, texts) for character in word[1:]}
    continuations = [f"##{character}" for character in sorted(characters)]
    workshop.model = models.WordPiece(unk_token=unknown)
    trainer = trainers.WordPieceTrainer(
        **_limits(config), special_tokens=[*marks, *continuations], limit_alphabet=config.vocab_size
    )
    vocabulary: dict[str, int] = _train(workshop, trainer, texts)["vocab"]
    return vocabulary


def _limits(config: TokenizerConfig) -> dict[str, Any]:
    return {"vocab_size": config.vocab_size, "min_frequency": config.min_frequency, "show_progress": False}


def _train(workshop: Tokenizer, trainer: trainers.Trainer, texts: list[str]) -> dict[str, Any]:
    workshop.train_from_iterator(texts, trainer)
    model: dict[str, Any] = json.loads(workshop.to_str())["model"]
    return model


def _count_words(workshop: Tokenizer, texts: list[str]) -> Counter[str]:
    clean, cut = workshop.normalizer.normalize_str, workshop.pre_tokenizer.pre_tokenize_str
    return Counter(word for text in texts for word, _ in cut(clean(text)))


def _without_long(workshop: Tokenizer, texts: list[str]) -> list[str]:
    """The texts without words that WordPiece calls unknown for their length; to learn from one would take the
    square of it.
    """
    cut = workshop.pre_tokenizer.pre_tokenize_str
    return [
        " ".join(word for word, _ in cut(text) if len(word) <= wordpiece.LONGEST_WORD)
        if MAYBE_LONG.search(text)
        else text
        for text in texts
    ]


def _without_rare(config: TokenizerConfig, texts: list[str]) -> list[str]:
    """The texts with a space for each character not learnt: characters get half of the room at most."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(text)
    room = (config.vocab_size - len(config.fixed)) // 2
    common = sorted(counts, key=lambda character: (-counts[character], character))[:room]
    kept = {" ", *(character for character in common if counts[character] >= config.min_frequency)}
    blanks = dict.fromkeys(map(ord, counts.keys() - kept), " ")
    return [text.translate(blanks) for text in texts] if blanks else texts
