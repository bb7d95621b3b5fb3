"""Logits step by step: the same as `logits`, whatever kernel makes them."""

import pytest
import torch

from regard.layers.cpu.output_projection import OutputProjection
from regard.layers.heads import HeadInput, logits


@pytest.mark.parametrize("rows", [1, 3, 64])
@pytest.mark.parametrize("with_bias", [True, False], ids=["bias", "no-bias"])
def test_says_what_logits_says(rows: int, with_bias: bool) -> None:
    weight_VD, hidden_ND = torch.randn(501, 24), torch.randn(rows, 24)
    bias_V = torch.randn(501) if with_bias else None
    project = OutputProjection(weight_VD, bias_V)
    with torch.inference_mode():
        torch.testing.assert_close(project(hidden_ND), logits(HeadInput(hidden_ND, weight_VD, bias_V)))
        other_MD = torch.randn(7, 24)
        torch.testing.assert_close(project(other_MD), logits(HeadInput(other_MD, weight_VD, bias_V)))


def test_what_it_cannot_do_is_done_plainly() -> None:
    weight_VD = torch.randn(31, 6, dtype=torch.float64)
    hidden_ND = torch.randn(5, 6, dtype=torch.float64)
    with torch.inference_mode():
        assert torch.equal(
            OutputProjection(weight_VD)(hidden_ND), logits(HeadInput(hidden_ND, weight_VD, None))
        )
    learning_VD = torch.randn(31, 6, requires_grad=True)
    OutputProjection(learning_VD)(torch.randn(5, 6)).sum().backward()
    assert learning_VD.grad is not None
