"""One sentence says how a model stands beside the best baseline, whichever way its metric goes."""

import pytest

from regard.metrics.metric import Metric
from regard.metrics.resample import Difference
from regard.runs.baselines import by_chance, verdict

SURE, UNSURE = (Difference(value=-1.0, interval=(-2.0, -0.5), p=p) for p in (0.001, 0.4))


@pytest.mark.parametrize(
    ("higher", "score", "apart", "words"),
    [
        (True, 9.0, SURE, "better than the baseline naive (x 8.00; +1.00, p = 0.0010)"),
        (True, 7.0, SURE, "worse than the baseline naive (x 8.00; -1.00, p = 0.0010): train longer"),
        (False, 7.0, SURE, "better than the baseline naive (x 8.00; -1.00, p = 0.0010)"),
        (False, 9.0, SURE, "worse than the baseline naive (x 8.00; +1.00, p = 0.0010): train longer"),
        (False, 7.0, UNSURE, "no better than the baseline naive (x 8.00; -1.00, p = 0.4000): train longer"),
        (True, 8.0, None, "no better than the baseline naive (x 8.00; +0.00): train longer"),
        (True, 9.0, None, "better than the baseline naive (x 8.00; +1.00)"),
    ],
)
def test_the_sentence(higher: bool, score: float, apart: Difference | None, words: str) -> None:
    assert verdict(Metric("x", higher), "naive", score, 8.0, apart, "train longer") == words


def test_chance() -> None:
    assert [by_chance(apart) for apart in (SURE, UNSURE, None)] == [False, True, False]
