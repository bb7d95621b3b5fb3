"""Replies: what is read of a conversation, what a GPT learns from, what is scored."""

from typing import Any

import pytest
import torch
from sacrebleu import corpus_bleu
from torch.nn import functional as F

from regard.api.trained import Evaluation
from regard.decode import in_order
from regard.errors import RecipeError
from regard.fields.axis import Axis
from regard.files.row import Row
from regard.metrics.resample import intervals
from regard.metrics.variety import distinct
from regard.recipe import Recipe
from regard.tasks import Dialogue, DialogueConfig
from regard.tasks.reply import ReplyTally
from regard.tasks.stream import joined
from regard.text.tokenizer import BOS, EOS
from tiny import TOKENIZER, WORDS, gpt, rnn, stirred, transformer

MODELS: dict[str, Any] = {
    "transformer": transformer(max_positions=20),
    "rnn": rnn(),
    "gpt": gpt(max_positions=20),
    "rotary": gpt(position="rotary", d_model=18),
}


def row(context: str, reply: str | None = None, references: str | None = None) -> Row:
    known = (
        {} if reply is None else {"reply": reply, "references": reply if references is None else references}
    )
    return Row({"context": context} | known, "x.jsonl", 1)


def fitted(**changes: Any) -> Dialogue:
    settings = {"tokenizer": TOKENIZER, "max_length": 8, "turns": 2, "decode": {"max_length": 6}} | changes
    return Dialogue.fit(DialogueConfig.model_validate(settings), [row("\n".join(WORDS), "amber birch")])


@pytest.fixture
def task() -> Dialogue:
    return fitted()


@pytest.mark.parametrize(("most", "advice"), [(60, r"than task\.max_length$"), (6, "or raise max_length$")])
def test_a_beginning_that_is_too_long_is_told_what_bounds_it(most: int, advice: str) -> None:
    """The length of the context has no say in it."""
    with pytest.raises(RecipeError, match=r"prefix: has 8 tokens, .*" + advice):
        fitted(decode={"max_length": most, "prefix": "amber " * 8})


def test_every_turn_ends_with_a_mark_that_no_text_spells(task: Dialogue) -> None:
    (pair,) = task.encode([row("grove\namber birch\ncedar", "delta")])
    ids = {word: task.source.tokenizer.encode(word).ids[0] for word in WORDS}
    assert task.source_ids(pair) == [ids["amber"], ids["birch"], EOS, ids["cedar"], EOS], "the last two turns"
    assert pair.arrays["target"].tolist() == [BOS, ids["delta"], EOS]
    (same, spelt) = task.encode([row("amber birch __eou__ cedar"), row("amber </s> cedar")])
    assert task.source_ids(same) == task.source_ids(pair)
    assert task.source_ids(spelt).count(EOS) == 1


def test_of_a_long_context_the_end_is_read(task: Dialogue) -> None:
    (pair,) = task.encode([row("amber birch cedar delta\nember fjord grove heath inlet", "jetty")])
    words = ["cedar", "delta", "ember", "fjord", "grove", "heath", "inlet"]
    ids = [task.source.tokenizer.encode(word).ids[0] for word in words]
    assert task.source_ids(pair) == [*ids[:2], EOS, *ids[2:], EOS]
    assert pair.notes["cut"]
    assert task.unusable(pair) is None
    assert task.axes(pair, task.prediction(text="")).by_name["source"].labels == (
        *words[:2],
        "</s>",
        *words[2:],
        "</s>",
    )
    (empty,) = task.encode([row("", "amber")])
    assert task.unusable(empty)


def test_a_gpt_reads_one_text_and_learns_from_the_reply_alone(task: Dialogue) -> None:
    rows = [row("amber birch\ncedar", "delta ember fjord"), row("grove", "heath")]
    batch = task.collate(task.encode(rows))
    tokens_BT = joined(batch)
    one, other = ([*task.source_ids(pair), *pair.arrays["target"].tolist()[1:-1]] for pair in batch.examples)
    assert tokens_BT.tolist() == [one, other + [0] * (len(one) - len(other))]
    model = stirred(MODELS["gpt"].build(task.widths))
    plain = task.loss(model, batch).shown["tokens"]
    expected = torch.tensor(0.0)
    for pair in batch.examples:
        text = torch.tensor([[*task.source_ids(pair), *pair.arrays["target"].tolist()[1:]]])
        n_reply = len(pair.arrays["target"]) - 1
        logits_TV = model(text[:, :-1])[-n_reply:]
        expected = expected + F.cross_entropy(logits_TV, text[0, -n_reply:], reduction="sum")
    torch.testing.assert_close(plain, expected.detach())


