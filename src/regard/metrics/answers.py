"""Exact match and F1 of answers, as the SQuAD script (v2) defines them.

Case, punctuation, English articles and white space do not count. A question may have several right answers:
the best score holds. A question without an answer has the right answer "".
"""

import re
import string
from collections import Counter
from collections.abc import Sequence

ARTICLE = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalised(answer: str) -> str:
    """The words of an answer that count."""
    return " ".join(ARTICLE.sub(" ", answer.lower().translate(PUNCTUATION)).split())


def exact(answer: str, right: str) -> float:
    return float(normalised(answer) == normalised(right))


def overlap(answer: str, right: str) -> float:
    """F1 of words."""
    predicted, gold = normalised(answer).split(), normalised(right).split()
    if not predicted or not gold:
        return float(predicted == gold)
    common = (Counter(predicted) & Counter(gold)).total()
    return 2 * common / (len(predicted) + len(gold))


def scores(answer: str, right: Sequence[str]) -> dict[str, float]:
    """The scores of one answer, the best over all right answers that have words."""
    references = [reference for reference in right if normalised(reference)] or [""]
    return {
        "f1": max(overlap(answer, reference) for reference in references),
        "em": max(exact(answer, reference) for reference in references),
    }
