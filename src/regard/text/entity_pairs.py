"""Raw text: the entities that a tagger found in it, two by two as a relater is asked about them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from regard.errors import DataError
from regard.text.marked import has_marks, mark
from regard.text.unicode import is_blank

MOST_ENTITIES = 16
"""Of a text: as pairs that is 120 questions, or 240 both ways."""

Span = Mapping[str, Any]
"""As a tagger answers: text, kind, start, end."""


@dataclass(frozen=True)
class Pair:
    text: str
    e1: Span
    e2: Span

    @property
    def question(self) -> str:
        """The text with both marked."""
        first, second = ((span["start"], span["end"]) for span in (self.e1, self.e2))
        return mark(self.text, first, second)


@dataclass(frozen=True)
class Related:
    """What stands in a text: entities, and relations between them."""

    input: str
    entities: tuple[Span, ...]
    """text, kind, start and end of each."""
    relations: tuple[dict[str, Any], ...]
    """text (the relation), probability, e1 and e2 of each; without those that are none."""
    cut: bool
    """The text was too long for some pair; what is far from it was not read."""

    @property
    def text(self) -> str:
        """`smoking | Cause-Effect(e1,e2) | cancer`, one after another."""
        told = (f"{one['e1']['text']} | {one['text']} | {one['e2']['text']}" for one in self.relations)
        return "; ".join(told)

    def to_json(self) -> dict[str, Any]:
        answer = {"text": self.text, "entities": [*self.entities], "relations": [*self.relations]}
        return answer | ({"input_cut": True} if self.cut else {})


def pairs(text: str, entities: Sequence[Span], where: str, *, both_ways: bool) -> list[Pair]:
    """The earlier of two is the first entity; both ways, it is the second as well."""
    if has_marks(text):
        raise DataError(f"{where}: has marks of entities already; ask about it without a tagger")
    if len(entities) > MOST_ENTITIES:
        raise DataError(
            f"{where}: has {len(entities)} entities and {MOST_ENTITIES} at most are paired; give it sentence "
            "by sentence"
        )
    seen = [entity for entity in entities if not is_blank(entity["text"])]
    found = [Pair(text, *two) for two in combinations(seen, 2)]
    return [one for pair in found for one in (pair, Pair(text, pair.e2, pair.e1))] if both_ways else found


def related(
    text: str,
    entities: Sequence[Span],
    asked: Sequence[Pair],
    answers: Sequence[Mapping[str, Any]],
    none: str,
) -> Related:
    """`answers` are a relater's, as JSON; what it calls `none` is not told."""
    relations = tuple(
        {"text": answer["text"], "probability": answer["probability"], "e1": pair.e1, "e2": pair.e2}
        for pair, answer in zip(asked, answers, strict=True)
        if answer["text"] != none
    )
    return Related(text, tuple(entities), relations, any("input_cut" in answer for answer in answers))
