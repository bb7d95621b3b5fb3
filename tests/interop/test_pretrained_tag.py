"""Taggers that begin with an encoder that was trained before."""

from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from berts import PIECES, fine_tuning, their_tokenizer, written
from regard.decode import in_order
from regard.errors import RecipeError
from regard.fields.axis import ended
from regard.files.row import Row
from regard.interop.encoder import read_encoder
from regard.models import Tagger, TaggerConfig
from regard.models.layer_depth import layer_depth
from regard.runs.prepare import prepare
from regard.tasks import Tag, TagConfig
from regard.tasks.task import evaluating
from tiny import classifying, named, tagging

LINES = [("unamber 我 , birch", "B-X O O B-X"), ("Ember grover heath !", "B-X I-X O O")]
CLS, SEP, UNK = (PIECES.index(mark) for mark in ("[CLS]", "[SEP]", "[UNK]"))


def recipe(folder: Path, init_from: Path, *, max_length: int = 20, **model: Any) -> regard.Recipe:
    data = {"train": named(folder, 43), "valid": named(folder, 7, "valid")}
    given = fine_tuning(folder, init_from, data)
    given["task"] = {"kind": "tag", "max_length": max_length}
    given["model"] = {"kind": "tagger", "init_from": str(init_from), "dropout": 0.0} | model
    return regard.Recipe.parse(given)


def task_of(folder: Path, max_length: int = 20) -> Tag:
    rows = [Row({"text": text, "tags": tags}, "x.conll", 1) for text, tags in LINES]
    return Tag.fit(TagConfig(max_length=max_length), rows, tokenizer=read_encoder(folder).tokenizer)


def test_answers_equal_transformers(tmp_path: Path) -> None:
    """From the text to the probability: its marks, its pieces, the first of each word."""
    other = written(tmp_path / "bert", "BertForTokenClassification", num_labels=3)
    task, found = task_of(tmp_path / "bert"), read_encoder(tmp_path / "bert")
    model = TaggerConfig(encoder=found.config, crf=False, dropout=0.0).build(task.widths)
    assert isinstance(model, Tagger)
    model.encoder.load_state_dict(found.encoder_tensors)
    model.output.load_state_dict(other.classifier.state_dict())
    tokenizer = their_tokenizer(tmp_path / "bert")
    with evaluating(model):
        batch = task.collate(task.encode([Row({"text": text}, "x", 1) for text, _ in LINES]))
        scores_BNC = model.scores(batch.inputs)
        answers = in_order(task.predict(model, batch))
        for row, (text, _) in enumerate(LINES):
            given = tokenizer(text.split(" "), is_split_into_words=True, return_tensors="pt")
            assert (
                batch.inputs["ids"][row, : batch.inputs["lengths"][row]].tolist()
                == given["input_ids"][0].tolist()
            )
            words = given.word_ids(0)
            first = [words.index(n) for n in range(len(text.split(" ")))]
            logits_NC = other(**given).logits[0, first]
            torch.testing.assert_close(scores_BNC[row, : len(first)], logits_NC, rtol=0, atol=1e-5)
            likely_N, best_N = logits_NC.softmax(-1).max(-1)
            assert answers[row].tags == tuple(task.labels[tag] for tag in best_N.tolist())
            assert answers[row].probabilities == pytest.approx(likely_N.tolist(), abs=1e-5)


def test_windows_stand_between_the_marks(tmp_path: Path) -> None:
    written(tmp_path / "bert")
    task = task_of(tmp_path / "bert", max_length=6)
    (example,) = task.encode([Row({"text": "amber birch cedar delta ember fjord grove heath inlet"}, "x", 1)])
    batch = task.collate([example])
    assert len(batch.inputs["ids"]) > 1
    assert task.size(example) == (9 + 2,)
    for window, length in zip(batch.inputs["ids"].tolist(), batch.inputs["lengths"].tolist(), strict=True):
        assert (window[0], window[length - 1]) == (CLS, SEP)
    assert batch.inputs["ids"].flatten()[batch.inputs["places"][0]].tolist() == example.arrays["ids"].tolist()


def test_a_mark_is_never_made_unknown(tmp_path: Path) -> None:
    written(tmp_path / "bert")
    task = task_of(tmp_path / "bert")
    batch = task.collate(task.encode([Row({"text": "amber birch"}, "x", 1)]))
    axis = ended("text", ("[CLS]", "amber", "birch", "[SEP]"))
    amber, birch = (PIECES.index(word) for word in ("amber", "birch"))
    assert task.leave_out(batch, axis, range(3)).inputs["ids"].tolist() == [
        [CLS, amber, birch, SEP],
        [CLS, UNK, birch, SEP],
        [CLS, amber, UNK, SEP],
    ]
    assert task.leave_out(batch, axis, range(2, 3)).inputs["ids"].tolist() == [[CLS, amber, UNK, SEP]]


@pytest.mark.parametrize("freeze", [None, 0, 1])
def test_a_tagger_is_fine_tuned(tmp_path: Path, freeze: int | None) -> None:
    written(tmp_path / "bert")
    begins = read_encoder(tmp_path / "bert")
    trained = regard.train(recipe(tmp_path, tmp_path / "bert", freeze=freeze), quiet=True)
    after = trained.model.state_dict()
    for name, tensor in begins.tensors.items():
        if name in after:
            stays = freeze is not None and layer_depth(name) <= freeze
            assert torch.equal(after[name], tensor) == stays, name
    again = regard.load(tmp_path / "run", device="cpu")
    assert str(again.model_config).startswith("bert tagger from ")
    explained = again.explain("amber birch ember")
    assert explained.main == "left-out"
    assert explained.map("left-out").columns.labels == ("[CLS]", "amber", "birch", "ember", "[SEP]")


def test_lower_layers_of_a_tagger_take_shorter_steps(tmp_path: Path) -> None:
    written(tmp_path / "bert")
    plain = recipe(tmp_path, tmp_path / "bert")
    decayed = plain.model_copy(update={"train": plain.train.model_copy(update={"layer_decay": 0.5})})
    with prepare(decayed) as run:
        found = run.training.rates
    assert found["output.weight"] == found["crf.step_CC"] == 1
    assert found["encoder.stack.layers.1.ff_norm.bias"] == pytest.approx(0.5)
    assert found["encoder.embed.weight"] == pytest.approx(0.125)


def test_tasks_begin_with_one_anothers_encoders(tmp_path: Path) -> None:
    """A tagger with a classifier's, and a tagger with a tagger's."""
    first = regard.train(classifying(tmp_path), quiet=True)
    (tmp_path / "second").mkdir()
    second = regard.train(recipe(tmp_path / "second", tmp_path / "run"), quiet=True)
    assert second.model_config.encoder == first.model_config.encoder
    (tmp_path / "third").mkdir()
    with prepare(recipe(tmp_path / "third", tmp_path / "second" / "run")) as run:
        begun = run.training.model.state_dict()
        for name, tensor in second.model.state_dict().items():
            assert not name.startswith("encoder.") or torch.equal(begun[name], tensor.cpu()), name


def test_a_tagger_from_scratch_describes_itself_as_before(tmp_path: Path) -> None:
    assert str(tagging(tmp_path).model) == "rnn tagger, d=6, CRF"
    assert str(TaggerConfig(init_from="minilm", crf=False)) == "tagger from minilm"


def test_layers_that_are_not_there_are_refused(tmp_path: Path) -> None:
    written(tmp_path / "bert")
    with pytest.raises(RecipeError, match=r"model\.freeze \(3\) is more than the 2 layers of the encoder"):
        prepare(recipe(tmp_path, tmp_path / "bert", freeze=3))
