"""The tally of dialogue: what replies cost, how near they come to those of people, how varied they are."""

from dataclasses import dataclass

import numpy as np

from regard.metrics.language import perplexity
from regard.metrics.resample import Floats, Scores, unweighted
from regard.metrics.tally import Columns
from regard.metrics.text import BleuTokenizer, SentenceCounts, bleu, counted_of_many, scored, signature
from regard.metrics.variety import distinct

BY_TOKEN = ("loss", "probability", "perplexity")


@dataclass(frozen=True)
class ReplyTally(Columns):
    """The text, cost and tokens of every reply in the data; and beside the first reply to a context the
    model's answer, all references, and what BLEU counts in these.
    """

    tokenize: BleuTokenizer
    vocabulary: str
    """Its digest."""
    replies: list[str]
    nats: list[float]
    tokens: list[int]
    answers: list[str]
    references: list[list[str]]
    """Empty beside the other replies, which are not asked for."""
    bleu: SentenceCounts

    @classmethod
    def of(
        cls,
        tokenize: BleuTokenizer,
        vocabulary: str,
        replies: list[str],
        nats: list[float],
        tokens: list[int],
        answers: list[str],
        references: list[list[str]],
    ) -> "ReplyTally":
        counts = counted_of_many(bleu(tokenize), answers, [own or [""] for own in references])
        counts = [own if known else [0] * len(own) for own, known in zip(counts, references, strict=True)]
        return cls(tokenize, vocabulary, replies, nats, tokens, answers, references, counts)

    @property
    def n_tokens(self) -> int:
        return sum(self.tokens)

    @property
    def truth(self) -> list[str]:
        return self.replies

    def weighed(self, weights_RN: Floats) -> Scores:
        nats_R, tokens_R = (weights_RN @ np.array([self.nats, self.tokens]).T).T
        cost = perplexity(nats_R, tokens_R, tokens_R)
        costs = {name: cost[name] for name in BY_TOKEN}
        return costs | {"bleu": scored(bleu(self.tokenize), weights_RN @ np.array(self.bleu, np.float64))}

    def metrics(self) -> dict[str, float]:
        """Variety has no interval: what is drawn twice was not answered twice."""
        return unweighted(self) | distinct(self._answered)

    @property
    def _answered(self) -> list[str]:
        return [text for text, known in zip(self.answers, self.references, strict=True) if known]

    def signatures(self) -> dict[str, str]:
        """Costs of tokens are comparable within one vocabulary."""
        numbers = sorted({len(own) for own in self.references if own})
        by_token = dict.fromkeys(BY_TOKEN, f"tokens of the vocabulary {self.vocabulary}")
        return by_token | ({"bleu": signature(bleu(self.tokenize), numbers)} if numbers else {})

    def by_kind(self) -> dict[str, dict[str, float]]:
        """Variety of the replies, beside that of people's replies."""
        people = [own[0] for own in self.references if own]
        return {"replies": distinct(self._answered), "references": distinct(people)} if people else {}
