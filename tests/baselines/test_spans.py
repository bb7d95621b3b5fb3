"""Spans of a context: what stands nearest to the question's words, word by word against the definition."""

import math
import random
from collections.abc import Sequence
from typing import Any

import pytest

from regard.baselines.spans import NearestSpan, NoAnswer, RandomSpan
from regard.files.row import Row
from regard.tasks import Answer, AnswerConfig
from tiny import WORDS

RNG = random.Random(17)


def row(question: str, context: str, answer: str, number: int = 1) -> Row:
    return Row({"question": question, "context": context, "answer": answer}, "f", number)


TRAIN = [
    row("where is ash?", "Ash in the lowland, elm in the moor.", "lowland"),
    row("where is elm?", "Ash in the lowland, elm in the moor.", "moor"),
    row("who sails?", "Old Tom sails, and old Ann sings.", "Old Tom", 2),
]


@pytest.fixture(scope="module")
def task() -> Answer:
    return Answer.fit(AnswerConfig(), TRAIN)


def test_the_words_next_to_the_rarest_words_answer(task: Answer) -> None:
    baseline = NearestSpan.fit(task, TRAIN)
    assert baseline.n_words == 1
    assert baseline.rarity["in"] == pytest.approx(math.log(2) + 0.1)
    asked = task.encode(
        [row("where is Larch?", "In the east stands oak; larch, westward, and oak again.", "")]
    )
    assert list(baseline.answers(asked)) == ["oak"]


def by_definition(question: Sequence[str], context: Sequence[str], n: int, rarity: dict[str, float]) -> int:
    most = max(rarity.values())

    def score(start: int) -> float:
        total = 0.0
        for word in {*question} & {*context}:
            distances = [
                0 if start <= at < start + n else start - at if at < start else at - (start + n - 1)
                for at, other in enumerate(context)
                if other == word
            ]
            weight = rarity.get(word, most)
            total += weight / (1 + min(distances)) if min(distances) else -weight
        return total

    return max(range(len(context) - n + 1), key=lambda start: (round(score(start), 9), -start))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_it_is_its_definition(task: Answer, n: int) -> None:
    baseline = NearestSpan.fit(task, TRAIN)
    for _ in range(40):
        context, question = RNG.choices(WORDS, k=RNG.randint(n, 12)), RNG.choices(WORDS, k=3)
        assert baseline.first(question, context, n) == by_definition(question, context, n, baseline.rarity)


def test_a_random_span_is_one_of_the_context_and_stays(task: Answer) -> None:
    asked = task.encode([row(f"who is {word}?", "one two three four five six", "") for word in WORDS])
    baseline = RandomSpan.fit(task, TRAIN)
    answers: Any = baseline.answers(asked)
    assert len({*answers}) > 1
    assert {*answers} <= {"one", "two", "three", "four", "five", "six"}
    assert list(baseline.answers(asked)) == list(answers)


def test_contexts_may_be_short_or_say_nothing(task: Answer) -> None:
    baseline = NearestSpan(5, {"a": 1.0})
    asked = task.encode([row("who?", "Tom sails", ""), row("who?", "…", "")])
    assert list(baseline.answers(asked)) == ["Tom sails", ""]


def test_chinese_words_are_characters(task: Answer) -> None:
    train = [row("谁来了？", "昨天张三来了。", "张三")]
    baseline = NearestSpan.fit(task, train)
    assert baseline.n_words == 2
    assert list(baseline.answers(task.encode([row("谁走了？", "今天李四走了。", "")]))) == ["李四"]


def test_no_answer_suits_where_some_have_none(task: Answer) -> None:
    assert not NoAnswer.suits(task)
    some = Answer.fit(AnswerConfig(), [*TRAIN, row("who?", "Tom sails", "")])
    assert NoAnswer.suits(some)
    examples = some.encode([row("who?", "Tom sails", ""), row("who?", "Tom sails", "Tom")])
    assert some.tally(examples, NoAnswer.fit(some, TRAIN).answers(examples)).metrics()["em"] == 50
