"""Our GPT against Hugging Face's GPT-2 with our weights copied in: logits, loss, gradients, continuations."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import GPT2Config, GPT2LMHeadModel

from regard.layers.heads import log_probs, smoothed_cross_entropy
from regard.models import GPT, GPTConfig, Widths
from tiny import FIRST, stirred

Shared = Iterator[tuple[list[Tensor], Tensor, bool]]
"""Our weights, stacked on their first axis, the one of theirs that they are, and whether it is transposed."""
DIMS = Widths({"vocab": 23}, {"vocab": 23}, shared=True)


def shared(ours: GPT, theirs: GPT2LMHeadModel) -> Shared:
    yield [ours.embed.weight], theirs.transformer.wte.weight, False
    yield [ours.embed.position.weight], theirs.transformer.wpe.weight, False
    if ours.output is not None:
        yield [ours.output.weight], theirs.lm_head.weight, False
    for mine, other in zip(ours.stack.layers, theirs.transformer.h, strict=True):
        for part, name in ((mine.self_norm, other.ln_1), (mine.ff_norm, other.ln_2)):
            yield [part.weight], name.weight, False
            yield [part.bias], name.bias, False
        linears = [
            ([mine.self.q, mine.self.k, mine.self.v], other.attn.c_attn),
            ([mine.self.o], other.attn.c_proj),
            ([mine.ff.inner], other.mlp.c_fc),
            ([mine.ff.outer], other.mlp.c_proj),
        ]
        for parts, its in linears:
            yield [part.weight for part in parts], its.weight, True
            yield [part.bias for part in parts], its.bias, False
    yield [ours.stack.norm.weight], theirs.transformer.ln_f.weight, False
    yield [ours.stack.norm.bias], theirs.transformer.ln_f.bias, False


def twins(n_layers: int, n_heads: int, *, tied: bool) -> tuple[GPT, GPT2LMHeadModel]:
    sizes = {"d_model": 12, "n_heads": n_heads, "d_ff": 19, "n_layers": n_layers, "max_positions": 11}
    config = GPTConfig(**sizes, dropout=0.0, norm_eps=1e-4, tie_embeddings=tied)
    ours = stirred(config.build(DIMS)).double()
    theirs = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=23,
            n_positions=11,
            n_embd=12,
            n_layer=n_layers,
            n_head=n_heads,
            n_inner=19,
            layer_norm_epsilon=1e-4,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            tie_word_embeddings=tied,
        )
    ).double()
    with torch.no_grad():
        for parts, its, turned in shared(ours, theirs):
            its.copy_(torch.cat(parts).T if turned else torch.cat(parts))
    assert sum(p.numel() for p in ours.parameters()) == sum(p.numel() for p in theirs.parameters())
    return ours, theirs.eval()


@pytest.mark.parametrize(("n_layers", "n_heads"), [(1, 1), (3, 4)])
@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
def test_equals_gpt2(n_layers: int, n_heads: int, tied: bool) -> None:
    ours, theirs = twins(n_layers, n_heads, tied=tied)
    tokens_BT = torch.randint(FIRST, 23, (5, 8))
    read_BT, labels_N = tokens_BT[:, :-1], tokens_BT[:, 1:].flatten()
    expected_NV = theirs(read_BT).logits.flatten(0, 1)
    torch.testing.assert_close(ours(read_BT), expected_NV, rtol=1e-8, atol=1e-8)

    expected_N = torch.log_softmax(expected_NV, -1).gather(1, labels_N[:, None]).squeeze(1)
    told_N = ours(read_BT, None, log_probs(labels_N))
    torch.testing.assert_close(told_N.double(), expected_N, rtol=1e-5, atol=1e-5)  # read in single precision

    expected = F.cross_entropy(expected_NV, labels_N, reduction="sum")
    _, plain = ours(read_BT, None, smoothed_cross_entropy(labels_N, 0.0))
    torch.testing.assert_close(plain, expected, rtol=1e-8, atol=0)


def test_learns_as_gpt2_does() -> None:
    ours, theirs = twins(2, 3, tied=True)
    tokens_BT = torch.randint(FIRST, 23, (5, 8))
    labels_N = tokens_BT[:, 1:].flatten()
    loss, _ = ours(tokens_BT[:, :-1], None, smoothed_cross_entropy(labels_N, 0.0))
    expected = F.cross_entropy(theirs(tokens_BT[:, :-1]).logits.flatten(0, 1), labels_N, reduction="sum")
    loss.backward()
    expected.backward()
    for parts, its, turned in shared(ours, theirs):
        grad = its.grad.T if turned else its.grad
        torch.testing.assert_close(torch.cat([part.grad for part in parts]), grad, rtol=1e-6, atol=1e-8)


@torch.no_grad()
def test_continues_as_gpt2_does() -> None:
    """Greedily, with its cache and left padding, against ours with right padding."""
    ours, theirs = twins(2, 3, tied=True)
    prompts = [torch.randint(FIRST, 23, (n,)) for n in (4, 2, 3)]
    state = ours.start(torch.nn.utils.rnn.pad_sequence(prompts, True), torch.tensor([4, 2, 3]), 11)
    last_B = torch.zeros(3, dtype=torch.long)
    written = []
    for _ in range(6):
        logits_BV, state = ours.step(last_B, state)
        last_B = logits_BV.argmax(-1)
        written.append(last_B)
    for prompt, own in zip(prompts, torch.stack(written, 1), strict=True):
        found = theirs.generate(
            prompt[None], max_new_tokens=6, do_sample=False, pad_token_id=0, eos_token_id=None, bos_token_id=0
        )
        assert found[0, len(prompt) :].tolist() == own.tolist()


def test_base_is_gpt2() -> None:
    """124 M parameters with its vocabulary and its 1,024 positions."""
    with torch.device("meta"):
        model = GPTConfig(preset="base").build(Widths({"vocab": 50257}, {"vocab": 50257}, shared=True))
        twin = GPT2LMHeadModel(GPT2Config())
    assert sum(p.numel() for p in model.parameters()) == sum(p.numel() for p in twin.parameters())
    assert GPTConfig(preset="tiny", d_ff=300).d_ff == 300, "a field given beside the preset wins"
    assert (GPTConfig(preset="small").d_model, GPTConfig(preset="mini").n_layers) == (384, 6)
