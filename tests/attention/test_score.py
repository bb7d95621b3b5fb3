"""Scores by their papers' formulas; what they tell the fused kernel."""

import pytest
import torch

from regard.attention import Additive, Dot, General, ScaledDot, attend
from regard.linear import Linear

B, H, Q, K, E = 2, 3, 5, 7, 11


def test_additive_of_a_split_matrix_is_additive_of_the_pair() -> None:
    """vᵀ tanh(W [q; k]) = vᵀ tanh(W_q q + W_k k) with W = [W_q W_k]."""
    d_query, d_key = 13, 17
    joint = Linear(d_query + d_key, E)
    W_q, W_k = joint.weight.split([d_query, d_key], dim=1)
    q_BQD, k_BKD = torch.randn(B, Q, d_query), torch.randn(B, K, d_key)
    score = Additive(E)

    pairs_BQKD = torch.cat(
        [q_BQD[:, :, None].expand(-1, -1, K, -1), k_BKD[:, None].expand(-1, Q, -1, -1)], dim=-1
    )
    expected_BQK = torch.tanh(joint(pairs_BQKD)) @ score.v_HE[0]

    scores = score((q_BQD @ W_q.T + joint.bias)[:, None], (k_BKD @ W_k.T)[:, None])
    torch.testing.assert_close(scores, expected_BQK[:, None], rtol=1e-5, atol=1e-6)


def test_each_head_has_its_own_parameters() -> None:
    q, k = torch.randn(B, 1, Q, E).expand(-1, H, -1, -1), torch.randn(B, 1, K, E).expand(-1, H, -1, -1)
    for score in (Additive(E, H), General(E, E, H)):
        scores_BHQK = score(q, k)
        assert scores_BHQK.shape == (B, H, Q, K)
        assert not torch.allclose(scores_BHQK[:, 0], scores_BHQK[:, 1])


def test_general_with_an_identity_is_dot() -> None:
    q, k = torch.randn(B, H, Q, E), torch.randn(B, H, K, E)
    general = General(E, E, H)
    with torch.no_grad():
        general.weight.copy_(torch.eye(E))
    torch.testing.assert_close(general(q, k), Dot()(q, k))
    torch.testing.assert_close(ScaledDot()(q, k) * E**0.5, Dot()(q, k), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "score", [ScaledDot(), Dot(), General(E, E, H), Additive(E, H)], ids=lambda s: type(s).__name__
)
def test_as_dot_tells_the_truth(score: ScaledDot | Dot | General | Additive) -> None:
    q, k = torch.randn(B, H, Q, E), torch.randn(B, H, K, E)
    disguise = score.as_dot(q)
    if disguise is None:
        assert isinstance(score, Additive)
        return
    query, scale = disguise
    torch.testing.assert_close(
        score(q, k), scale * torch.einsum("bhqe,bhke->bhqk", query, k), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("score", [General(E, E, H), Additive(E, H)], ids=lambda s: type(s).__name__)
def test_parameters_learn_and_can_be_drawn_anew(score: General | Additive) -> None:
    q, k, v = (torch.randn(B, H, n, E) for n in (Q, K, K))
    attend(q, k, v, score=score).square().sum().backward()
    (parameter,) = score.parameters()
    assert parameter.grad is not None
    assert parameter.grad.any()
    before = parameter.detach().clone()
    score.reset_parameters()
    assert not torch.equal(parameter, before)
