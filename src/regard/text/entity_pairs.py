"""The entities that a tagger found in a text, paired for a relation classifier."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from regard.errors import DataError
from regard.text.entity_marks import has_marks, mark
from regard.text.unicode import is_blank

MOST_ENTITIES = 16
"""Entities of one text that are paired at most: 120 pairs, or 240 both ways."""

Span = Mapping[str, Any]
"""A span as a tagger answers it: text, kind, start, end."""


@dataclass(frozen=True)
class Pair:
    text: str
    e1: Span
    e2: Span

    @property
    def question(self) -> str:
        """The text with both entities marked."""
        first, second = ((span["start"], span["end"]) for span in (self.e1, self.e2))
        return mark(self.text, first, second)


@dataclass(frozen=True)
class Related:
    """The entities of a text, and the relations between them."""

    input: str
    entities: tuple[Span, ...]
    """text, kind, start and end of each."""
    relations: tuple[dict[str, Any], ...]
    """text (the relation), probability, e1 and e2 of each; pairs without a relation are left out."""
    cut: bool
    """True if the text was too long for some pair, so that words far from it were not read."""

    @property
    def text(self) -> str:
        """`smoking | Cause-Effect(e1,e2) | cancer`, one after another."""
        triples = (f"{r['e1']['text']} | {r['text']} | {r['e2']['text']}" for r in self.relations)
        return "; ".join(triples)

    def to_json(self) -> dict[str, Any]:
        answer = {"text": self.text, "entities": [*self.entities], "relations": [*self.relations]}
        return answer | ({"input_cut": True} if self.cut else {})


def pairs(text: str, entities: Sequence[Span], where: str, *, both_ways: bool) -> list[Pair]:
    """Pair all entities, the earlier one first; both ways, each pair also the other way round."""
    if has_marks(text):
        raise DataError(f"{where}: already has entity marks; leave out the tagger")
    if len(entities) > MOST_ENTITIES:
        raise DataError(
            f"{where}: has {len(entities)} entities, but at most "
            f"{MOST_ENTITIES} can be paired; split it into "
            "sentences"
        )
    visible = [entity for entity in entities if not is_blank(entity["text"])]
    forward = [Pair(text, *two) for two in combinations(visible, 2)]
    if not both_ways:
        return forward
    return [each for pair in forward for each in (pair, Pair(text, pair.e2, pair.e1))]


def related(
    text: str,
    entities: Sequence[Span],
    questions: Sequence[Pair],
    answers: Sequence[Mapping[str, Any]],
    none: str,
) -> Related:
    """Join the pairs with the JSON answers of a relation classifier, leaving out the label `none`."""
    relations = tuple(
        {"text": answer["text"], "probability": answer["probability"], "e1": pair.e1, "e2": pair.e2}
        for pair, answer in zip(questions, answers, strict=True)
        if answer["text"] != none
    )
    return Related(text, tuple(entities), relations, any("input_cut" in answer for answer in answers))
