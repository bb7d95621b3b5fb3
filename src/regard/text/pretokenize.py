"""Pre-tokenization: how text is cut before tokens are learnt, and how tokens become text again.

As in SentencePiece a word carries the space before it, so that decoding is plain concatenation; but the
marker is the space itself and not "▁", which a user's text may contain. Other differences:

- Chinese and Japanese are written without spaces, so a space before ideographs is a token of its own, and
  none is put before a text that begins with them. Where a segmenter has put spaces between Chinese words,
  these are words like any others.
- Words, ideographs, digits and punctuation never share a token. So no text can spell "</s>" or "<0x41>".
- Runs are bounded: a megabyte without a space takes linear time.
- Where white space is kept (`Space`), nothing is cleaned: line ends and indents are tokens of their own, no
  space is put before the first word, and decoding gives every character back.
"""

import re
from collections import Counter
from collections.abc import Iterable
from itertools import product
from typing import Literal, get_args

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

UNKNOWN = "<unk>"
Kind = Literal["bpe", "unigram", "wordpiece", "char", "word"]
Space = Literal["one", "kept"]

IDEOGRAPH = r"\p{Han}\p{Hiragana}\p{Katakana}ー"
WIDE = IDEOGRAPH + r"\x{3001}-\x{303F}\x{FF01}-\x{FF65}"  # with the punctuation between ideographs
BETWEEN_HAN = re.compile(r"(?<=[\u4e00-\u9fff])\s*(?=[\u4e00-\u9fff])")
WHITE_SPACE = r"[\s\x{1C}-\x{1F}]+"  # what str.split() splits on
MAX_WORD, MAX_IDEOGRAPHS, MAX_REPEATED = 64, 16, 16


def is_segmented(texts: Iterable[str]) -> bool:
    """True if spaces separate Chinese words: words are short, so most neighbouring ideographs have one
    between.
    """
    gaps = Counter(bool(gap) for text in texts for gap in BETWEEN_HAN.findall(text))
    return 2 * gaps[True] > gaps[False]


def with_pipeline(
    model: models.Model, kind: Kind, *, lowercase: bool, segmented: bool, space: Space = "one"
) -> Tokenizer:
    """A tokenizer with this model and the normalizer, pre-tokenizer and decoder of its kind."""
    tokenizer = Tokenizer(model)
    if kind == "wordpiece":
        tokenizer.normalizer = normalizers.BertNormalizer(
            clean_text=True, handle_chinese_chars=True, strip_accents=False, lowercase=lowercase
        )
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = _join_subwords(segmented)
    elif space == "kept":
        tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase()] if lowercase else [])
        tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(_cuts(kind, segmented) + r"|\s"), "isolated")
        tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    else:
        tokenizer.normalizer = _collapse_spaces(kind, lowercase, segmented)
        tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(_cuts(kind, segmented)), "isolated")
        tokenizer.decoder = _concatenate(kind)
    return tokenizer


def cuts_at_spaces(tokenizer: Tokenizer) -> bool:
    """True if a tokenizer cleans and cuts like one of ours, which cut at every space whatever is
    beside it.
    """
    styles = product(get_args(Kind), (True, False), (True, False))
    ours = (with_pipeline(models.BPE(), kind, lowercase=low, segmented=seg) for kind, low, seg in styles)
    return _cutting(tokenizer) in map(_cutting, ours)


def _cutting(tokenizer: Tokenizer) -> tuple[object, object]:
    """Normalizer and pre-tokenizer as JSON."""
    return tokenizer.normalizer.__getstate__(), tokenizer.pre_tokenizer.__getstate__()


def _collapse_spaces(kind: Kind, lowercase: bool, segmented: bool) -> normalizers.Normalizer:
    """Put one space between words and one before the first; nothing else changes, so that
    decoding is exact.
    """
    steps: list[normalizers.Normalizer] = [
        normalizers.Replace(Regex(WHITE_SPACE), " "),
        normalizers.Strip(),
    ]
    if lowercase:
        steps.append(normalizers.Lowercase())
    if kind != "char":
        begins_with_a_word = r"\A(?=.)" if segmented else rf"\A(?=[^{WIDE}])"
        steps.append(normalizers.Replace(Regex(begins_with_a_word), " "))
    return normalizers.Sequence(steps)


def _cuts(kind: Kind, segmented: bool) -> str:
    if kind == "char":
        return "."
    word = rf" ?[\p{{L}}\p{{M}}&&[^{IDEOGRAPH}]]{{1,{MAX_WORD}}}"
    ideographs = rf"[{IDEOGRAPH}]{{1,{MAX_IDEOGRAPHS}}}"
    if segmented:
        ideographs = " ?" + ideographs
    elif kind == "word":
        ideographs = rf"[{IDEOGRAPH}]"
    repeated_mark = rf" ?([^\s\p{{L}}\p{{M}}\p{{N}}])\1{{0,{MAX_REPEATED - 1}}}"
    return "|".join((word, ideographs, r" ?\p{N}", repeated_mark, " "))


def _concatenate(kind: Kind) -> decoders.Decoder:
    steps: list[decoders.Decoder] = [
        decoders.ByteFallback(),
        decoders.Fuse(),
        decoders.Strip(" ", left=1, right=0),
    ]
    if kind != "char":
        steps.insert(0, decoders.Replace(UNKNOWN, f" {UNKNOWN}"))
    return decoders.Sequence(steps)


def _join_subwords(segmented: bool) -> decoders.Decoder:
    """Join subwords as BERT does, with a space between words, and ideographs, which BERT
    isolates, without.
    """
    steps: list[decoders.Decoder] = [decoders.WordPiece(prefix="##", cleanup=False), decoders.Fuse()]
    if not segmented:
        steps.append(decoders.Replace(Regex(rf"(?<=[{WIDE}]) (?=[{WIDE}])"), ""))
    return decoders.Sequence(steps)
