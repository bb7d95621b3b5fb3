"""Exact match and F1 of answers, as the SQuAD script (v2) defines them.

Case, punctuation, English articles and white space do not count. A question may have several right answers:
the best score holds. To a question that has none the right answer is an empty one.
"""

import re
import string
from collections import Counter
from collections.abc import Sequence

ARTICLE = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)


def plain(answer: str) -> str:
    """What of an answer counts."""
    return " ".join(ARTICLE.sub(" ", answer.lower().translate(PUNCTUATION)).split())


def exact(answer: str, right: str) -> float:
    return float(plain(answer) == plain(right))


def overlap(answer: str, right: str) -> float:
    """F1 of words."""
    said, wanted = plain(answer).split(), plain(right).split()
    if not said or not wanted:
        return float(said == wanted)
    common = (Counter(said) & Counter(wanted)).total()
    return 2 * common / (len(said) + len(wanted))


def scores(answer: str, right: Sequence[str]) -> dict[str, float]:
    """Of one answer: the best over all right ones of which anything counts."""
    counting = [one for one in right if plain(one)] or [""]
    return {
        "f1": max(overlap(answer, one) for one in counting),
        "em": max(exact(answer, one) for one in counting),
    }
