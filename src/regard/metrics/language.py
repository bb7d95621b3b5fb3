"""How well a text was foretold: the same number in four wordings."""

import math

import numpy as np

from regard.metrics.resample import Floats, Scores

MOST = 700.0
"""The largest loss whose perplexity is a number."""


def foretold(nats_R: Floats, tokens_R: Floats, characters_R: Floats) -> Scores:
    """`nats`: −log of the probability that was given to the whole text.

    loss: nats a token. probability: the geometric mean of what each token was given, in percent: higher is
    better. perplexity: its reciprocal. bits_per_char: what a character costs, whatever the tokens are.
    """
    loss_R = nats_R / tokens_R
    perplexity_R = np.where(np.isfinite(loss_R), np.exp(np.minimum(loss_R, MOST)), np.inf)
    return {
        "loss": loss_R,
        "probability": 100 / perplexity_R,
        "perplexity": perplexity_R,
        "bits_per_char": nats_R / math.log(2) / np.maximum(1, characters_R),
    }
