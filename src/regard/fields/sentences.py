"""Documents in sentences, and what a BERT reads of them: two runs of sentences with some tokens hidden.

Which runs, and whether the second follows the first, is for the layout to draw (data/paired.py).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import ClassVar, Self

import numpy as np

from regard.fields.axis import Axis, ended
from regard.fields.document import Document
from regard.fields.field import Arrays, Coded, Occlusion
from regard.fields.joined import Joined
from regard.fields.masking import Ints, Masking
from regard.fields.padding import NOWHERE, padded
from regard.files.documents import goes_on
from regard.text.sentences import Sentences as By
from regard.text.sentences import sentences
from regard.text.tokenizer import Tokenizer

FOLLOWS, DOES_NOT, NO_PAIR = 0, 1, -100
"""Numbers of the answers whether the second run follows, as BERT has them; cross-entropy ignores the last."""


@dataclass(frozen=True)
class Sentences(Document):
    """Arrays: those of a document, and its `sentence_lengths` in tokens."""

    kind: ClassVar[str] = "sentences"
    by: By = "lines"

    def fit(self, values: Iterable[str], given: Tokenizer | None = None) -> Self:
        """Learns a vocabulary with the marks of a BERT."""
        return replace(self, learnt=given or Tokenizer.train_bert(self.vocabulary, values))

    def encode(self, values: Sequence[str]) -> list[Coded]:
        cut = [sentences(value, self.by) for value in values]
        ids = iter(self.tokenizer.ids([sentence for own in cut for sentence in own]))
        return [
            self._coded(value, list(islice(ids, len(own)))) for value, own in zip(values, cut, strict=True)
        ]

    def _coded(self, value: str, ids: list[list[int]]) -> Coded:
        arrays = {
            "ids": np.array([token for own in ids for token in own], np.int64),
            "sentence_lengths": np.array([len(own) for own in ids], np.int64),
            "closes": np.array([not goes_on(value)], np.int64),
        }
        return Coded(arrays)


@dataclass(frozen=True)
class SentencePairs(Joined):
    """Runs of sentences with marks around them, `limit` tokens together.

    Arrays of a document: those of the field. Of a pair that was drawn: `ids`, as they are seen; where the
    `second` run begins; the hidden `places`, the `labels` of these; and whether the second run `follows`.
    """

    share: float = 0.15
    """Share of the tokens that are hidden."""
    whole_words: bool = False

    @cached_property
    def masking(self) -> Masking:
        return Masking(self.fields[0].tokenizer, self.share, whole_words=self.whole_words)

    @property
    def most(self) -> int:
        return self.limit + len(self.fields[0].tokenizer.with_special_tokens((), ()))

    @property
    def blank(self) -> int:
        """A model of hidden words is to know nothing of what the mask stands for."""
        return self.masking.mask

    def assemble(self, parts: Sequence[Coded]) -> Coded:
        """No sentence has more than half of the limit: longer ones become several."""
        (part,) = parts
        most = self.limit // 2
        whole = part.arrays["sentence_lengths"].tolist()
        lengths = [min(most, n - at) for n in whole for at in range(0, n, most)]
        return Coded({**part.arrays, "sentence_lengths": np.array(lengths, np.int64)})

    def is_empty(self, arrays: Arrays) -> bool:
        return not len(arrays["ids"])

    def size(self, arrays: Arrays) -> int:
        return max(1, len(arrays["ids"]))

    def draw(self, arrays: Arrays, rng: np.random.Generator) -> Arrays:
        """The `first` run and perhaps a `second`, some of whose tokens are hidden."""
        runs = [arrays[name].tolist() for name in ("first", "second") if name in arrays]
        ids = np.array(self.fields[0].tokenizer.with_special_tokens(*runs))
        seen, places = self.masking(ids, rng)
        return self._hidden(seen, runs[0], places, ids[places], arrays["follows"])

    def blanked(self, parts: Sequence[Sequence[int]]) -> Arrays:
        """A text of these parts, with a mask between each and the next."""
        first, *rest = parts
        text = [*first, *(token for part in rest for token in (self.blank, *part))]
        ids = np.array(self.fields[0].tokenizer.with_special_tokens(text))
        places = np.flatnonzero(ids == self.blank)
        return self._hidden(ids, text, places, ids[places], np.array([NO_PAIR]))

    def _hidden(self, seen: Ints, first: Sequence[int], places: Ints, labels: Ints, follows: Ints) -> Arrays:
        second = np.array([len(self.fields[0].tokenizer.with_special_tokens(first))])
        return {"ids": seen, "second": second, "places": places, "labels": labels, "follows": follows}

    def collate(self, many: Sequence[Arrays]) -> Arrays:
        """Pad a batch, with the `places` of hidden tokens among all of its tokens."""
        batch = super().collate(many)
        width = batch["ids"].shape[1]
        places = [row * width + arrays["places"] for row, arrays in enumerate(many)]
        return {**batch, "places": padded(places, NOWHERE, least=1)}

    def without(self, batch: Arrays, axis: Axis, units: Sequence[int], how: Occlusion) -> Arrays:
        """Whatever is asked, a token is hidden."""
        rows = super().without(batch, axis, units, "blank")
        shift = np.arange(len(units))[:, None] * batch["ids"].shape[1]
        return {**rows, "places": np.where(rows["places"] == NOWHERE, NOWHERE, rows["places"] + shift)}

    def axis(self, values: Sequence[str], coded: Coded) -> Axis:
        return ended(self.name, tuple(self.fields[0].tokenizer.tokens(coded.arrays["ids"].tolist())))
