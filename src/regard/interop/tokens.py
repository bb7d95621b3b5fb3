"""Tokenizers as other tools want them: tokenizer.json cuts long texts as we do, and adds the end by itself.

A folder has one; where the vocabularies differ it is the source's, and the target's lies in target/.
"""

import json
from pathlib import Path
from typing import Any

import tokenizers

from regard.errors import CheckpointError
from regard.tasks.seq2seq import Seq2Seq
from regard.text.foreign import read_object
from regard.text.tokenizer import EOS, Tokenizer
from regard.text.vocabulary import SPECIALS

FILE = "tokenizer.json"
TARGET = "target"


def write_tokenizers(task: Seq2Seq[Any], folder: Path) -> None:
    write_tokenizer(task.source, folder, task.config.max_length)
    if not task.config.joint:
        (folder / TARGET).mkdir()
        write_tokenizer(task.target, folder / TARGET, task.config.max_length)


def write_tokenizer(tokenizer: Tokenizer, folder: Path, most: int | None) -> None:
    """Of a longer text the first `most` pieces are read; of two texts so many with the mark between them."""
    own_marks = bool(tokenizer.marks.begin)  # a BERT's says by itself what stands around a text
    changed: dict[str, Any] = {} if own_marks else {"post_processor": _AND_END}
    if most is not None:
        longest = most + len(tokenizer.framed(()))
        cut = {"direction": "Right", "max_length": longest, "strategy": "LongestFirst", "stride": 0}
        changed["truncation"] = cut
    _write_with(changed, tokenizer, folder / FILE)


def write_prompter(tokenizer: Tokenizer, folder: Path, *, begins: bool) -> None:
    """For texts that will be continued: nothing ends them, and an end stands before them if they begin."""
    end = tokenizer.names[tokenizer.marks.end]
    before = [{"SpecialToken": {"id": end, "type_id": 0}}] if begins else []
    first, second = ({"Sequence": {"id": text, "type_id": 0}} for text in "AB")
    template = {
        "type": "TemplateProcessing",
        "single": [*before, first],
        "pair": [*before, first, *before, second],
        "special_tokens": {end: {"id": end, "ids": [tokenizer.marks.end], "tokens": [end]}},
    }
    _write_with({"post_processor": template}, tokenizer, folder / FILE)


def _write_with(changed: dict[str, Any], tokenizer: Tokenizer, path: Path) -> None:
    tokenizer.save(path)
    content = json.loads(path.read_text("utf-8")) | changed
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1), "utf-8")


def open_tokenizers(folder: Path) -> tuple[tokenizers.Tokenizer, tokenizers.Tokenizer]:
    """Of source and target, as the library loads them that every engine uses."""
    source = tokenizers.Tokenizer.from_file(str(folder / FILE))
    separate = folder / TARGET / FILE
    return source, tokenizers.Tokenizer.from_file(str(separate)) if separate.is_file() else source


def read_tokenizer(path: Path) -> Tokenizer:
    """What `write_tokenizer` wrote, perhaps saved again by another tool, in our form."""
    if not path.is_file():
        raise CheckpointError(f"{path}: missing, or not a file; is the folder complete?")
    content = read_object(path)
    if not _adds_only_marks(content.get("added_tokens")):
        raise CheckpointError(f"{path}: a tokenizer, but not one that regard exported")
    bare = content | dict.fromkeys(("post_processor", "truncation", "padding")) | {"added_tokens": []}
    return Tokenizer.rebuilt(path, bare)


def _adds_only_marks(added: Any) -> bool:
    """Other tools list the marks once more beside the vocabulary when they save."""
    return isinstance(added, list) and all(
        isinstance(token, dict) and (token.get("id"), token.get("content")) in list(enumerate(SPECIALS))
        for token in added
    )


def _template(*texts: str) -> list[dict[str, Any]]:
    """Each text and its end, and which of them a piece belongs to."""
    return [
        {kind: {"id": name, "type_id": number}}
        for number, text in enumerate(texts)
        for kind, name in (("Sequence", text), ("SpecialToken", SPECIALS[EOS]))
    ]


_AND_END = {
    "type": "TemplateProcessing",
    "single": _template("A"),
    "pair": _template("A", "B"),
    "special_tokens": {SPECIALS[EOS]: {"id": SPECIALS[EOS], "ids": [EOS], "tokens": [SPECIALS[EOS]]}},
}
