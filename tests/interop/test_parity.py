"""The comparison itself: it must see every kind of difference."""

from collections.abc import Sequence

import pytest

from regard.errors import RunError
from regard.interop.parity import Answer, compare, require_parity

TEXTS = [f"text {n}" for n in range(201)]


class Echo:
    """Answers with the text; `changes` says what it answers, or scores, otherwise."""

    name = "echo"

    def __init__(
        self, answers: dict[str, str] | None = None, scores: dict[str, list[float]] | None = None
    ) -> None:
        self.answers, self.scores = answers or {}, scores or {}

    def answer(self, texts: Sequence[str]) -> list[Answer]:
        return [
            Answer(said := self.answers.get(text, text), (len(said),), truncated=text == TEXTS[-1])
            for text in texts
        ]

    def score(self, texts: Sequence[str], answers: Sequence[Answer]) -> list[list[float]]:
        return [self.scores.get(text, [-0.5, -0.25]) for text in texts]


def told(there: Echo) -> tuple[float, float]:
    found = compare(Echo(), there, TEXTS, [len(text) for text in TEXTS], lambda done: None)
    require_parity(found, there.name)
    return found.identical, found.difference


def test_equals_pass() -> None:
    assert told(Echo()) == (1.0, 0.0)


def test_a_near_tie_may_fall_the_other_way() -> None:
    assert told(Echo({"text 1": "other", "text 2": "other"})) == (0.99, 0.0)


def test_what_was_cut_off_is_not_compared_but_its_probability_is() -> None:
    assert told(Echo({TEXTS[-1]: "longer"})) == (1.0, 0.0)
    with pytest.raises(RunError, match=r"100\.0% of the answers are identical.*differ by up to 1,"):
        told(Echo(scores={TEXTS[-1]: [-0.5, -1.25]}))


@pytest.mark.parametrize(
    "there",
    [
        Echo({f"text {n}": "other" for n in range(3)}),
        Echo(scores={"text 7": [-0.5, -0.252]}),
        Echo(scores={"text 7": [-0.5]}),
        Echo(scores={"text 7": [-0.5, float("nan")]}),
    ],
    ids=["answers", "probability", "length", "not a number"],
)
def test_a_difference_fails(there: Echo) -> None:
    with pytest.raises(
        RunError, match=r"echo: the exported model does not answer as the original does .*removed"
    ):
        told(there)


def test_every_text_is_counted_three_times() -> None:
    heard: list[int] = []
    compare(Echo(), Echo(), TEXTS, [1] * len(TEXTS), heard.append)
    assert sum(heard) == 3 * len(TEXTS)
