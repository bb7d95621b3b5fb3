"""Text: a cell is a string, cut into the tokens of a vocabulary that is learnt or given."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import StringConstraints

from regard.fields.field import Coded, Field, FieldSettings, Limits, Width
from regard.fields.joined import Joined
from regard.fields.label import Label
from regard.files.content import File
from regard.files.formats import text_cell
from regard.files.lines import lines, stream_lines
from regard.files.row import asked_text
from regard.text.tokenizer import Tokenizer, TokenizerConfig


class TextSettings(FieldSettings):
    kind: Literal["text"] = "text"
    vocabulary: TokenizerConfig = TokenizerConfig()


@dataclass(frozen=True)
class Text(Field):
    kind: ClassVar[str] = "text"
    settings: ClassVar[type[FieldSettings]] = TextSettings
    reads: ClassVar[str] = "tokens"
    widget: ClassVar[str] = "text"
    accepts: ClassVar[str] = "text/plain"
    example: ClassVar[str] = ""
    vocabulary: TokenizerConfig = field(default_factory=TokenizerConfig)
    learnt: Tokenizer | None = None
    optional: bool = False
    located: bool = False
    """True if parts of it are known by their characters: white space at its ends is kept, and notes have the
    `offsets` of all tokens, which take ten times as long.
    """

    @classmethod
    def resembles(cls, cells: Sequence[Any]) -> float:
        """The share of strings with a letter in them; 0 for labels."""
        if not all(isinstance(cell, str) for cell in cells) or Label.resembles(cells):
            return 0.0
        return fmean(any(map(str.isalpha, cell)) for cell in cells) if cells else 0.0

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
            return text_cell(where, name, cell, strip=not self.located)
        return asked_text(cell, where, name)

    def fit(self, values: Iterable[str], given: Tokenizer | None = None) -> Self:
        return replace(self, learnt=given or Tokenizer.train(self.vocabulary, values))

    def parse(self, cell: str, where: str) -> str:
        return cell

    def encode(self, values: Sequence[str]) -> list[Coded]:
        if self.located:
            coded = {value: self._located(value) for value in set(values)}
            return [coded[value] for value in values]
        return [Coded({"ids": np.array(ids, np.int64)}) for ids in self.tokenizer.ids(values)]

    def _located(self, value: str) -> Coded:
        ids, offsets = self.tokenizer.encode(value)
        return Coded(
            {"ids": np.array(ids, np.int64)}, {"offsets": np.array(offsets, np.int64).reshape(-1, 2)}
        )

    def save(self, folder: Path) -> None:
        self.tokenizer.save(folder / "tokenizer.json")

    def load(self, folder: Path) -> Self:
        return replace(self, learnt=Tokenizer.load(folder / "tokenizer.json"))

    def typed(self, text: str, name: str) -> str:
        return text

    def receive(self, file: File, name: str) -> str:
        return "\n".join(lines(str(file)) if isinstance(file, Path) else stream_lines(BytesIO(file), name))

    def request(self, limits: Limits) -> Any:
        return Annotated[str, StringConstraints(min_length=1, max_length=limits.characters)]

    def cost(self, cell: str) -> int:
        """A character is a token at most, as a rule."""
        return len(cell)

    def alone(self, limit: int) -> Joined:
        """The input of an encoder that reads nothing else, with room for so many tokens."""
        return Joined((self,), limit)
