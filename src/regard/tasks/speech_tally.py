"""The tally of transcribe: errors by words and characters, and how far times of words are off."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from regard.data.example import Example
from regard.metrics.resample import Floats, Scores, unweighted
from regard.metrics.speech import Errors, aligned, character_errors, word_errors
from regard.metrics.tally import Columns

SIGNATURE = "jiwer, lower case, without punctuation"
Times = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class SpeechTally(Columns):
    answers: list[str] = field(default_factory=list)
    references: list[str] = field(default_factory=list)
    words: list[Errors] = field(default_factory=list)
    characters: list[Errors] = field(default_factory=list)
    apart: list[list[float]] = field(default_factory=list)
    """Seconds between the times of right words and those that people gave: of beginnings and ends."""

    @classmethod
    def of(
        cls,
        answers: list[str],
        examples: Sequence[Example],
        reference: Callable[[Example], str],
        times: Sequence[Times] | None = None,
    ) -> "SpeechTally":
        references = [reference(example) for example in examples]
        pairs = list(zip(answers, references, strict=True))
        apart = [
            _apart(answer, example.row.cells.get("words") or (), words)
            for answer, example, words in zip(answers, examples, times or [()] * len(examples), strict=True)
        ]
        by_word, by_character = (
            [count(*pair) for pair in pairs] for count in (word_errors, character_errors)
        )
        return cls(answers, references, by_word, by_character, apart)

    @property
    def truth(self) -> list[str]:
        return self.references

    def weighed(self, weights_RN: Floats) -> Scores:
        scores = {}
        for name, errors in (("wer", self.words), ("cer", self.characters)):
            wrong_N = np.array([one.total for one in errors], np.float64)
            n_N = np.array([one.n for one in errors], np.float64)
            scores[name] = 100 * (weights_RN @ wrong_N) / np.maximum(weights_RN @ n_N, 1)
        return scores

    def metrics(self) -> dict[str, float]:
        """`word_ms` is the median distance of a word's beginning and end from those that people gave."""
        apart = [seconds for one in self.apart for seconds in one]
        return unweighted(self) | ({"word_ms": 1000 * float(np.median(apart))} if apart else {})

    def signatures(self) -> dict[str, str]:
        return dict.fromkeys(("wer", "cer"), SIGNATURE)

    def by_kind(self) -> dict[str, dict[str, float]]:
        """How many words there are of each kind of error."""
        kinds = {
            "substituted": sum(one.substituted for one in self.words),
            "deleted": sum(one.deleted for one in self.words),
            "inserted": sum(one.inserted for one in self.words),
        }
        n = max(1, sum(one.n for one in self.words))
        return {name: {"percent": 100 * count / n, "n": count} for name, count in kinds.items()}


def _apart(answer: str, spoken: Sequence[Any], words: Times) -> list[float]:
    if not spoken or not words:
        return []
    found: list[float] = []
    for kind, place, at in aligned(answer, " ".join(str(one["word"]) for one in spoken)):
        if kind == "equal" and place < len(spoken) and at < len(words):
            start, end = words[at]
            found += [abs(start - float(spoken[place]["start"])), abs(end - float(spoken[place]["end"]))]
    return found
