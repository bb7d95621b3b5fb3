"""Perplexity of a language model: the same number in four wordings."""

import math

import numpy as np

from regard.metrics.resample import Floats, Scores

MAX_LOSS = 700.0
"""The largest loss whose perplexity is a number."""


def perplexity(nats_R: Floats, tokens_R: Floats, characters_R: Floats) -> Scores:
    """Scores from `nats`, −log of the probability of the whole text.

    loss: nats per token. probability: the geometric mean of the tokens' probabilities, in percent: higher is
    better. perplexity: its reciprocal. bits_per_char: the cost of a character, whatever the tokens are.
    """
    loss_R = nats_R / tokens_R
    perplexity_R = np.where(np.isfinite(loss_R), np.exp(np.minimum(loss_R, MAX_LOSS)), np.inf)
    return {
        "loss": loss_R,
        "probability": 100 / perplexity_R,
        "perplexity": perplexity_R,
        "bits_per_char": nats_R / math.log(2) / np.maximum(1, characters_R),
    }
