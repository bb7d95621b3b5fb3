"""What a request asks, by the fields of its kind."""

from typing import Any

import pytest

from regard.serve.asked import asked
from regard.serve.request_error import RequestError

PAIR = ("question", "context")


@pytest.mark.parametrize(
    ("given", "names", "expected"),
    [
        ({"text": "a"}, ("text",), ["a"]),
        ({"text": ["a", "b"]}, ("text",), ["a", "b"]),
        ({"text": "a", "question": None}, ("text",), ["a"]),
        ({"question": "q", "context": "c"}, PAIR, [{"question": "q", "context": "c"}]),
        (
            {"question": ["q", "r"], "context": "c"},
            PAIR,
            [{"question": "q", "context": "c"}, {"question": "r", "context": "c"}],
        ),
        (
            {"question": ["q", "r"], "context": ["c", "d"]},
            PAIR,
            [{"question": "q", "context": "c"}, {"question": "r", "context": "d"}],
        ),
    ],
)
def test_texts_and_pairs(given: dict[str, Any], names: tuple[str, ...], expected: list[Any]) -> None:
    assert asked(given, names) == expected


@pytest.mark.parametrize(
    ("given", "names", "code", "said"),
    [
        ({"text": "a", "question": None, "context": None}, PAIR, "other_fields", "text: this model is asked"),
        (
            {"question": "q", "context": None},
            PAIR,
            "other_fields",
            "context: missing; this model is asked with question and context",
        ),
        ({"question": ["q", " "], "context": "c"}, PAIR, "empty_text", "question 2 of 2 is blank"),
        ({"question": ["q", "r"], "context": ["c"]}, PAIR, "unequal", "question and context must be lists"),
    ],
)
def test_what_does_not_fit_is_refused(
    given: dict[str, Any], names: tuple[str, ...], code: str, said: str
) -> None:
    with pytest.raises(RequestError) as refused:
        asked(given, names)
    assert refused.value.code == code
    assert said in refused.value.message
