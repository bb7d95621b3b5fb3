"""Relations: marks among pieces, what of a long text is read, answers, and what is refused."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from berts import PIECES, their_tokenizer, written
from regard.decode import in_order
from regard.errors import DataError, RecipeError
from regard.files.row import Row
from regard.interop.encoder import read_encoder
from regard.interop.pretrained import initialize
from regard.layers.inputs import tokens
from regard.models import Relater, RelaterConfig, Widths
from regard.models.relater import N_MARKS
from regard.tasks import Relation, RelationConfig
from regard.tasks.relation import RelationTally
from regard.tasks.task import evaluating
from regard.text.entity_marks import MARKS
from regard.text.tokenizer import EOS
from tiny import relater, stirred

LINES = [
    ("the <e1>fog</e1> hides a <e2>heron</e2>", "Hides(e1,e2)"),
    ("a <e1>heron</e1> in <e2>fog</e2>", "Hides(e2,e1)"),
    ("the <e1>river</e1> and the <e2>fog</e2>", "Other"),
]


def row(text: str, label: str | None = None, line: int = 1) -> Row:
    return Row({"text": text} | ({} if label is None else {"label": label}), "pairs.tsv", line)


def fitted(**changes: Any) -> Relation:
    tokenizer = {"kind": "word", "vocab_size": 60, "min_frequency": 1}
    config = RelationConfig.model_validate({"tokenizer": tokenizer, "max_length": 12} | changes)
    return Relation.fit(config, [row(*line, number) for number, line in enumerate(LINES, 2)])


@pytest.fixture
def task() -> Relation:
    return fitted()


def spoken(task: Relation, text: str) -> str:
    """What its pieces stand for, marks of entities by their names."""
    (example,) = task.encode([row(text)])
    names = dict(zip(range((task.widths.input["vocab"] - 4), task.widths.input["vocab"]), MARKS, strict=True))
    tokens = example.arrays["ids"].tolist()
    return " ".join(names.get(token) or task.tokenizer.tokens([token])[0] for token in tokens)


def test_the_space_before_a_sign_after_a_mark_is_shown_as_one() -> None:
    task = fitted(tokenizer={"kind": "bpe", "vocab_size": 300, "min_frequency": 1})
    (example,) = task.encode([row("the <e1>fog</e1>, the <e2>heron</e2>.")])
    model: nn.Module = stirred(relater("rnn").build(task.widths))
    with evaluating(model):
        (prediction,) = in_order(task.predict(model, task.collate([example])))
    shown = task.axes(example, prediction).by_name["input"].labels
    assert len(shown) == len(example.arrays["ids"])
    assert all(shown)
    assert shown[shown.index("</e1>") + 1] == "␣"


def test_marks_are_pieces_beyond_the_vocabulary(task: Relation) -> None:
    assert task.widths == Widths({"vocab": len(task.tokenizer) + N_MARKS}, {"classes": 3})
    assert "e1" not in "".join(task.tokenizer.names), "marks are no text to learn from"
    assert spoken(task, LINES[0][0]) == "the <e1> fog </e1> hides a <e2> heron </e2> </s>"
    assert spoken(task, "<e2>fog</e2> <e1>heron</e1>") == "<e2> fog </e2> <e1> heron </e1> </s>"


@pytest.mark.parametrize("kind", ["bpe", "unigram", "wordpiece"])
def test_pieces_are_those_of_the_text_without_marks(kind: str) -> None:
    task = fitted(tokenizer={"kind": kind, "vocab_size": 300, "min_frequency": 1}, max_length=100)
    (example,) = task.encode([row(LINES[0][0])])
    kept = [token for token in example.arrays["ids"].tolist() if token < (task.widths.input["vocab"] - 4)]
    assert kept == [*task.tokenizer.encode("the fog hides a heron").ids, EOS]


@pytest.mark.parametrize("kind", ["bpe", "unigram", "char", "word"])
@pytest.mark.parametrize(("first", "second"), [("清华", "王五"), ("rain", "coat")])
def test_no_piece_crosses_a_border(kind: str, first: str, second: str) -> None:
    """Though the vocabulary has one for both entities together."""
    together = first + second
    rows = [row(f"<e1>{together}</e1> {together} <e2>x</e2>", label) for label in ("a", "b") * 9]
    settings = {"tokenizer": {"kind": kind, "vocab_size": 400, "min_frequency": 1}, "max_length": 50}
    task = Relation.fit(RelationConfig.model_validate(settings), rows)
    said = spoken(task, f"x<e1>{first}</e1><e2>{second}</e2>x")
    one, other = (part.partition("</e")[0].replace("␣", "").replace(" ", "") for part in said.split("<e")[1:])
    assert one.partition(">")[2] in (first, "<unk>")
    assert other.partition(">")[2] in (second, "<unk>")


def test_of_a_long_text_what_is_near_the_entities_is_read(task: Relation) -> None:
    """Twelve pieces: four marks, the entities, then what is between them, then what is around."""
    text = "a a a a a the <e1>fog</e1> hides <e2>heron</e2> in river river river"
    assert spoken(task, text) == "a the <e1> fog </e1> hides <e2> heron </e2> in river river </s>"
    assert task.encode([row(text)])[0].notes["cut"]
    far = "<e1>fog</e1> the a a a a a a a in <e2>heron</e2> river"
    assert spoken(task, far) == "<e1> fog </e1> the a a a a in <e2> heron </e2> </s>"
    long = f"<e1>{'fog ' * 9}</e1> hides <e2>{'heron ' * 9}</e2>"
    assert spoken(task, long) == "<e1> fog fog fog fog </e1> <e2> heron heron heron heron </e2> </s>"


def test_a_bert_reads_its_own_marks_around(tmp_path: Path) -> None:
    written(tmp_path / "bert")
    tokenizer = read_encoder(tmp_path / "bert").tokenizer
    rows = [row(text, label) for text, label in LINES]
    task = Relation.fit(RelationConfig(), rows, tokenizer=tokenizer)
    (example,) = task.encode([row("<e1>amber</e1>, [SEP] <e2>unamber</e2>")])
    tokens = example.arrays["ids"].tolist()
    assert (tokens[0], tokens[-1]) == (PIECES.index("[CLS]"), PIECES.index("[SEP]"))
    assert tokens.count(PIECES.index("[SEP]")) == 1
    assert [token for token in tokens if token >= len(PIECES)] == [len(PIECES) + n for n in range(N_MARKS)]


def test_a_bert_with_marks_equals_transformers_with_added_tokens(tmp_path: Path) -> None:
    other, begins = written(tmp_path / "bert"), read_encoder(tmp_path / "bert")
    task = Relation.fit(RelationConfig(), [row(*line) for line in LINES], tokenizer=begins.tokenizer)
    model = RelaterConfig(encoder=begins.config).build(task.widths).eval()
    initialize(model, begins)
    tokenizer = their_tokenizer(tmp_path / "bert")
    tokenizer.func.add_tokens(list(MARKS), special_tokens=True)
    other.resize_token_embeddings(task.widths.input["vocab"], mean_resizing=False)
    with torch.no_grad():
        other.get_input_embeddings().weight[(task.widths.input["vocab"] - 4) :] = model.encoder.embed.marks
        for text in ("<e1>Amber</e1> birch, <e2>unamber</e2>!", "x <e2>delta</e2> <e1>embers</e1>"):
            batch = task.collate(task.encode([row(text)]))
            given = tokenizer(text, return_tensors="pt")
            assert batch.inputs["ids"].tolist() == given["input_ids"].tolist()
            states_BTD = model.encoder(batch.inputs).states_RTD
            torch.testing.assert_close(states_BTD, other(**given).last_hidden_state, rtol=0, atol=1e-5)


def by_hand(model: Relater, tokens_T: list[int], first_mark: int) -> Tensor:
    """One row alone, written out."""
    states_TD = model.encoder(tokens(torch.tensor([tokens_T]), torch.tensor([len(tokens_T)]))).states_RTD[0]
    pooled_D = model.pooling(states_TD[None], torch.tensor([len(tokens_T)]))[0]
    read = [states_TD[tokens_T.index(first_mark)], states_TD[tokens_T.index(first_mark + 2)]]
    joined = torch.cat([pooled_D, *read]) if model.begins else pooled_D
    hidden = torch.tanh(model.hidden.weight @ joined + model.hidden.bias)
    return model.output.weight @ hidden + model.output.bias


@pytest.mark.parametrize("entities", [True, False])
@pytest.mark.parametrize("kind", ["rnn", "transformer", "words", "bert"])
def test_the_model_reads_where_entities_begin(task: Relation, kind: str, entities: bool) -> None:
    model = stirred(relater(kind, entities=entities).build(task.widths))
    assert isinstance(model, Relater)
    batch = task.collate(task.encode([row(text) for text, _ in LINES]))
    with evaluating(model):
        logits_BC = model(batch.inputs)
        alone = [
            by_hand(model, example.arrays["ids"].tolist(), (task.widths.input["vocab"] - 4))
            for example in batch.examples
        ]
        torch.testing.assert_close(logits_BC, torch.stack(alone), rtol=1e-4, atol=1e-5)
        filled = batch.inputs["ids"].clone()
        for place, length in enumerate(batch.inputs["lengths"].tolist()):
            filled[place, length:] = task.widths.input["vocab"] - 4
        torch.testing.assert_close(model(tokens(filled, batch.inputs["lengths"])), logits_BC)


def test_the_loss_is_a_sum_over_texts(task: Relation) -> None:
    model = stirred(relater("rnn").build(task.widths))
    examples = task.encode([row(*line) for line in LINES])
    together = task.loss(model, task.collate(examples)).parts["examples"].sum
    alone = [task.loss(model, task.collate([example])).parts["examples"].sum for example in examples]
    torch.testing.assert_close(together, torch.stack(alone).sum())


def test_leaving_out_leaves_the_marks(task: Relation) -> None:
    (example,) = task.encode([row("<e1>fog</e1> in <e2>river</e2>")])
    batch = task.collate([example])
    tokens = example.arrays["ids"].tolist()
    found = task.leave_out(batch, task.axis(example), range(len(tokens) - 1))
    rows = zip(found.inputs["ids"].tolist(), found.inputs["lengths"].tolist(), strict=True)
    for piece, (left, length) in enumerate(rows):
        is_word = tokens[piece] < (task.widths.input["vocab"] - 4)
        assert left[:length] == (tokens[:piece] + tokens[piece + 1 :] if is_word else tokens)
    model: nn.Module = stirred(relater("rnn").build(task.widths))
    with evaluating(model):
        (prediction,) = in_order(task.predict(model, batch))
        forced = task.force(example, prediction)
        told = task.replay(model, forced)
        assert task.replay(model, task.leave_out(forced, task.axis(example), range(1)))[0] == pytest.approx(
            told[0].item(), abs=1e-5
        )
        (picture,) = task.pictures(model, forced)
    axes = task.axes(example, prediction).by_name
    assert axes["input"].labels == ("<e1>", "fog", "</e1>", "in", "<e2>", "river", "</e2>", "</s>")
    assert picture.weights_QK.shape == (1, len(axes["labels"].labels))
    torch.testing.assert_close(picture.weights_QK.sum(), torch.tensor(1.0))


def test_tallies_add_up_and_score() -> None:
    tally = RelationTally("Other", ["A(e1,e2)"], ["A(e1,e2)"]) + RelationTally(
        "Other", ["Other"], ["A(e2,e1)"]
    )
    assert tally.metrics() == {"macro_f1": pytest.approx(200 / 3), "accuracy": 50}
    assert tally.by_kind() == {"A": {"precision": 100, "recall": 50, "f1": pytest.approx(200 / 3), "n": 2}}
    assert "without Other" in tally.signatures()["macro_f1"]


def test_comes_back_from_disk(task: Relation, tmp_path: Path) -> None:
    task.save(tmp_path)
    loaded = Relation.load(task.config, tmp_path)
    assert (loaded.labels, loaded.widths) == (task.labels, task.widths)


def test_what_is_refused(task: Relation) -> None:
    with pytest.raises(DataError, match=r"pairs\.tsv:1: <e2> is missing; mark two entities once each"):
        task.encode([row("a <e1>heron</e1>")])
    with pytest.raises(DataError, match=r"label 'Hides\(e1, e2\)' does not occur in the training data"):
        task.encode([row("a <e1>heron</e1> in <e2>fog</e2>", "Hides(e1, e2)")])
    with pytest.raises(RecipeError, match="beam: a relater does not search"):
        task.with_settings(beam=2)
    with pytest.raises(DataError, match=r"only one label \('Other'\).*; a relater needs at least two"):
        Relation.fit(RelationConfig(), [row(LINES[2][0], "Other")])


def test_a_blank_line_is_no_fault(task: Relation) -> None:
    (example,) = task.encode([row("")])
    assert not task.is_answerable(example)
