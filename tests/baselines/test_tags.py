"""The dictionary against counts; the CRF against all paths by its own weights, and on rules to be learnt."""

import builtins
import math
import random
from itertools import pairwise, product
from typing import Any

import pycrfsuite
import pytest

from regard.baselines import tags as module
from regard.baselines.tags import Dictionary, FeatureCRF, features, shape
from regard.errors import RunError
from regard.files.row import Row
from regard.tasks import Tag, TagConfig

RNG = random.Random(11)


def row(text: str, tags: str, number: int = 1) -> Row:
    return Row({"text": text, "tags": tags}, "f", number)


def fitted(rows: list[Row]) -> Tag:
    return Tag.fit(TagConfig(), rows)


def test_a_word_has_its_commonest_tag_and_an_unseen_one_that_of_its_ending() -> None:
    rows = [
        row("walking talking red", "V V A"),
        row("red walking bed", "A N N"),
        row("red", "N"),
        row("walking", "V"),
    ]
    task = fitted(rows)
    found = Dictionary.fit(task, rows).answers(task.encode([row("red walking singing fed zzz", "A A A A A")]))
    assert list(found) == [("A", "V", "V", "A", "V")], "fed: of red and bed the first; zzz: most words are V"


def test_the_empty_ending_knows_every_word() -> None:
    task = fitted([row("a b", "X Y"), row("c", "X")])
    dictionary = Dictionary.fit(task, [row("a b", "X Y"), row("c", "X")])
    assert dictionary.tag("") == "X"
    assert dictionary.tag("一") == "X"


def chained(n: int) -> list[Row]:
    """The tag of `it` depends on the tag before, and that on a word further left."""
    rows = []
    for number in range(n):
        begin = RNG.choice(["good", "bad"])
        length = RNG.randint(1, 5)
        tag = "B-G" if begin == "good" else "B-B"
        words, tags = [begin] + ["it"] * length, [tag] + [tag.replace("B-", "I-")] * length
        rows.append(row(" ".join(words), " ".join(tags), number))
    return rows


def test_the_crf_learns_what_needs_a_chain() -> None:
    train, asked = chained(80), chained(30)
    task = fitted(train)
    examples = task.encode(asked)

    def f1(baseline: Any) -> float:
        return task.tally(examples, baseline.fit(task, train).answers(examples)).metrics()["f1"]

    assert f1(FeatureCRF) == 100
    assert f1(Dictionary) < 100


def test_its_answer_is_the_best_of_all_paths() -> None:
    """By the weights that CRFsuite tells, path by path."""
    train = chained(20)
    task = fitted(train)
    crf = FeatureCRF.fit(task, train)
    info = crf._tagger.info()
    for words in (["good", "it", "it"], ["it", "bad", "it", "new"], ["good"]):
        told = features(words)

        def score(path: tuple[str, ...], told: list[list[str]] = told) -> float:
            states = sum(
                info.state_features.get((f, tag), 0.0) for fs, tag in zip(told, path, strict=True) for f in fs
            )
            return float(states + sum(info.transitions.get(pair, 0.0) for pair in pairwise(path)))

        best = max(product(task.labels, repeat=len(words)), key=score)
        assert math.isclose(score(tuple(crf._tagger.tag(told))), score(best), rel_tol=1e-6)


def test_rows_are_bounded_by_words_and_tags(monkeypatch: pytest.MonkeyPatch) -> None:
    train = chained(40)
    task = fitted(train)
    monkeypatch.setattr(module, "MOST_PRODUCTS", 8 * len(task.labels) ** 2)
    seen: list[list[str]] = []

    class Trainer(pycrfsuite.Trainer):  # type: ignore[misc]
        def append(self, xseq: Any, yseq: Any, group: int = 0) -> None:
            seen.append(yseq)
            super().append(xseq, yseq, group)

    monkeypatch.setattr(pycrfsuite, "Trainer", Trainer)
    FeatureCRF.fit(task, train)
    assert 0 < sum(map(len, seen)) <= 8 + 6


def test_features_look_left_and_right() -> None:
    first, second = features(["Paris", "2026!"])
    assert {
        "word=paris",
        "exactly=Paris",
        "begins=par",
        "ends=ris",
        "shape=Xx",
        "before=<s>",
        "after=2026!",
    } <= {*first}
    assert {"before=paris", "after=</s>", "before:shape=Xx", "shape=d!"} <= {*second}
    assert shape("Boeing-747") == "Xx-d"
    assert features([]) == []


def test_without_crfsuite_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    true_import = builtins.__import__

    def missing(name: str, *rest: Any, **more: Any) -> Any:
        if name == "pycrfsuite":
            raise ImportError(name)
        return true_import(name, *rest, **more)

    train = chained(5)
    task = fitted(train)
    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(
        RunError, match=r"this needs python-crfsuite; install it with: pip install 'regard\[baselines\]'"
    ):
        FeatureCRF.fit(task, train)
