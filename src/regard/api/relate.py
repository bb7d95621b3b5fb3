"""Raw text → entities by a tagger → pairs → relations: two runs that answer as one."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import tee
from pathlib import Path
from typing import Self

from regard.api.trained import Trained, load
from regard.errors import DataError, RunError
from regard.fields.text import Text
from regard.files.row import Row, rows_of
from regard.text.entity_pairs import Related, Span, pairs, related


class Relations:
    """A relater and the tagger that finds its entities."""

    name, field = "text", Text()
    """Role and field of raw texts."""

    def __init__(self, relater: Trained, tagger: Trained) -> None:
        if not relater.task.pairs_entities:
            raise RunError(f"{relater.task.kind} models relate nothing; give a run of the task relation")
        if not tagger.task.finds_entities:
            raise RunError(f"{tagger.task.kind} models find no entities; give a run of the task tag")
        if not tagger.task.marks_spans:
            raise RunError(
                "the tagger's tags mark no spans, so it finds no entities; train one with BIO tags"
            )
        self.relater, self.tagger, self.config = relater, tagger, relater.task.config

    @classmethod
    def load(cls, run: str | Path, entities: str | Path, device: str = "auto") -> Self:
        """Load a relation run, and the tag run that finds entities."""
        return cls(load(run, device=device), load(entities, device=device))

    def __call__(self, text: str) -> Related:
        if not isinstance(text, str):
            raise DataError(f"{text!r}: the text must be a string")
        return next(self.stream([text]))

    def stream(self, texts: Iterable[str | Row]) -> Iterator[Related]:
        """Yield relations in the order of the texts."""
        numbered = enumerate(texts, 1)
        rows = (row for number, text in numbered for row in rows_of([text], self.name, first=number))
        asked, kept = tee(rows)
        for row, tagged in zip(kept, self.tagger.stream(asked), strict=True):
            yield self._related(row.cells[self.name], tagged.to_json()["spans"], row.where)

    def _related(self, text: str, entities: Sequence[Span], where: str) -> Related:
        asked = pairs(text, entities, where, both_ways=self.config.both_ways)
        answers = [answer.to_json() for answer in self.relater.predict([pair.question for pair in asked])]
        return related(text, entities, asked, answers, self.config.no_relation)
