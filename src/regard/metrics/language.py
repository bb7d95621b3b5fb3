"""How well a text was foretold: the same number in four wordings."""

import math

MOST = 700.0
"""The largest loss whose perplexity is a number."""


def foretold(nats: float, n_tokens: int, n_characters: int) -> dict[str, float]:
    """`nats`: −log of the probability that was given to the whole text.

    loss: nats a token. probability: the geometric mean of what each token was given, in percent: higher is
    better. perplexity: its reciprocal. bits_per_char: what a character costs, whatever the tokens are.
    """
    loss = nats / n_tokens
    perplexity = math.exp(min(loss, MOST)) if math.isfinite(loss) else math.inf
    return {
        "loss": loss,
        "probability": 100 / perplexity,
        "perplexity": perplexity,
        "bits_per_char": nats / math.log(2) / max(1, n_characters),
    }
