"""The numpy that reads tags.json says what the CRF says."""

import json

import pytest
import torch

from regard.interop.tag_parity import CRFScores
from regard.layers.crf import CRF
from regard.models.tagger import allowed
from regard.text.sanitize import finite
from tiny import TAGS


def read_again(crf: CRF) -> CRFScores:
    told = {name: part.tolist() for name, part in zip(("begin", "step", "end"), crf.weights(), strict=True)}
    chain = CRFScores.of(json.loads(json.dumps(finite(told), allow_nan=False)))
    assert chain is not None
    return chain


@pytest.mark.parametrize("scheme", [True, False], ids=["BIO", "any tags"])
@pytest.mark.parametrize("n_words", [1, 2, 7, 1009])
def test_best_tags_and_their_probability(n_words: int, scheme: bool) -> None:
    crf = CRF(len(TAGS), allowed(TAGS) if scheme else None)
    scores_NC = torch.randn(n_words, len(TAGS)) * 9
    with torch.no_grad():
        keep_1N = torch.ones(1, n_words, dtype=torch.bool)
        best_1N = crf.best(scores_NC[None], keep_1N)
        cost_1 = crf(scores_NC[None].double(), keep_1N, best_1N)
    chain = read_again(crf)
    assert chain.best(scores_NC.numpy()) == best_1N[0].tolist()
    told = chain.log_prob(scores_NC.numpy(), best_1N[0].tolist())
    assert told == pytest.approx(-cost_1.item(), abs=1e-6)


def test_without_a_crf_there_is_no_chain() -> None:
    assert CRFScores.of(None) is None
