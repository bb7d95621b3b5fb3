"""Text: a cell is a string, cut into the tokens of a vocabulary that is learnt or given."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np

from regard.fields.field import Coded, FieldSettings, Width
from regard.fields.joined import Joined
from regard.files.formats import text_cell
from regard.files.row import asked_text
from regard.text.tokenizer import Tokenizer, TokenizerConfig


class TextSettings(FieldSettings):
    kind: Literal["text"] = "text"
    vocabulary: TokenizerConfig = TokenizerConfig()


@dataclass(frozen=True)
class Text:
    kind: ClassVar[str] = "text"
    synonyms: ClassVar[tuple[str, ...]] = ("text", "sentence", "review", "document", "文本", "句子")
    settings: ClassVar[type[FieldSettings]] = TextSettings
    reads: ClassVar[str] = "tokens"
    vocabulary: TokenizerConfig = field(default_factory=TokenizerConfig)
    learnt: Tokenizer | None = None
    optional: bool = False
    verbatim: bool = False
    """Whether white space at its ends is kept, as where parts of it are known by their characters."""

    @classmethod
    def resembles(cls, cells: Sequence[Any]) -> float:
        return 0.0

    @classmethod
    def suggest(cls, cells: Sequence[Any]) -> tuple[dict[str, Any], int]:
        return {}, 1

    @classmethod
    def of(cls, settings: TextSettings) -> Self:
        return cls(settings.vocabulary)

    @property
    def sample(self) -> str:
        return "your text"

    @property
    def tokenizer(self) -> Tokenizer:
        assert self.learnt is not None, "the field has not been fitted"
        return self.learnt

    @property
    def width(self) -> Width:
        return {"vocab": len(self.tokenizer)}

    def clean(self, cell: object, where: str, name: str, folder: Path | None = None) -> str:
        if folder is not None:
            return text_cell(where, name, cell, strip=not self.verbatim)
        return asked_text(cell, where, name)

    def fit(self, values: Iterable[str], given: Tokenizer | None = None) -> Self:
        return replace(self, learnt=given or Tokenizer.train(self.vocabulary, values))

    def parse(self, cell: str, where: str) -> str:
        return cell

    def encode(self, values: Sequence[str]) -> list[Coded]:
        return [Coded({"ids": np.array(ids, np.int64)}) for ids in self.tokenizer.ids(values)]

    def save(self, folder: Path) -> None:
        self.tokenizer.save(folder / "tokenizer.json")

    def load(self, folder: Path) -> Self:
        return replace(self, learnt=Tokenizer.load(folder / "tokenizer.json"))

    def alone(self, limit: int) -> Joined:
        """The input of an encoder that reads nothing else, with room for so many tokens."""
        return Joined((self,), limit)
