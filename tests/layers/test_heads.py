"""Logits step by step: the same as `logits`, whatever kernel makes them."""

import pytest
import torch

from regard.layers.heads import Output, Say, logits


@pytest.mark.parametrize("rows", [1, 3, 64])
@pytest.mark.parametrize("with_bias", [True, False], ids=["bias", "no-bias"])
def test_says_what_logits_says(rows: int, with_bias: bool) -> None:
    weight_VD, hidden_ND = torch.randn(501, 24), torch.randn(rows, 24)
    bias_V = torch.randn(501) if with_bias else None
    say = Say(weight_VD, bias_V)
    with torch.inference_mode():
        torch.testing.assert_close(say(hidden_ND), logits(Output(hidden_ND, weight_VD, bias_V)))
        other_MD = torch.randn(7, 24)
        torch.testing.assert_close(say(other_MD), logits(Output(other_MD, weight_VD, bias_V)))


def test_what_it_cannot_do_is_done_plainly() -> None:
    weight_VD = torch.randn(31, 6, dtype=torch.float64)
    hidden_ND = torch.randn(5, 6, dtype=torch.float64)
    with torch.inference_mode():
        assert torch.equal(Say(weight_VD)(hidden_ND), logits(Output(hidden_ND, weight_VD, None)))
    learning_VD = torch.randn(31, 6, requires_grad=True)
    Say(learning_VD)(torch.randn(5, 6)).sum().backward()
    assert learning_VD.grad is not None
