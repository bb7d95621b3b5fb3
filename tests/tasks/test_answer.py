"""Answering: pairs and their windows, places in characters, losses, what is said when there is no answer."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from regard.decode import in_order
from regard.errors import CheckpointError, DataError, RecipeError
from regard.explain.replay import explain
from regard.fields.axis import Axis
from regard.fields.field import Coded
from regard.files.row import Row, rows_of
from regard.layers.inputs import Inputs, tokens
from regard.tasks import Answer, AnswerConfig
from regard.tasks.answer import AnswerTally
from regard.tasks.task import evaluating
from regard.text.tokenizer import EOS, Tokenizer
from tiny import answerer, stirred

CONTEXT = "the fog  lies on the Rhine , the heron stands in the fog"
LINES = [("where is the heron", CONTEXT, "in the fog"), ("what lies there", CONTEXT, "fog")]


def row(question: str, context: str = CONTEXT, answer: str | None = None, **more: str) -> Row:
    told = {} if answer is None else {"answer": answer}
    return Row({"question": question, "context": context} | told | more, "qa.jsonl", 3)


def fitted(lines: list[tuple[str, str, str]] = LINES, **changes: Any) -> Answer:
    tokenizer = {"kind": "word", "vocab_size": 60, "min_frequency": 1}
    sizes = {"max_length": 11, "overlap": 2, "max_question": 5, "max_answer": 3}
    config = AnswerConfig.model_validate({"tokenizer": tokenizer} | sizes | changes)
    return Answer.fit(config, [row(*line) for line in lines])


class Pointing(nn.Module):
    """Scores that a test decides: by the piece alone, or at the first place."""

    def __init__(
        self, task: Answer, start: dict[str, float], end: dict[str, float], none: float = -9.0
    ) -> None:
        super().__init__()
        names = task.tokenizer.names
        self.tables = [
            torch.tensor([scores.get(name.strip(), -5.0) for name in names]) for scores in (start, end)
        ]
        self.none = none

    def forward(self, inputs: Inputs) -> Any:
        ids_RT = inputs["ids"]
        beyond_RT = torch.arange(ids_RT.shape[1]) >= inputs["lengths"][:, None]
        found = [table[ids_RT].masked_fill(beyond_RT, -torch.inf) for table in self.tables]
        for scores_RT in found:
            scores_RT[:, 0] = self.none
        return tuple(found)


@pytest.fixture
def task() -> Answer:
    return fitted()


def test_a_pair_is_framed_with_a_mark_between(task: Answer) -> None:
    (example,) = task.encode([row("where is the heron", "in the fog", "the fog")])
    asked, context = task.tokenizer.ids(["where is the heron", "in the fog"])
    assert example.arrays["ids"].tolist() == [*asked, EOS, *context, EOS]
    batch = task.collate([example])
    assert batch.inputs["segments"].tolist() == [[0] * 5 + [1] * 4]
    assert batch.keep_RT.tolist() == [[False] * 5 + [True] * 3 + [False]]
    assert batch.ends_R2.tolist() == [[6, 7]]
    assert batch.counts == {"windows": 1}


def test_a_long_context_is_read_in_windows_that_know_their_answer(task: Answer) -> None:
    (example,) = task.encode([row("where is the heron", answer="stands in the")])
    batch = task.collate([example])
    assert len(example.arrays["lengths"]) == len(batch.inputs["lengths"]) == 3
    assert batch.inputs["lengths"].tolist() == [12, 12, 11]
    assert batch.ends_R2.tolist() == [[0, 0], [0, 0], [6, 8]], "a window that cuts the answer holds none"


def test_the_answer_is_the_best_of_all_windows_in_characters_of_the_text(task: Answer) -> None:
    rows = [row("where is the heron"), row("what lies there"), row("what", "fog")]
    model = Pointing(task, {"stands": 4, "fog": 3, "on": 1}, {"in": 4, "lies": 3.5, "fog": 1})
    together = in_order(task.predict(model, task.collate(task.encode(rows))))
    assert [answer.text for answer in together] == ["stands in", "stands in", "fog"]
    for one, answer in zip(rows, together, strict=True):
        assert one.cells["context"][answer.start : answer.end] == answer.text
        (alone,) = in_order(task.predict(model, task.collate(task.encode([one]))))
        assert alone.model_copy(update={"probability": 0}) == answer.model_copy(update={"probability": 0})
        assert alone.probability == pytest.approx(answer.probability)
    assert together[0].windows == 3
    assert together[2].to_json() == {
        "text": "fog",
        "start": 0,
        "end": 3,
        "probability": round(together[2].probability, 4),
        "windows": 1,
    }


def test_spaces_inside_an_answer_are_those_of_the_text(task: Answer) -> None:
    model = Pointing(task, {"fog": 4}, {"lies": 4})
    (answer,) = in_order(task.predict(model, task.collate(task.encode([row("what")]))))
    assert answer.text == "fog  lies"


def test_answers_are_not_longer_than_allowed(task: Answer) -> None:
    model = Pointing(task, {"lies": 9}, {"Rhine": 9, "the": 1})
    (answer,) = in_order(task.predict(model, task.collate(task.encode([row("what")]))))
    assert answer.text == "lies on the"


@pytest.mark.parametrize(("none", "text"), [(2.1, ""), (1.9, "fog")])
def test_none_wins_if_it_scores_more_than_any_span(none: float, text: str) -> None:
    model_of = {"start": {"fog": 2.0}, "end": {"fog": 2.0}, "none": none}
    taught = fitted([*LINES, ("who", CONTEXT, "")])
    assert taught.answer.may_be_none
    (answer,) = in_order(
        taught.predict(Pointing(taught, **model_of), taught.collate(taught.encode([row("who")])))
    )
    assert answer.text == text
    assert (answer.start is None) == (answer.end is None) == (not text)
    untaught = fitted()
    assert not untaught.answer.may_be_none
    (answer,) = in_order(
        untaught.predict(Pointing(untaught, **model_of), untaught.collate(untaught.encode([row("who")])))
    )
    assert answer.text == "fog", "who has never seen a question without answer finds one"


@pytest.mark.parametrize("kind", ["rnn", "transformer", "bert"])
def test_the_loss_is_the_mean_of_two_cross_entropies(task: Answer, kind: str) -> None:
    model = stirred(answerer(kind).build(task.widths))
    examples = task.encode([row(*line) for line in LINES])
    batch = task.collate(examples)
    loss = task.loss(model, batch)
    start_RT, end_RT = model(batch.inputs)
    costs = [
        F.cross_entropy(scores, batch.ends_R2[:, side]) for side, scores in enumerate((start_RT, end_RT))
    ]
    objective = loss.objective(batch.counts)
    torch.testing.assert_close(objective, (costs[0] + costs[1]) / 2)
    alone = [task.loss(model, task.collate([example])).parts["windows"].sum for example in examples]
    torch.testing.assert_close(loss.parts["windows"].sum, torch.stack(alone).sum())
    with torch.no_grad():
        torch.testing.assert_close(task.loss(model, batch).parts["windows"].sum, loss.parts["windows"].sum)


def test_an_example_comes_back_from_the_cache(task: Answer) -> None:
    examples = task.encode([row(*line) for line in LINES])
    kept = [{name: part.astype(np.uint16) for name, part in task.keep(one).items()} for one in examples]
    batch, again = task.collate(examples), task.collate([task.revive(Row({}, "x", 1), one) for one in kept])
    assert again.inputs.keys() == {"ids", "lengths", "segments"}
    for name, tensor in batch.inputs.items():
        assert torch.equal(tensor, again.inputs[name]), name
    assert torch.equal(batch.ends_R2, again.ends_R2)
    assert torch.equal(batch.keep_RT, again.keep_RT)


def test_what_can_be_learnt_from(task: Answer) -> None:
    good, blank, bare, spaces = task.encode(
        [row(*LINES[0]), row("", CONTEXT, "fog"), row("who", "", ""), row("who", "a  b", " ", places="1:3")]
    )
    assert [task.unusable(one) is None for one in (good, blank, bare, spaces)] == [True, False, False, False]
    assert [task.is_answerable(one) for one in (good, blank, bare, spaces)] == [True, False, False, True]
    model = Pointing(task, {}, {})
    for answer in in_order(task.predict(model, task.collate([blank, bare]))):
        assert (answer.text, answer.start, answer.probability) == ("", None, 0.0)


def test_a_long_question_is_cut_and_said(task: Answer) -> None:
    (answer,) = in_order(task.predict(Pointing(task, {}, {}), task.collate(task.encode([row("the " * 6)]))))
    assert answer.cut
    assert answer.to_json()["input_cut"] is True


def test_all_references_count(task: Answer) -> None:
    model = Pointing(task, {"fog": 4}, {"lies": 4})
    answers = [{"text": "Rhine", "answer_start": 21}, {"text": "fog  lies", "answer_start": 4}]
    (example,) = task.encode([row("what", answer=answers)])
    tally = task.measure(model, task.collate([example]), thorough=True)
    assert tally.right == [("Rhine", "fog  lies")]
    assert tally.metrics() == {"f1": 100.0, "em": 100.0}
    assert tally.by_kind() == {}
    both = tally + AnswerTally(["fog"], [()])
    assert both.metrics() == {"f1": 50.0, "em": 50.0}
    assert both.by_kind()["has none"] == {"f1": 0.0, "em": 0.0, "n": 1}


@pytest.mark.parametrize("kind", ["rnn", "bert"])
@pytest.mark.parametrize("taught", [True, False])
def test_an_explanation_shows_what_spoke_for_beginning_and_end(kind: str, taught: bool) -> None:
    task = fitted([*LINES, ("who", CONTEXT, "")] if taught else LINES)
    model = stirred(answerer(kind).build(task.widths))
    asked = {"question": "where is the heron", "context": CONTEXT}
    (answer,) = [in_order(task.predict(model, task.collate(task.encode(rows_of([asked], *task.inputs)))))[0]]
    found = explain(task, model, "m", asked, torch.device("cpu"), answer)
    left_out = found.map("left-out")
    assert found.main == "left-out"
    assert found.input == f"where is the heron\n{CONTEXT}"
    assert left_out.rows.labels[0].startswith("begins: ")
    assert left_out.columns.labels[:4] == ("where", "is", "the", "heron")
    assert left_out.head(None).sum(1) == pytest.approx(1, abs=1e-5)
    likely = found.map("probabilities")
    assert likely.columns.labels[4] == "</s>"
    assert likely.head(None).sum(1) == pytest.approx(1, abs=1e-5)
    if answer.text:
        assert answer.text.startswith(left_out.rows.labels[0].removeprefix("begins: "))
    assert ("encoder.stack.layers.0.self" in found.sites) == (kind == "bert")


def test_making_a_piece_unknown_is_what_is_measured(task: Answer) -> None:
    model = stirred(answerer("rnn").build(task.widths))
    (example,) = task.encode([row("who is there", "the heron stands")])
    with evaluating(model):
        (answer,) = in_order(task.predict(model, task.collate([example])))
        batch = task.force(example, answer)
        told = task.replay(model, task.leave_out(batch, Axis("text", ()), range(3, 5)))
        ids_RT = batch.inputs["ids"].repeat(2, 1)
        ids_RT[0, 4] = ids_RT[1, 5] = task.tokenizer.special.unknown
        lengths_R, segments_RT = batch.inputs["lengths"].repeat(2), batch.inputs["segments"].repeat(2, 1)
        scores = model(tokens(ids_RT, lengths_R, segments_RT))
    for side, place in enumerate(answer.ends):
        torch.testing.assert_close(told[:, side], scores[side].log_softmax(1)[:, place])


def test_a_long_window_is_measured_around_its_answer() -> None:
    task = fitted(max_length=300, overlap=10)
    model = Pointing(task, {"Rhine": 4}, {"Rhine": 4})
    context = "fog " * 100 + "Rhine" + " heron" * 150
    (example,) = task.encode([row("where is it", context)])
    (answer,) = in_order(task.predict(model, task.collate([example])))
    near = task.axes(example, answer).by_name["near"].labels
    assert len(near) == 128
    assert near[:3] == ("where", "is", "it")
    assert near.count("Rhine") == 1
    assert 55 <= near.index("Rhine") <= 75


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            [("who", "the fog", "herons")],
            "qa.jsonl:3: the answer 'herons' does not stand in the context; write",
        ),
        ([("who", "the fog", "")], "no question of the training data has an answer"),
    ],
)
def test_training_data_that_cannot_be_learnt_from(lines: list[tuple[str, str, str]], said: str) -> None:
    with pytest.raises(DataError, match=said):
        fitted(lines)


def test_windows_must_advance() -> None:
    with pytest.raises(ValueError, match=r"max_length \(20\) leaves 13 tokens .* more than overlap \(13\)"):
        AnswerConfig(max_length=20, max_question=6, overlap=13)


def test_no_search(task: Answer) -> None:
    with pytest.raises(RecipeError, match="beam: an answerer does not search"):
        task.with_settings(beam=3)


def test_it_comes_back_from_disk(tmp_path: Path) -> None:
    task = fitted([*LINES, ("who", CONTEXT, "")])
    task.save(tmp_path)
    again = Answer.load(task.config, tmp_path)
    assert again.answer.may_be_none
    assert np.array_equal(
        again.encode([row("who")])[0].arrays["ids"], task.encode([row("who")])[0].arrays["ids"]
    )
    for content in ("{", "[]", '{"may_be_none": 1}'):
        (tmp_path / "answer.json").write_text(content)
        with pytest.raises(CheckpointError, match=r"answer\.json"):
            Answer.load(task.config, tmp_path)


def test_berts_marks_and_places(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text(
        "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "where", "the", "rh", "##ine", "fog", "is"]), "utf-8"
    )
    config = AnswerConfig(max_length=12, overlap=2, max_question=5)
    task = Answer.fit(config, [row("where", "the Rhine", "Rhine")], Tokenizer.from_bert(tmp_path))
    (example,) = task.encode([row("where is", "fog: the  Rhine", "Rhine")])
    assert task.tokenizer.tokens(example.arrays["ids"].tolist()) == [
        *("[CLS]", "where", "is", "[SEP]", "fog", "[UNK]", "the", "rh", "ine", "[SEP]")
    ]
    batch = task.collate([example])
    assert batch.inputs["segments"].tolist() == [task.tokenizer.segments([0] * 2, [0] * 5)]
    assert batch.ends_R2.tolist() == [[7, 8]]
    assert task.input.characters(Coded(example.arrays, example.notes), 0, 7, 8) == (10, 15)
