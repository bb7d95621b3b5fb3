"""Tokenizers for other tools: their tokenizer.json truncates long texts as we do, and adds EOS by itself.

A folder has one; where source and target vocabularies differ, it is the source's, and target/ has the other.
"""

import json
from pathlib import Path
from typing import Any

import tokenizers

from regard.errors import CheckpointError
from regard.tasks.seq2seq import Seq2Seq
from regard.text.tokenizer import EOS, Tokenizer
from regard.text.tokenizer_files import read_object
from regard.text.vocabulary import SPECIALS

FILE = "tokenizer.json"
TARGET = "target"


def write_tokenizers(task: Seq2Seq[Any], folder: Path) -> None:
    write_tokenizer(task.source.tokenizer, folder, task.config.max_length)
    if not task.config.joint:
        (folder / TARGET).mkdir()
        write_tokenizer(task.target.tokenizer, folder / TARGET, task.config.max_length)


def write_tokenizer(tokenizer: Tokenizer, folder: Path, max_tokens: int | None) -> None:
    """Write tokenizer.json, truncating to `max_tokens`; a pair of texts counts the separator between them."""
    has_template = bool(tokenizer.special.begin)  # a BERT's adds its special tokens itself
    changed: dict[str, Any] = {} if has_template else {"post_processor": _WITH_EOS}
    if max_tokens is not None:
        limit = max_tokens + len(tokenizer.with_special_tokens(()))
        truncation = {"direction": "Right", "max_length": limit, "strategy": "LongestFirst", "stride": 0}
        changed["truncation"] = truncation
    _write_with(changed, tokenizer, folder / FILE)


def write_prompt_tokenizer(tokenizer: Tokenizer, folder: Path, *, starts_documents: bool) -> None:
    """Write a tokenizer.json for prompts: no EOS after them, and one before if they start a document."""
    end = tokenizer.names[tokenizer.special.end]
    before = [{"SpecialToken": {"id": end, "type_id": 0}}] if starts_documents else []
    first, second = ({"Sequence": {"id": text, "type_id": 0}} for text in "AB")
    template = {
        "type": "TemplateProcessing",
        "single": [*before, first],
        "pair": [*before, first, *before, second],
        "special_tokens": {end: {"id": end, "ids": [tokenizer.special.end], "tokens": [end]}},
    }
    _write_with({"post_processor": template}, tokenizer, folder / FILE)


def _write_with(changed: dict[str, Any], tokenizer: Tokenizer, path: Path) -> None:
    tokenizer.save(path)
    content = json.loads(path.read_text("utf-8")) | changed
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1), "utf-8")


def open_tokenizers(folder: Path) -> tuple[tokenizers.Tokenizer, tokenizers.Tokenizer]:
    """Open the source's and the target's tokenizer with the library that every engine uses."""
    source = tokenizers.Tokenizer.from_file(str(folder / FILE))
    separate = folder / TARGET / FILE
    return source, tokenizers.Tokenizer.from_file(str(separate)) if separate.is_file() else source


def read_tokenizer(path: Path) -> Tokenizer:
    """Read what `write_tokenizer` wrote, even if another tool has saved it again since."""
    if not path.is_file():
        raise CheckpointError(f"{path}: missing, or not a file; is the folder complete?")
    content = read_object(path)
    if not _adds_only_specials(content.get("added_tokens")):
        raise CheckpointError(f"{path}: a tokenizer, but not one that regard exported")
    bare = content | dict.fromkeys(("post_processor", "truncation", "padding")) | {"added_tokens": []}
    return Tokenizer.from_json(path, bare)


def _adds_only_specials(added: Any) -> bool:
    """True if only special tokens are added; other tools list them a second time when they save."""
    return isinstance(added, list) and all(
        isinstance(token, dict) and (token.get("id"), token.get("content")) in list(enumerate(SPECIALS))
        for token in added
    )


def _template(*texts: str) -> list[dict[str, Any]]:
    """Template of each text followed by EOS, with the segment its tokens belong to."""
    return [
        {kind: {"id": name, "type_id": number}}
        for number, text in enumerate(texts)
        for kind, name in (("Sequence", text), ("SpecialToken", SPECIALS[EOS]))
    ]


_WITH_EOS = {
    "type": "TemplateProcessing",
    "single": _template("A"),
    "pair": _template("A", "B"),
    "special_tokens": {SPECIALS[EOS]: {"id": SPECIALS[EOS], "ids": [EOS], "tokens": [SPECIALS[EOS]]}},
}
