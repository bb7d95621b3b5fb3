"""BLEU and chrF by sacrebleu, with their signatures, so that the numbers can be compared with others'.

sacrebleu counts each pair of sentences and scores the sum of the counts. The two steps are apart here, as in
its own tests of significance: counts made once are scored for every draw.
"""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Literal

import numpy as np
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from regard.metrics.resample import Floats

BleuTokenizer = Literal["13a", "zh", "char", "intl", "none"]
"""Tokenizers of sacrebleu that need no further library and no download."""

CorpusMetric = BLEU | CHRF
SentenceCounts = list[list[int]]
"""Counts of every pair of sentences."""


def bleu(tokenize: BleuTokenizer) -> CorpusMetric:
    """Corpus BLEU, 0 to 100."""
    # force: text that is tokenised already is scored as it is, by the recipe's choice
    return BLEU(tokenize=tokenize, force=True)


def chrf() -> CorpusMetric:
    """Corpus chrF, 0 to 100: character n-grams, so it needs no tokeniser."""
    return CHRF()


def counted(metric: CorpusMetric, hypotheses: Sequence[str], references: Sequence[str]) -> SentenceCounts:
    return counted_of_many(metric, hypotheses, [[reference] for reference in references])


def counted_of_many(
    metric: CorpusMetric, hypotheses: Sequence[str], references: Sequence[Sequence[str]]
) -> SentenceCounts:
    """Counts against all references of each hypothesis, which may have more or fewer of them."""
    columns = [list(column) for column in zip_longest(*references)]
    counts: SentenceCounts = metric._extract_corpus_statistics(list(hypotheses), columns)
    return counts


def scored(metric: CorpusMetric, sums_RS: Floats) -> Floats:
    """The score of each row of summed counts."""
    scores = (metric._compute_score_from_stats(sums).score for sums in sums_RS.tolist())
    return np.fromiter(scores, np.float64, len(sums_RS))


def signature(metric: CorpusMetric, numbers: Sequence[int] = (1,)) -> str:
    """Sacrebleu's signature for these numbers of references."""
    nothing = ["" for _ in numbers]
    metric.corpus_score(nothing, [list(column) for column in zip_longest(*([""] * n for n in numbers))])
    return str(metric.get_signature())  # there is none before something was scored