@pytest.mark.parametrize("name", MODELS)
def test_a_replay_tells_what_the_search_had_found(name: str, task: Dialogue) -> None:
    model = stirred(MODELS[name].build(task.widths))
    texts = ["amber birch cedar delta\nember fjord grove heath inlet", "grove", "amber\nbirch"]
    examples = task.encode([row(text) for text in texts])
    for search in ({"beam": 1}, {"beam": 3}):
        searching = task.with_settings(**search)
        together = in_order(searching.predict(model, searching.collate(examples)))
        for example, answer in zip(examples, together, strict=True):
            (alone,) = in_order(searching.predict(model, searching.collate([example])))
            assert alone.ids == answer.ids
            with torch.no_grad():
                told_T = searching.replay(model, searching.force(example, answer))[0]
            torch.testing.assert_close(told_T, torch.tensor(answer.steps), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", ["transformer", "gpt"])
def test_leaving_out_takes_away_each_piece_once(name: str, task: Dialogue) -> None:
    model = stirred(MODELS[name].build(task.widths))
    (example,) = task.encode([row("amber birch\ncedar", "delta ember")])
    batch = task.collate([example])
    left = task.leave_out(batch, Axis("text", ()), range(4))
    without_birch = [token for place, token in enumerate(task.source_ids(example)) if place != 1]
    assert left.inputs["ids"][1].tolist() == without_birch
    with torch.no_grad():
        assert task.replay(model, left).shape == (4, 3)


def test_a_reply_may_be_longer_than_what_it_answers(task: Dialogue) -> None:
    model = stirred(rnn().build(task.widths))
    (example,) = task.encode([row("amber")])
    with torch.no_grad():
        model.output_bias[EOS] = -100.0  # type: ignore[union-attr, index]
    (answer,) = in_order(task.predict(model, task.collate([example])))
    assert len(answer.ids) == 6, "decode.max_length, not twice the context"


def test_contexts_with_several_replies_are_answered_once(task: Dialogue) -> None:
    model = stirred(rnn().build(task.widths))
    rows = [
        row("amber", "birch", "birch\ncedar delta"),
        row("amber", "cedar delta", ""),
        row("ember", "fjord"),
    ]
    batch = task.collate(task.encode(rows))
    with torch.no_grad():
        tally = task.measure(model, batch, thorough=True)
        cost = float(task.loss(model, batch).shown["tokens"])
    assert tally.references == [["birch", "cedar delta"], [], ["fjord"]]
    said = [tally.answers[0], tally.answers[2]]
    assert tally.n_tokens == 2 + 3 + 2, "every reply is foretold"
    scores = tally.metrics()
    assert scores["loss"] == pytest.approx(cost / 7)
    assert scores["perplexity"] == pytest.approx(torch.tensor(cost / 7).exp().item(), rel=1e-5)
    assert scores["bleu"] == corpus_bleu(said, [["birch", "fjord"], ["cedar delta", None]]).score
    assert tally.by_kind() == {"replies": distinct(said), "references": distinct(["birch", "fjord"])}
    assert "nrefs:var" in tally.signatures()["bleu"]
    assert (tally + tally).metrics()["loss"] == pytest.approx(scores["loss"])
    assert (tally + tally).taken([3, 1, 5]) == tally


def test_scores_have_intervals_but_variety_has_none() -> None:
    texts = ["amber birch cedar delta", "ember fjord grove heath"]
    said, right = [texts[0], "inlet"], [[text] for text in texts]
    tally = ReplyTally.of("13a", "v", texts, [1.0, 9.0], [2, 3], said, right)
    found = intervals(tally)
    assert set(found) == {"loss", "probability", "perplexity", "bleu"}
    assert found["loss"] == (0.5, 3)
    assert found["bleu"] == pytest.approx((0, 100))
    assert tally.truth == texts


def test_replies_that_are_not_asked_for_still_cost() -> None:
    tally = ReplyTally.of("13a", "v", ["amber"], [2.0], [4], [""], [[]])
    assert tally.metrics()["loss"] == 0.5
    assert tally.metrics()["bleu"] == 0
    assert tally.by_kind() == {}
    assert "bleu" not in tally.signatures()


def test_what_pieces_cost_is_not_compared_between_vocabularies() -> None:
    asked: Any = (["amber birch"], [2.0], [4], ["amber"], [["amber birch"]])
    one, alike, other = (
        Evaluation(tally.metrics(), tally.signatures(), 1, {}, tally)
        for tally in (ReplyTally.of("13a", vocabulary, *asked) for vocabulary in ("v", "v", "w"))
    )
    assert set(one.against(alike)) == {"loss", "probability", "perplexity", "bleu"}
    assert set(one.against(other)) == {"bleu"}


@pytest.mark.parametrize("name", MODELS)
def test_each_reply_has_its_own_cost(name: str, task: Dialogue) -> None:
    model = stirred(MODELS[name].build(task.widths))
    rows = [row("amber birch\ncedar", "delta ember fjord", ""), row("grove", "heath", "")]
    with torch.no_grad():
        together = task.measure(model, task.collate(task.encode(rows)), thorough=False)
        for at, one in enumerate(rows):
            alone = task.measure(model, task.collate(task.encode([one])), thorough=False)
            assert together.nats[at] == pytest.approx(alone.nats[0], rel=1e-4)


def test_a_gpt_has_positions_for_context_and_reply() -> None:
    given = {
        "task": {"kind": "dialogue", "max_length": 8},
        "data": {"train": "x.jsonl"},
        "model": gpt(max_positions=16).model_dump(),
    }
    with pytest.raises(
        RecipeError, match=r"room for 15 tokens, but task\.max_length needs, for context and reply"
    ):
        Recipe.parse(given)
    given["model"] = gpt(max_positions=17).model_dump()
    assert Recipe.parse(given).task.max_length == 8
