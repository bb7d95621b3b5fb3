"""Baselines of tagging: the commonest tag of each word, and a linear-chain CRF on features of the words."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Self

from regard.baselines.baseline import Baseline
from regard.data.sample import thinned
from regard.errors import RunError
from regard.fields.tags import words_of
from regard.files.row import Row

LONGEST_ENDING = 4
"""Longest ending that predicts the tag of an unseen word, in characters."""
ROUNDS = 50
"""Iterations of L-BFGS."""
MOST_PRODUCTS = 20_000_000
"""Most words times pairs of tags that the CRF learns from."""


def words_and_tags(rows: Sequence[Row]) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the words and the tags of each sentence."""
    for row in rows:
        yield words_of(row.cells["text"]), words_of(row.cells["tags"])


class Dictionary(Baseline):
    """The commonest tag of a word; for an unseen word that of its longest known ending."""

    name: ClassVar[str] = "dictionary"

    def __init__(self, by_word: dict[str, str], by_ending: dict[str, str]) -> None:
        self.by_word, self.by_ending = by_word, by_ending

    @classmethod
    def fit(cls, task: Any, rows: Sequence[Row]) -> Self:
        words: dict[str, Counter[str]] = defaultdict(Counter)
        endings: dict[str, Counter[str]] = defaultdict(Counter)
        for sentence, tags in words_and_tags(rows):
            for word, tag in zip(sentence, tags, strict=True):
                words[word][tag] += 1
        for word, counts in words.items():
            (tag, _), *_ = counts.most_common(1)
            for n in range(LONGEST_ENDING + 1):
                endings[word[len(word) - n :] if n else ""][tag] += 1
        return cls(_commonest(words), _commonest(endings))

    def answers(self, examples: Sequence[Any]) -> Sequence[Any]:
        return [tuple(map(self.tag, words_of(one.row.cells["text"]))) for one in examples]

    def tag(self, word: str) -> str:
        if word in self.by_word:
            return self.by_word[word]
        endings = (word[at:] for at in range(max(0, len(word) - LONGEST_ENDING), len(word) + 1))
        return next(self.by_ending[ending] for ending in endings if ending in self.by_ending)


def _commonest(counts: dict[str, Counter[str]]) -> dict[str, str]:
    return {key: each.most_common(1)[0][0] for key, each in counts.items()}


class FeatureCRF(Baseline):
    """A CRF of CRFsuite, on the words themselves, their neighbours, beginnings, endings and shapes."""

    name: ClassVar[str] = "CRF on features"

    def __init__(self, tagger: Any, model: bytes) -> None:
        self._tagger = tagger
        self._model = model
        """The bytes that the tagger reads, and of which it keeps no reference itself."""

    @classmethod
    def fit(cls, task: Any, rows: Sequence[Row]) -> Self:
        try:
            import pycrfsuite
        except ImportError:
            raise RunError(
                "this needs python-crfsuite; install it with: pip install 'regard[baselines]'"
            ) from None
        most = MOST_PRODUCTS // len(task.labels) ** 2
        learnt_from, _ = thinned(rows, max(1, most), lambda row: len(words_of(row.cells["tags"])))
        trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
        trainer.set_params({"c1": 0.1, "c2": 0.1, "max_iterations": ROUNDS})
        for words, tags in words_and_tags(learnt_from):
            trainer.append(features(words), tags)
        with TemporaryDirectory() as folder:
            path = Path(folder, "crf")
            trainer.train(str(path))
            model = path.read_bytes()
        tagger = pycrfsuite.Tagger()
        tagger.open_inmemory(model)
        return cls(tagger, model)

    def answers(self, examples: Sequence[Any]) -> Sequence[Any]:
        return [tuple(self._tagger.tag(features(words_of(one.row.cells["text"])))) for one in examples]


def features(words: Sequence[str]) -> list[list[str]]:
    """The features of each word."""
    single = [_features(word) for word in words]
    marked = ["<s>", *map(str.lower, words), "</s>"]
    return [
        [
            *single[at],
            f"before={marked[at]}",
            f"after={marked[at + 2]}",
            f"before+={marked[at]} {marked[at + 1]}",
            f"after+={marked[at + 1]} {marked[at + 2]}",
            *(f"before:{name}" for name in (single[at - 1][-2:] if at else ())),
            *(f"after:{name}" for name in (single[at + 1][-2:] if at + 1 < len(words) else ())),
        ]
        for at in range(len(words))
    ]


def _features(word: str) -> list[str]:
    lower = word.lower()
    begins = [f"begins={lower[:n]}" for n in (2, 3) if len(lower) > n]
    ends = [f"ends={lower[-n:]}" for n in (1, 2, 3) if len(lower) > n]
    return ["bias", f"word={lower}", f"exactly={word}", *begins, *ends, f"shape={shape(word)}"]


def shape(word: str) -> str:
    """The shape of a word, with runs of capitals, small letters and digits as one: `Xx-d` for
    `Boeing-747`.
    """
    kinds = ["d" if c.isdigit() else "X" if c.isupper() else "x" if c.isalpha() else c for c in word]
    return "".join(kind for at, kind in enumerate(kinds) if not at or kind != kinds[at - 1])
