"""Which of two scores is better, whichever way a metric points."""

from regard.metrics.metric import Metric


def test_better_is_higher_or_lower() -> None:
    bleu, error = Metric("bleu"), Metric("word_errors", higher=False)
    assert bleu.is_better(2.0, 1.0)
    assert not bleu.is_better(1.0, 1.0)
    assert error.is_better(1.0, 2.0)
    assert not error.is_better(1.0, 1.0)


def test_nearly_as_good_allows_a_share_of_the_best() -> None:
    assert Metric("bleu").is_nearly(95.0, 100.0, 0.05)
    assert not Metric("bleu").is_nearly(94.0, 100.0, 0.05)
    error = Metric("word_errors", higher=False)
    assert error.is_nearly(105.0, 100.0, 0.05)
    assert not error.is_nearly(106.0, 100.0, 0.05)
