"""Embeddings: what is hidden is a whole word, and only in training."""

import pytest
import torch

from regard.attention import Sinusoidal
from regard.layers.embed import Embed

B, T, D, P = 37, 41, 6, 0.25


def test_a_hidden_word_keeps_its_place() -> None:
    torch.manual_seed(11)
    embed = Embed(50, D, position=Sinusoidal(D), word_dropout=P)
    tokens_BT, positions_1T = torch.randint(50, (B, T)), torch.arange(T)[None]
    place_1TD = embed.position(positions_1T)
    words_BTD = embed.eval()(tokens_BT, positions_1T) - place_1TD
    seen_BTD = embed.train()(tokens_BT, positions_1T) - place_1TD
    kept_BT = seen_BTD.abs().sum(-1) > 1e-5
    torch.testing.assert_close(seen_BTD, words_BTD * kept_BT[..., None] / (1 - P))
    assert kept_BT.float().mean().item() == pytest.approx(1 - P, abs=0.03)


def test_words_are_seen_unless_told() -> None:
    embed = Embed(50, D).train()
    tokens_BT = torch.randint(50, (B, T))
    assert torch.equal(
        embed(tokens_BT, torch.arange(T)[None]), embed.eval()(tokens_BT, torch.arange(T)[None])
    )


def test_marks_are_tokens_beyond_the_table() -> None:
    embed = Embed(50, D, position=Sinusoidal(D))
    embed.add_marks(3)
    assert embed.marks is not None
    whole = Embed(53, D, position=Sinusoidal(D))
    with torch.no_grad():
        whole.weight.copy_(torch.cat([embed.weight, embed.marks]))
    tokens_BT, positions_1T = torch.randint(53, (B, T)), torch.arange(T)[None]
    out_BTD, same_BTD = embed(tokens_BT, positions_1T), whole(tokens_BT, positions_1T)
    assert torch.equal(out_BTD, same_BTD)
    out_BTD.square().sum().backward()
    same_BTD.square().sum().backward()
    assert whole.weight.grad is not None
    torch.testing.assert_close(torch.cat([embed.weight.grad, embed.marks.grad]), whole.weight.grad)
