"""N-gram regression against scikit-learn used by hand, and against what a planted rule needs."""

import builtins
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression as SklearnRegression

from regard.baselines import scikit
from regard.baselines.ngrams import NgramRegression, parts_of
from regard.baselines.scikit import WORD, LogisticRegression, Ngrams
from regard.errors import RunError
from regard.fields.text import Text
from regard.files.row import Row
from regard.tasks import (
    Classify,
    ClassifyConfig,
    ClassifyPair,
    ClassifyPairConfig,
    Multilabel,
    MultilabelConfig,
    Relation,
    RelationConfig,
)
from regard.text.entity_marks import read_marked
from tiny import WORDS

RNG = random.Random(7)


def row(number: int, **cells: Any) -> Row:
    return Row(cells, "f", number)


def sentence(*more: str) -> str:
    words = [*RNG.choices(WORDS[3:], k=5), *more]
    RNG.shuffle(words)
    return " ".join(words)


def accuracy(task: Any, train: Sequence[Row], asked: Sequence[Row]) -> float:
    examples = task.encode(asked)
    metrics: dict[str, float] = task.tally(
        examples, NgramRegression.fit(task, train).answers(examples)
    ).metrics()
    return metrics["accuracy"]


def planted(n: int) -> list[Row]:
    return [row(i, text=sentence(*([WORDS[0]] * (i % 2))), label="yes" if i % 2 else "no") for i in range(n)]


def test_weights_and_answers_are_scikit_learns() -> None:
    train, asked = planted(61), planted(23)
    task = Classify.fit(ClassifyConfig(), train)
    texts, labels = [one.cells["text"] for one in train], [one.cells["label"] for one in train]
    words = TfidfVectorizer(ngram_range=(1, 2), token_pattern=WORD, sublinear_tf=True).fit(texts)
    characters = TfidfVectorizer(ngram_range=(1, 5), analyzer="char_wb", sublinear_tf=True).fit(texts)

    def weights(rows: Sequence[Row]) -> Any:
        given = [one.cells["text"] for one in rows]
        return np.hstack([one.transform(given).toarray() for one in (words, characters)])

    ours = Ngrams(texts).weights([one.cells["text"] for one in asked])
    np.testing.assert_allclose(ours.toarray(), weights(asked), rtol=1e-5, atol=1e-7)
    theirs = SklearnRegression(C=10.0, max_iter=200).fit(weights(train), labels).predict(weights(asked))
    assert list(NgramRegression.fit(task, train).answers(task.encode(asked))) == theirs.tolist()


def test_a_planted_word_is_found() -> None:
    train = planted(83)
    assert accuracy(Classify.fit(ClassifyConfig(), train), train, planted(41)) == 100


@pytest.mark.parametrize("exact", [True, False])
def test_many_classes_take_seconds_and_are_learnt(exact: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scikit, "MOST_PRODUCTS", 1e12 if exact else 0)
    names = [f"n{number}" for number in range(13)]
    rows = [row(i, text=f"{sentence()} {names[i % 13]}x", label=names[i % 13]) for i in range(13 * 17)]
    task = Classify.fit(ClassifyConfig(), rows)
    assert accuracy(task, rows[: 13 * 13], rows[13 * 13 :]) == 100


def test_of_a_pair_what_both_texts_share_tells() -> None:
    """No single n-gram says whether the second text repeats a word of the first."""

    def pairs(n: int) -> list[Row]:
        rows = []
        for i in range(n):
            first = RNG.sample(WORDS, 4)
            others = sorted(set(WORDS) - {*first})
            second = [*RNG.sample(others, 2), RNG.choice(first if i % 2 else others)]
            rows.append(row(i, text=" ".join(first), second=" ".join(second), label="yes" if i % 2 else "no"))
        return rows

    train = pairs(397)
    task = ClassifyPair.fit(ClassifyPairConfig(), train)
    assert accuracy(task, train, pairs(101)) > 80


def test_of_several_labels_each_is_decided_by_itself() -> None:
    def rows(n: int) -> list[Row]:
        made = []
        for i in range(n):
            marks = [word for bit, word in enumerate(WORDS[:3]) if i >> bit & 1]
            made.append(row(i, text=sentence(*marks), label=",".join(marks)))
        return made

    train = rows(160)
    task = Multilabel.fit(MultilabelConfig(), train)
    assert accuracy(task, train, rows(40)) > 90
    strict = Multilabel.fit(MultilabelConfig(threshold=0.999), train)
    assert {*NgramRegression.fit(strict, train).answers(strict.encode(train))} == {()}


def test_a_relation_is_read_off_what_stands_between() -> None:
    def rows(n: int) -> list[Row]:
        between, made = ("made", "inside"), []
        for i in range(n):
            one, other, distractor = RNG.choice(WORDS), RNG.choice(WORDS), between[RNG.randrange(2)]
            marks = ("e1", "e2") if i % 3 else ("e2", "e1")
            first, second = (
                f"<{mark}>{word}</{mark}>" for mark, word in zip(marks, (one, other), strict=True)
            )
            text = f"{distractor} {first} {between[i % 2]} {second} {distractor}"
            made.append(row(i, text=text, label=f"{between[i % 2]}({','.join(marks)})"))
        return made

    train = rows(211)
    task = Relation.fit(RelationConfig(), train)
    assert accuracy(task, train, rows(53)) == 100


def test_the_parts_of_a_marked_sentence() -> None:
    marked = read_marked("a <e2>b c</e2> d <e1>e</e1> f", "f:1")
    assert parts_of(marked) == ["e2 e1 a b c d e f", "e", "e2 e1  d ", "b c"]


def test_texts_without_any_ngram() -> None:
    rows = [row(i, text=" ", label="yes" if i % 3 else "no") for i in range(9)]
    assert (
        LogisticRegression(
            Ngrams([" "] * 9).weights([" "] * 9), [one.cells["label"] for one in rows]
        ).answers(Ngrams([" "] * 9).weights([" "] * 2))
        == ["yes"] * 2
    )


def test_a_sample_with_one_label_answers_with_it() -> None:
    rows = planted(20)[::2]
    task = Classify.fit(ClassifyConfig(), planted(20))
    assert {*NgramRegression.fit(task, rows).answers(task.encode(rows))} == {"no"}


def test_it_suits_text_alone() -> None:
    task = Classify.fit(ClassifyConfig(), planted(9))
    assert NgramRegression.suits(task)

    class Picture(Text):
        reads = "pixels"

    task.given = {"image": Picture()}
    assert not NgramRegression.suits(task)


def test_without_scikit_learn_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    true_import = builtins.__import__

    def missing(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("sklearn"):
            raise ImportError(name)
        return true_import(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(
        RunError, match=r"this needs scikit-learn; install it with: pip install 'regard\[baselines\]'"
    ):
        NgramRegression.fit(Classify.fit(ClassifyConfig(), planted(9)), planted(9))
