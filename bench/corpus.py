"""Cuts a parallel corpus into joint BPE pieces once, so that every tool trains on the very same tokens.

Writes `train.en`, `train.de` (pieces separated by spaces) and other splits if asked, `vocabulary.txt`
(one piece per line, the specials first) and `counts.json`.
"""

import gzip
import json
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

SPECIALS = ["<unk>", "<pad>", "<s>", "</s>"]
LANGUAGES = ("en", "de")


def read_lines(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [line.strip() for line in file]


def joined(pieces: str) -> str:
    """The text whose pieces these are."""
    return pieces.replace(" ", "").replace("</w>", " ").strip()


def prepare(data: Path, out: Path, vocabulary_size: int, *others: str) -> dict[str, int]:
    """Returns the counts of sentences and of source and target tokens, one end mark per sentence included."""
    sides = {language: read_lines(data / f"train.{language}.gz") for language in LANGUAGES}
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size, special_tokens=SPECIALS, end_of_word_suffix="</w>", show_progress=False
    )
    tokenizer.train_from_iterator((line for lines in sides.values() for line in lines), trainer)

    out.mkdir(parents=True, exist_ok=True)
    pieces = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().__getitem__)
    (out / "vocabulary.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    counts = {"sentences": len(sides["en"]), "vocabulary": len(pieces)}
    for language, lines in sides.items():
        encoded = [encoding.tokens for encoding in tokenizer.encode_batch(lines)]
        text = "\n".join(" ".join(tokens) for tokens in encoded) + "\n"
        (out / f"train.{language}").write_text(text, encoding="utf-8")
        counts[f"tokens_{language}"] = sum(len(tokens) + 1 for tokens in encoded)
    for name in (f"{split}.{language}" for split in others for language in LANGUAGES):
        encoded = [encoding.tokens for encoding in tokenizer.encode_batch(read_lines(data / f"{name}.gz"))]
        (out / name).write_text("".join(" ".join(tokens) + "\n" for tokens in encoded), encoding="utf-8")
    (out / "counts.json").write_text(json.dumps(counts), encoding="utf-8")
    return counts
