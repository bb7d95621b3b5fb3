"""Learn a vocabulary from the user's own text: the same texts always give the same tokens with the same ids.

The trainers of the `tokenizers` library are used where they keep that promise (`unigram.py` says where they
do not). Special tokens are entries of the vocabulary and nothing more: they are never looked for in a text,
so that no text can end its own sentence. Characters too rare to learn are spelt in bytes (bpe, unigram) or
unknown.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator
from tokenizers import Tokenizer, models, trainers

from regard.config import Config
from regard.errors import DataError
from regard.text import wordpiece
from regard.text.pretokenize import UNKNOWN, Kind, Space, is_segmented, with_pipeline
from regard.text.unigram import learn_tokens

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
"""Constructors from tokens with their ids or (unigram) scores, and (bpe) merges."""
MAYBE_LONG = re.compile(rf"\S{{{wordpiece.LONGEST_WORD + 1}}}")
"""Finds words that may be too long for WordPiece."""


class TokenizerConfig(Config):
    may_spell: ClassVar[bool] = True
    """True if a kind can be chosen that spells unknown characters in bytes."""

    kind: Kind = "bpe"
    vocab_size: int = Field(8000, ge=5, le=1_000_000)
    """Upper bound of all tokens, with the special ones and the 256 bytes of bpe and unigram."""
    lowercase: bool = False
    space: Space = Field(
        "one",
        description="white space: made one space, or kept with line ends (bpe, unigram, char)",
    )
    min_frequency: int = Field(2, ge=1)
    """Smallest count of a character, token or word to be learnt."""

    @property
    def fixed(self) -> tuple[str, ...]:
        """The tokens that need no learning; they have the first ids."""
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
                f"which has {len(self.fixed)} fixed tokens"
            )
        return self


def refuse_surrogates(texts: Sequence[str]) -> None:
    """Refuse halves of surrogate pairs ("\\ud800"), which JSON can hold and no other text file."""
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
        with_pipeline,
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
            vocabulary = _learn_wordpiece(config, workshop, _without_rare(config, texts), SPECIALS, UNKNOWN)
            model = MODELS["wordpiece"](vocabulary)
    return style(model)


def learn_bert(config: TokenizerConfig, texts: Iterable[str]) -> Tokenizer:
    """Learn a WordPiece vocabulary with the special tokens of a BERT in the place of ours (decision 13)."""
    special = (*wordpiece.NEEDED, wordpiece.MASK)
    cleaning = wordpiece.CLEANING | {"lowercase": config.lowercase}
    workshop = wordpiece.bert_tokenizer({name: id_ for id_, name in enumerate(special)}, cleaning)
    texts = list(texts)
    refuse_surrogates(texts)
    texts = [workshop.normalizer.normalize_str(text) for text in texts]
    if not any(map(str.strip, texts)):
        raise DataError("no text to learn a vocabulary from: every training text is empty")
    vocabulary = _learn_wordpiece(config, workshop, _without_rare(config, texts), special, wordpiece.UNKNOWN)
    if len(vocabulary) == len(special):
        raise DataError(
            "no token can be learnt from the training texts with task.tokenizer.vocab_size = "
            f"{config.vocab_size} and min_frequency = {config.min_frequency}; give more text, a larger "
            "vocab_size or a smaller min_frequency"
        )
    return wordpiece.bert_tokenizer(vocabulary, cleaning)


def _learn_words(config: TokenizerConfig, workshop: Tokenizer, texts: list[str]) -> models.Model:
    counts = _count_words(workshop, texts)
    words = sorted(counts.keys() - set(config.fixed), key=lambda word: (-counts[word], word))
    names = [*config.fixed, *(word for word in words if counts[word] >= config.min_frequency)]
    vocab = {name: i for i, name in enumerate(names[: config.vocab_size])}
    return MODELS[config.kind](vocab)


def _learn_bpe(config: TokenizerConfig, workshop: Tokenizer, texts: list[str]) -> models.Model:
    trainer = trainers.BpeTrainer(**_limits(config), special_tokens=list(config.fixed))
    learnt = _train(workshop, trainer, texts)
    merges = [(left, right) for left, right in learnt["merges"]]
    return MODELS["bpe"](learnt["vocab"], merges)


def _learn_unigram(config: TokenizerConfig, workshop: Tokenizer, texts: list[str]) -> models.Model:
    room = config.vocab_size - len(config.fixed)
    words = _count_words(workshop, texts)
    words[" "] += 1  # so that a space is never spelt in bytes
    tokens = learn_tokens(words, room, config.min_frequency)
    return MODELS["unigram"]([*((name, 0.0) for name in config.fixed), *tokens])


def _learn_wordpiece(
    config: TokenizerConfig, workshop: Tokenizer, texts: list[str], special: Sequence[str], unknown: str
) -> dict[str, int]:
    """Learn WordPiece tokens with their ids.

    The trainer numbers continuation characters in random order, so it gets them as special tokens.
    """
    texts = _without_long(workshop, texts)
    characters = {character for word in _count_words(workshop, texts) for character in word[1:]}
    continuations = [f"##{character}" for character in sorted(characters)]
    workshop.model = models.WordPiece(unk_token=unknown)
    trainer = trainers.WordPieceTrainer(
        **_limits(config), special_tokens=[*special, *continuations], limit_alphabet=config.vocab_size
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
    """The texts without words too long for WordPiece, which calls them unknown; training time is quadratic in
    their length.
    """
    cut = workshop.pre_tokenizer.pre_tokenize_str
    return [
        " ".join(word for word, _ in cut(text) if len(word) <= wordpiece.LONGEST_WORD)
        if MAYBE_LONG.search(text)
        else text
        for text in texts
    ]


def _without_rare(config: TokenizerConfig, texts: list[str]) -> list[str]:
    """The texts with a space for each character too rare to learn; characters get at most half of
    the room.
    """
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(text)
    room = (config.vocab_size - len(config.fixed)) // 2
    common = sorted(counts, key=lambda character: (-counts[character], character))[:room]
    kept = {" ", *(character for character in common if counts[character] >= config.min_frequency)}
    blanks = dict.fromkeys(map(ord, counts.keys() - kept), " ")
    return [text.translate(blanks) for text in texts] if blanks else texts
