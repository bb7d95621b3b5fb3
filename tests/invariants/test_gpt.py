"""A text is continued alike alone and among others, step by step and as a whole, and beyond its reach."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from regard.decode import Rules, Sampler, beam, greedy, hypotheses, sample
from regard.models import GPT, GPTConfig
from tiny import FIRST, JOINT, gpt, stirred

KINDS = {
    position: gpt(position=position)
    for position in ("learned", "rotary", "sinusoidal", "relative", "alibi", "none")
} | {"grouped": gpt(n_kv_heads=1, norm="post"), "untied": gpt(tie_embeddings=False)}
REACHING = {
    f"{name}-{position}": gpt(position=position, reach=reach)
    for name, position, reach in [
        ("window", "rotary", {"kind": "window", "left": 3}),
        ("dilated", "alibi", {"kind": "window", "left": 2, "dilation": 2}),
        ("global", "relative", {"kind": "window", "left": 3, "n_global": 2}),
        ("window", "learned", {"kind": "window", "left": 3}),
        ("chunks", "sinusoidal", {"kind": "chunks", "size": 2}),
        ("segments", "relative", {"kind": "segments", "size": 3}),
        ("linear", "rotary", {"kind": "linear", "size": 3}),
        ("linear", "none", {"kind": "linear", "feature": "softmax", "size": 2}),
        ("linear", "learned", {"kind": "linear", "size": 2}),
        ("landmarks", "rotary", {"kind": "landmarks", "size": 2, "n_chunks": 1}),
    ]
}
LENGTHS = (7, 2, 5, 1)
REACH = 11

each = pytest.mark.parametrize("config", KINDS.values(), ids=KINDS.keys())
every = pytest.mark.parametrize("config", (KINDS | REACHING).values(), ids=(KINDS | REACHING).keys())


def made(config: GPTConfig) -> tuple[GPT, Tensor, Tensor]:
    model = stirred(config.build(JOINT))
    assert isinstance(model, GPT)
    return model, torch.randint(FIRST, JOINT.target["vocab"], (len(LENGTHS), 23)), torch.tensor(LENGTHS)


def alone(texts_BT: Tensor, i: int, length: int | None = None) -> tuple[Tensor, Tensor]:
    length = length or LENGTHS[i]
    return texts_BT[i : i + 1, :length], torch.tensor([length])


@every
@torch.no_grad()
def test_steps_after_prompts_of_any_length_are_the_whole(config: GPTConfig) -> None:
    model, texts_BT, lengths_B = made(config)
    state = model.start(texts_BT[:, : max(LENGTHS)], lengths_B, REACH)
    given_B = torch.full((len(LENGTHS),), 2)
    for place in range(4):
        logits_BV, state = model.step(given_B, state)
        for i, length in enumerate(LENGTHS):
            whole_TV = model(alone(texts_BT, i, length + place)[0])
            torch.testing.assert_close(logits_BV[i], whole_TV[-1], rtol=1e-5, atol=1e-5)
        given_B = texts_BT.gather(1, lengths_B[:, None] + place).squeeze(1)


@each
@torch.no_grad()
def test_beyond_its_reach_a_row_has_read_its_newer_half_again(config: GPTConfig) -> None:
    """Each at its own time: what it says is what the model says to the text from there on."""
    model, texts_BT, lengths_B = made(config)
    state = model.start(texts_BT[:, : max(LENGTHS)], lengths_B, REACH)
    given_B = torch.full((len(LENGTHS),), 2)
    begins, times = [0] * len(LENGTHS), set()
    for place in range(23 - max(LENGTHS)):
        logits_BV, state = model.step(given_B, state)
        for i, length in enumerate(LENGTHS):
            if length + place - begins[i] > REACH:
                begins[i] = length + place - 1 - REACH // 2
                times.add(place)
            whole_TV = model(texts_BT[i : i + 1, begins[i] : length + place])
            torch.testing.assert_close(logits_BV[i], whole_TV[-1], rtol=1e-5, atol=1e-5)
        given_B = texts_BT.gather(1, lengths_B[:, None] + place).squeeze(1)
    assert len(times) > 2, "at different times"
    assert state.keep_BK.shape[1] <= 2 * REACH, "what nobody may look at is let go"


@every
def test_searches_find_the_same_alone_and_in_a_batch(config: GPTConfig) -> None:
    model, texts_BT, lengths_B = made(config)
    limits, seeds = [5, 17, 7, 12], [(1,), (2,), (3,), (4,)]
    rules = Rules(3, limits, (0, 1, 2), min_length=12)
    together = texts_BT[:, : max(LENGTHS)], lengths_B
    wide = hypotheses(beam(model, model.start(*together, REACH), rules, begin=2, width=3))
    fast = hypotheses(greedy(model, model.start(*together, REACH), rules, begin=2))
    drawn = hypotheses(sample(model, model.start(*together, REACH), rules, begin=2, sampler=Sampler(seeds)))
    for i, limit in enumerate(limits):
        own, rule = alone(texts_BT, i), replace(rules, limits=[limit])
        (single,) = hypotheses(beam(model, model.start(*own, REACH), rule, begin=2, width=3))
        assert [found.ids for found in wide[i]] == [found.ids for found in single]
        assert fast[i][0].ids == hypotheses(greedy(model, model.start(*own, REACH), rule, begin=2))[0][0].ids
        draw = Sampler([seeds[i]])
        assert (
            drawn[i][0].ids
            == hypotheses(sample(model, model.start(*own, REACH), rule, begin=2, sampler=draw))[0][0].ids
        )
    assert max(len(one.ids) for (one,) in drawn) > REACH


ENDLESS = {name: config for name, config in REACHING.items() if config.position != "learned"}


@pytest.mark.parametrize("config", ENDLESS.values(), ids=ENDLESS.keys())
@torch.no_grad()
def test_a_reach_reads_on_without_end_and_keeps_what_it_can_see(config: GPTConfig) -> None:
    """No row is read again: what it says is what the model says to the whole text."""
    model, texts_BT, lengths_B = made(config)
    texts_BT = texts_BT.repeat(1, 3)
    state = model.start(texts_BT[:, : max(LENGTHS)], lengths_B, REACH)
    given_B = torch.full((len(LENGTHS),), 2)
    sizes = []
    for place in range(50):
        logits_BV, state = model.step(given_B, state)
        for i, length in enumerate(LENGTHS):
            whole_TV = model(texts_BT[i : i + 1, : length + place])
            torch.testing.assert_close(logits_BV[i], whole_TV[-1], rtol=1e-4, atol=1e-4)
        given_B = texts_BT.gather(1, lengths_B[:, None] + place).squeeze(1)
        sizes.append(state.keep_BK.shape[1])
    if config.reach is not None and config.reach.kind != "landmarks":
        assert max(sizes[20:]) <= 16, "the cache has one size, however much was read"


@pytest.mark.parametrize("name", ["window-learned", "linear-learned"])
@torch.no_grad()
def test_learned_positions_with_a_reach_read_again_as_without(name: str) -> None:
    model, texts_BT, lengths_B = made(REACHING[name])
    state = model.start(texts_BT[:, : max(LENGTHS)], lengths_B, REACH)
    given_B, begins = torch.full((len(LENGTHS),), 2), [0] * len(LENGTHS)
    for place in range(16):
        logits_BV, state = model.step(given_B, state)
        for i, length in enumerate(LENGTHS):
            if length + place - begins[i] > REACH:
                begins[i] = length + place - 1 - REACH // 2
            whole_TV = model(texts_BT[i : i + 1, begins[i] : length + place])
            torch.testing.assert_close(logits_BV[i], whole_TV[-1], rtol=1e-5, atol=1e-5)
        given_B = texts_BT.gather(1, lengths_B[:, None] + place).squeeze(1)
