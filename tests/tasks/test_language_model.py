"""Language modelling: what a block, its loss, its scores, a prompt and a continuation are."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from gpt2s import END, vocabulary
from regard.data.packed import Packed
from regard.decode import Hypothesis, contains, in_order
from regard.decode.phrases import stream
from regard.errors import DataError, RecipeError
from regard.explain.beams import BeamTree
from regard.fields.axis import Axis
from regard.files.row import Row, rows_of
from regard.models import GPT
from regard.tasks import LanguageModel, LanguageModelConfig
from regard.tasks.language_model import BlockTally, ContinueConfig
from regard.tasks.task import evaluating
from regard.text.bytelevel import gpt2_tokenizer
from regard.text.tokenizer import EOS, Tokenizer
from regard.training.evaluate import evaluate
from tiny import gpt, stirred

CPU = torch.device("cpu")
LINES = [
    "the grey heron\n",
    "  stands still.",
    "雾 lies on the river 😀",
    "fog\tand\n",
    "rain\n",
    "\n",
    "fall",
]
ROWS = [Row({"text": line}, "text.txt", number) for number, line in enumerate(LINES, 1)]
MEASURED = "the grey heron\n  stands still.雾 lies on the river 😀fog\tand\nrain\n\nfall"


def fitted(kind: str = "char", **changes: Any) -> LanguageModel:
    """`gpt2`: with the vocabulary of a GPT-2."""
    if kind == "gpt2":
        config = LanguageModelConfig.model_validate({"max_length": 12} | changes)
        return LanguageModel.of_vocabulary(config, Tokenizer(gpt2_tokenizer(*vocabulary())))
    tokenizer = {"kind": kind, "vocab_size": 300 if kind != "char" else 60, "min_frequency": 1}
    config = LanguageModelConfig.model_validate({"tokenizer": tokenizer, "max_length": 12} | changes)
    return LanguageModel.fit(config, ROWS)


def model_for(task: LanguageModel, **changes: Any) -> GPT:
    model = stirred(gpt(**changes).build(task.widths))
    assert isinstance(model, GPT)
    return model


@pytest.mark.parametrize("kind", ["char", "bpe", "unigram", "gpt2"])
def test_a_text_comes_back_character_by_character(kind: str) -> None:
    task = fitted(kind)
    (example,) = task.encode([Row({"text": MEASURED}, "x", 1)])
    assert task.tokenizer.decode(example.arrays["ids"].tolist()) == MEASURED


@pytest.mark.parametrize("kind", ["char", "bpe", "unigram", "gpt2"])
@pytest.mark.parametrize("batch_tokens", [13, 40])
def test_scores_are_of_the_whole_text(kind: str, batch_tokens: int) -> None:
    task = fitted(kind)
    model, blocks = model_for(task), Packed.of(task, ROWS)
    metrics, _ = evaluate(task, model, blocks, CPU, thorough=True, batch_tokens=batch_tokens)
    with evaluating(model):
        nats = sum(
            float(F.cross_entropy(model(read[None, :-1]), read[1:], reduction="sum"))
            for read in (torch.from_numpy(block.arrays["ids"].astype(int)) for block in blocks)
        )
    n_tokens = int(blocks.sizes.sum())
    assert metrics["loss"] == pytest.approx(nats / n_tokens, rel=1e-5)
    assert metrics["perplexity"] == pytest.approx(math.exp(nats / n_tokens), rel=1e-4)
    assert metrics["probability"] == pytest.approx(100 / metrics["perplexity"])
    assert metrics["bits_per_char"] == pytest.approx(nats / math.log(2) / len(MEASURED), rel=1e-5)
    assert list(metrics)[1] == task.metric.name, "the one that decides comes first after the loss"


def test_blocks_of_another_vocabulary_are_other_blocks() -> None:
    """Though each has as many characters, some of which one of the two does not know."""
    task = fitted()
    other = LanguageModel.fit(task.config, [replace(ROWS[0], cells={"text": "the grey heron stands"})])
    tallies = [
        evaluate(own, model_for(own), Packed.of(own, ROWS), CPU, thorough=True)[1] for own in (task, other)
    ]
    knows, knows_less = tallies
    assert isinstance(knows, BlockTally)
    assert isinstance(knows_less, BlockTally)
    assert (knows.tokens, knows.characters) == (knows_less.tokens, knows_less.characters)
    assert knows.truth != knows_less.truth
    letters = sum(letter not in "the grey heron stands" for letter in MEASURED)
    assert "unknown" not in knows.metrics()
    assert knows_less.metrics()["unknown"] == pytest.approx(100 * letters / sum(knows.tokens))


def test_the_loss_learnt_from_is_the_loss_scored() -> None:
    task = fitted(max_length=11)
    model, blocks = model_for(task), Packed.of(task, ROWS)
    batch = task.collate([blocks[0], blocks[len(blocks) - 1], blocks[2]])
    assert batch.keep_BT is not None, "the last is shorter"
    with evaluating(model):
        loss = task.loss(model, batch)
        tally = task.measure(model, batch, thorough=True)
    assert float(loss.shown["tokens"]) == pytest.approx(sum(tally.nats), rel=1e-5)
    assert tally.tokens == [11, len(blocks[len(blocks) - 1].arrays["ids"]) - 1, 11]
    assert batch.counts == {"tokens": sum(tally.tokens)}
    assert task.collate([blocks[0], blocks[1]]).keep_BT is None, "no padding, nothing to leave out"


@pytest.mark.parametrize("documents", ["files", "lines"])
def test_a_document_begins_where_another_has_ended(documents: str) -> None:
    task = fitted(documents=documents)
    long, short = task.encode(rows_of(["the fog", "t"], "text"))
    long_ids, short_ids = task.tokenizer.ids(["the fog", "t"])
    assert task.prompt(long).tolist() == (long_ids if documents == "files" else [EOS, *long_ids])
    assert task.prompt(short).tolist() == [EOS, *short_ids]


def answer(task: LanguageModel, model: GPT, *texts: str) -> list[Any]:
    with evaluating(model):
        return in_order(task.predict(model, task.collate(task.encode(rows_of(texts, "text")))))


@pytest.mark.parametrize("kind", ["char", "bpe", "gpt2"])
@pytest.mark.parametrize(
    "decode",
    [
        {},
        {"beam": 1},
        {"beam": 3, "n_best": 2},
        {"top_k": 5, "n_best": 2, "seed": 4},
        {"no_repeat": 2, "beam": 2},
    ],
    ids=str,
)
def test_alone_and_in_a_batch_a_prompt_goes_on_alike(kind: str, decode: dict[str, Any]) -> None:
    task = fitted(kind).with_settings(**{"max_length": 17, "min_length": 15} | decode)
    model = model_for(task)
    texts = ["the fog", "", "river and rain", "雾"] if kind == "bpe" else ["the fog", "", "heron fall", "雾"]
    together = answer(task, model, *texts)
    for text, found in zip(texts, together, strict=True):
        (alone,) = answer(task, model, text)
        assert [one.ids for one in (found, *found.others)] == [one.ids for one in (alone, *alone.others)]
        assert found.text == alone.text
    assert max(len(found.ids) for found in together) > 12, "beyond its reach"


def test_a_gpt2s_own_marks_are_used() -> None:
    task = fitted("gpt2", documents="lines").with_settings(beam=2, max_length=9)
    model, end = model_for(task), vocabulary()[0][END]
    (example,) = task.encode(rows_of(["the fog"], "text"))
    assert example.arrays["ids"].tolist() == [*task.prompt(example).tolist()[1:], end]
    assert task.prompt(example)[0] == end
    with evaluating(model):
        tree = task.recorded(model, task.collate([example]))
    shown = BeamTree.of(tree, task.tokenizer, "gpt", "the fog", "beam=2")
    assert all(one.token == END for one in shown.answers)
    (found,) = answer(task, model, "the fog")
    assert task.axes(example, found).by_name["context"].labels[0] == END


@pytest.mark.parametrize("decode", [{"beam": 3, "no_repeat": 1}, {"top_k": 40}], ids=str)
def test_a_gpt2_is_told_what_to_say(decode: dict[str, Any]) -> None:
    task = fitted("gpt2").with_settings(max_length=11)
    model = model_for(task)
    (free,) = answer(task.with_settings(**decode), model, "the fog")
    said = next(word for word in stream(free.text).split() if word.isascii() and word.isprintable())
    (without,) = answer(task.with_settings(must_not=(said,), **decode), model, "the fog")
    assert not contains(without.text, said)
    if "beam" in decode:
        (told,) = answer(task.with_settings(must_include=("heron", "雾"), **decode), model, "the fog")
        assert contains(told.text, "heron")
        assert "雾" in told.text


@pytest.mark.parametrize("kind", ["char", "bpe", "unigram", "gpt2"])
def test_a_word_that_must_be_said_is_led_to_by_its_usual_pieces(kind: str) -> None:
    """With the space before it, which a learnt piece carries and no byte."""
    writer = fitted(kind).writer
    required = writer.rules(ContinueConfig(must_include=("heron", "雾"), sample=False), [50]).must_include
    assert required is not None
    assert required.tokens == [writer.tokenizer.encode(text).ids for text in (" heron", "雾")]


def test_a_sample_has_room_for_what_is_asked_of_it() -> None:
    task = fitted(decode={"prefix": "the grey heron", "max_length": 40})
    (example,) = task.encode(rows_of(["fog\n"], "text"))
    with evaluating(model := model_for(task)):
        (sample,) = task.samples(model, [example], CPU)
    assert (sample["input"], sample["expected"]) == ("fo", "g\n")
    assert sample["answer"] == "the grey heron"


def test_the_limit_of_a_continuation_is_named() -> None:
    """Neither max_ratio nor task.max_length has a say in it."""
    with pytest.raises(RecipeError, match=r"9999, one less than the 10,000 of any continuation"):
        fitted(decode={"min_length": 10_000, "max_length": None})
    with pytest.raises(RecipeError, match=r"prefix: has 10000 .* fewer tokens than the 10,000 of any"):
        fitted(decode={"prefix": "a" * 10_000, "max_length": None})


@pytest.mark.parametrize("more", [{"beam": 1}, {"beam": 3}, {"sample": True}], ids=str)
def test_an_answer_that_no_search_can_write_is_refused(more: dict[str, Any]) -> None:
    """Longer than the vocabulary, with no piece twice."""
    task = fitted("char").with_settings(no_repeat=1, min_length=400, max_length=500, **more)
    with pytest.raises(RecipeError, match=r"no answer has min_length = 400 tokens and repeats nothing"):
        answer(task, model_for(task), "fog")


def test_a_letter_in_other_bytes_than_usual_is_still_not_said() -> None:
    task = fitted("gpt2").with_settings(must_not=("é",), beam=1)
    unusual = tuple(vocabulary()[0][letter] for letter in "Ã©")
    assert task.tokenizer.encode("é").ids != list(unusual)
    assert task.tokenizer.decode(unusual) == "é"
    with pytest.raises(RecipeError, match="leave no way around it"):
        task.writer._refuse_broken([Hypothesis(unusual, -1.0, -1.0, ())], task.decode)


def test_the_text_is_what_comes_after_the_prompt() -> None:
    task = fitted("bpe").with_settings(beam=1, max_length=9, prefix="and rain")
    (found,) = answer(task, model_for(task), "the grey heron\n")
    assert found.text.startswith("and rain")
    assert found.to_json() == {"text": found.text, "score": round(found.score, 4)}
    assert sum(found.steps) == pytest.approx(found.score * ((5 + len(found.steps)) / 6), rel=1e-5)


def test_what_the_vocabulary_cannot_spell_is_no_beginning() -> None:
    task = fitted("char").with_settings(prefix="§")
    with pytest.raises(RecipeError, match=r"decode\.prefix: '§' has characters the vocabulary does not know"):
        answer(task, model_for(task), "the grey")


def test_who_asks_for_a_beam_wants_nothing_drawn() -> None:
    assert fitted().decode.sample
    assert not fitted().with_settings(beam=3).decode.sample
    assert fitted().with_settings(beam=3, sample=True).decode.sample
    with pytest.raises(RecipeError, match=r"decode\.tok_k: unknown; did you mean top_k"):
        fitted().with_settings(tok_k=3)


def test_a_prompt_beyond_the_models_positions_is_refused() -> None:
    task = fitted()
    with pytest.raises(DataError, match=r"input:1: the text has 13 tokens, this model reads 12 at most"):
        answer(task, model_for(task), "the grey fog.")


def test_what_was_answered_is_what_is_replayed() -> None:
    task = fitted().with_settings(beam=1, max_length=5)
    model = model_for(task)
    (example,) = task.encode(rows_of(["the fog"], "text"))
    (found,) = answer(task, model, "the fog")
    with evaluating(model):
        (told,) = task.replay(model, task.force(example, found))
    assert told.tolist() == pytest.approx(list(found.steps[: len(found.ids)]), abs=1e-5)


def test_leaving_a_piece_out_is_reading_the_text_without_it() -> None:
    task = fitted().with_settings(beam=1, max_length=5)
    model = model_for(task)
    (example,) = task.encode(rows_of(["the fog"], "text"))
    (found,) = answer(task, model, "the fog")
    prompt = task.prompt(example).tolist()
    text, first = [*prompt, *found.ids], len(prompt)
    batch = task.force(example, found)
    with evaluating(model):
        told_KT = task.replay(model, task.leave_out(batch, Axis("text", ()), range(len(text) - 1)))
        for left_out in range(len(text) - 1):
            for place in range(first, len(text)):
                told = float(told_KT[left_out, place - first])
                before = [token for at, token in enumerate(text[:place]) if at != left_out]
                if place <= left_out:
                    assert math.isnan(told)
                    continue
                expected = torch.log_softmax(model(torch.tensor([before]))[-1], -1)[text[place]]
                assert told == pytest.approx(float(expected), abs=1e-5)


def test_axes_name_what_maps_are_between() -> None:
    task = fitted(documents="lines").with_settings(beam=1, max_length=3, min_length=3, prefix="\n")
    (example,) = task.encode(rows_of(["fog"], "text"))
    (found,) = answer(task, model_for(task), "fog")
    axes = task.axes(example, found).by_name
    assert axes["context"].labels[:5] == ("</s>", "f", "o", "g", "⏎")
    assert axes["next"].labels[0] == "⏎"
    assert (len(axes["context"].labels), len(axes["next"].labels)) == (6, 3)
    assert task.axes(example, found).site("stack.layers.1.self") == (
        "layer 2: what comes next → the text so far",
        "next",
        "context",
    )


def test_samples_are_second_halves() -> None:
    task = fitted()
    block = Packed.of(task, ROWS)[0]
    (sample,) = task.samples(model_for(task), [block], CPU)
    assert sample["input"] + sample["expected"] == task.tokenizer.decode(block.arrays["ids"].tolist())
    assert len(sample["answer"]) <= len(sample["expected"])


def test_white_space_is_not_kept_by_words() -> None:
    with pytest.raises(ValueError, match="kind word cannot keep white space; take bpe, unigram or char"):
        LanguageModelConfig.model_validate({"tokenizer": {"kind": "word"}})
