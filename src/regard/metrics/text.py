"""BLEU and chrF by sacrebleu, with their signatures, so that the numbers can be compared with others'."""

from collections.abc import Sequence
from typing import Literal

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

BleuTokenizer = Literal["13a", "zh", "char", "intl", "none"]
"""Those of sacrebleu that need no further library and no download."""


def bleu(hypotheses: Sequence[str], references: Sequence[str], tokenize: BleuTokenizer) -> tuple[float, str]:
    """Corpus BLEU, 0 to 100, and the sacrebleu signature."""
    # force: text that is tokenised already is scored as it is, by the recipe's choice
    metric = BLEU(tokenize=tokenize, force=True)
    score = metric.corpus_score(list(hypotheses), [list(references)])
    return float(score.score), str(metric.get_signature())


def chrf(hypotheses: Sequence[str], references: Sequence[str]) -> tuple[float, str]:
    """Corpus chrF, 0 to 100: character n-grams, so it needs no tokeniser."""
    metric = CHRF()
    score = metric.corpus_score(list(hypotheses), [list(references)])
    return float(score.score), str(metric.get_signature())
