"""Relations from files to answers: trained, scored, asked about raw text, explained, begun with, refused."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from berts import fine_tuning, written
from regard.errors import DataError, RecipeError, RunError
from regard.interop.encoder import read_encoder
from regard.runs.prepare import prepare
from regard.text.entity_pairs import MOST_ENTITIES, pairs
from tiny import named, paired, planted, recipe, relater, relating, tagger

TEXT = "ember birch amber knoll inlet"
SPANS = [
    {"text": word, "kind": "X", "start": TEXT.index(word), "end": TEXT.index(word) + len(word)}
    for word in ("ember", "amber", "inlet")
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A relater and a tagger that have learnt."""
    folders = {name: tmp_path_factory.mktemp(name) for name in ("pairs", "names")}
    data: dict[str, Any] = {
        split: paired(folders["pairs"], n, split)
        for split, n in (("train", 900), ("valid", 40), ("test", 40))
    }
    data["columns"] = {"label": 1, "text": 2}
    model = relater("rnn", encoder={"kind": "rnn", "d_embed": 16, "d_hidden": 24, "dropout": 0.0})
    train = {"max_steps": 150, "batch_tokens": 300, "lr": 1e-2, "warmup": 10}
    regard.train(recipe(folders["pairs"], data, model.model_dump(), "relation", **train), quiet=True)
    names = {"train": named(folders["names"], 300), "valid": named(folders["names"], 30, "valid")}
    finder = tagger("words", d_embed=16)
    regard.train(recipe(folders["names"], names, finder.model_dump(), "tag", **train), quiet=True)
    return {name: folder / "run" for name, folder in folders.items()}


def test_a_relater_learns(runs: dict[str, Path]) -> None:
    scores = regard.load(runs["pairs"]).metrics["scores"]
    assert scores["test"]["macro_f1"] > 90
    found = regard.load(runs["pairs"]).evaluate(runs["pairs"].parent / "test.tsv", {"label": 1, "text": 2})
    assert found.metrics["macro_f1"] == pytest.approx(scores["test"]["macro_f1"])
    assert set(found.by_kind) == {"Rules"}
    assert "SemEval-2010 task 8" in found.signatures["macro_f1"]


def test_raw_text_is_asked_about_pair_by_pair(runs: dict[str, Path]) -> None:
    relations = regard.Relations.load(runs["pairs"], runs["names"], device="cpu")
    found = relations(TEXT)
    assert [one["text"] for one in found.entities] == ["ember", "amber", "inlet"]
    assert [(one["e1"]["text"], one["text"], one["e2"]["text"]) for one in found.relations] == [
        ("ember", "Rules(e2,e1)", "amber"),
        ("ember", "Rules(e1,e2)", "inlet"),
        ("amber", "Rules(e1,e2)", "inlet"),
    ]
    assert found.text.startswith("ember | Rules(e2,e1) | amber; ember | ")
    assert json.loads(json.dumps(found.to_json()))["relations"][0]["e2"]["start"] == 12
    alone = relations.relater.predict("<e1>ember</e1> birch <e2>amber</e2> knoll inlet")
    assert found.relations[0]["probability"] == alone.to_json()["probability"]
    same = relations("birch amber cedar knoll amber")
    assert (len(same.entities), same.relations) == (2, ()), "what is none is not told"


def test_both_ways(runs: dict[str, Path]) -> None:
    once = [pair.question for pair in pairs(TEXT, SPANS, "input:1", both_ways=False)]
    assert once == [
        "<e1>ember</e1> birch <e2>amber</e2> knoll inlet",
        "<e1>ember</e1> birch amber knoll <e2>inlet</e2>",
        "ember birch <e1>amber</e1> knoll <e2>inlet</e2>",
    ]
    twice = [pair.question for pair in pairs(TEXT, SPANS, "input:1", both_ways=True)]
    assert twice[::2] == once
    assert twice[1] == "<e2>ember</e2> birch <e1>amber</e1> knoll inlet"
    relater = regard.load(runs["pairs"])
    relater.task.config = relater.task.config.model_copy(update={"both_ways": True})
    asking = regard.Relations(relater, regard.load(runs["names"]))
    assert len(asking("birch amber cedar inlet").relations) == 2


def test_nothing_is_asked_about_what_cannot_be_seen() -> None:
    unseen = {"text": "\u200b", "kind": "TREE", "start": 5, "end": 6}
    assert pairs("amber\u200b", [SPANS[0], unseen], "input:1", both_ways=True) == []


def test_a_text_that_was_too_long_for_a_pair_says_so(runs: dict[str, Path]) -> None:
    relations = regard.Relations.load(runs["pairs"], runs["names"], device="cpu")
    assert "input_cut" not in relations("amber birch inlet").to_json()
    assert relations(f"amber {'birch ' * 300} inlet").to_json()["input_cut"]


def test_what_cannot_be_paired_is_said(runs: dict[str, Path], tmp_path: Path) -> None:
    relations = regard.Relations.load(runs["pairs"], runs["names"], device="cpu")
    with pytest.raises(DataError, match="input:1: already has entity marks; leave out the tagger"):
        relations("<e1>amber</e1> and <e2>birch</e2>")
    many = "amber birch " * (MOST_ENTITIES + 1)
    with pytest.raises(
        DataError, match="input:2: has 17 entities, but at most 16 can be paired; split it into sentences"
    ):
        list(relations.stream([TEXT, many]))
    with pytest.raises(RunError, match="tag models relate nothing; give a run of the task relation"):
        regard.Relations.load(runs["names"], runs["names"])
    with pytest.raises(RunError, match="relation models find no entities; give a run of the task tag"):
        regard.Relations.load(runs["pairs"], runs["pairs"])


def test_which_words_spoke_for_it(runs: dict[str, Path]) -> None:
    found = regard.load(runs["pairs"]).explain("birch <e1>amber</e1> cedar <e2>ember</e2>")
    assert found.output == "Rules(e1,e2)"
    assert {one.site for one in found.maps} == {"pooling.attention", "labels"}
    labels = found.map("pooling.attention").columns.labels
    assert labels == ("birch", "<e1>", "amber", "</e1>", "cedar", "<e2>", "ember", "</e2>", "</s>")
    assert found.trust is not None
    assert "<e1>" not in found.to_html(), "what a text holds is no markup"
    assert found.to_svg().startswith("<svg")


def test_without_pooled_attention_it_is_measured(tmp_path: Path) -> None:
    given = relating(tmp_path)
    model = relater("rnn", pooling="mean")
    trained = regard.train(given.model_copy(update={"model": model}), quiet=True)
    found = trained.explain("<e1>amber</e1> cedar <e2>ember</e2>")
    assert found.main == "left-out"
    marks = [n for n, word in enumerate(found.map("left-out").columns.labels) if "<" in word]
    assert not found.map("left-out").weights_HQK[0, 0, marks].any(), "marks are no words"


def beginning(folder: Path, name: str, init_from: Path, **model: Any) -> regard.Recipe:
    data = {"train": paired(folder, 43), "valid": paired(folder, 7, "valid")}
    given = fine_tuning(folder, init_from, data | {"columns": {"label": 1, "text": 2}})
    given |= {"run": str(folder / name), "task": {"kind": "relation", "max_length": 20}}
    given["model"] = {"kind": "relater", "init_from": str(init_from)} | model
    return regard.Recipe.parse(given)


def weights(asked: regard.Recipe) -> dict[str, torch.Tensor]:
    """Before the first step."""
    with prepare(asked) as run:
        return run.training.model.state_dict()


def test_a_relater_begins_with_a_bert_and_lends_its_encoder(tmp_path: Path) -> None:
    written(tmp_path / "bert")
    begins = read_encoder(tmp_path / "bert")
    asked = beginning(tmp_path, "run", tmp_path / "bert")
    first = weights(asked)
    assert torch.equal(first["encoder.embed.weight"], begins.tensors["encoder.embed.weight"])
    assert len(first["encoder.embed.marks"]) == 4
    assert str(regard.train(asked, quiet=True).model_config).startswith("bert relater from ")
    lent = read_encoder(tmp_path / "run")
    assert regard.Embedder(lent, torch.device("cpu"))(["amber"]).shape == (1, 14)
    again = weights(beginning(tmp_path, "again", tmp_path / "run"))
    assert torch.equal(again["encoder.embed.marks"], lent.tensors["encoder.embed.marks"])
    texts = fine_tuning(tmp_path, tmp_path / "run", {"train": planted(tmp_path, 43)})
    texts |= {"run": str(tmp_path / "texts"), "task": {"kind": "classify", "max_length": 9}}
    classifier = weights(regard.Recipe.parse(texts))
    assert torch.equal(classifier["encoder.embed.weight"], lent.tensors["encoder.embed.weight"])
    assert "encoder.embed.marks" not in classifier


@pytest.mark.parametrize("kept", [{"freeze": 0}, {"freeze": 1}, {"lora": 2}], ids=str)
def test_marks_learn_while_the_encoder_is_frozen(tmp_path: Path, kept: dict[str, int]) -> None:
    written(tmp_path / "bert")
    with prepare(beginning(tmp_path, "run", tmp_path / "bert", **kept)) as run:
        model = run.training.model
        before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        for _ in run.events():
            pass
        after = model.state_dict()
    assert torch.equal(after["encoder.embed.weight"], before["encoder.embed.weight"])
    moved_4 = (after["encoder.embed.marks"] - before["encoder.embed.marks"]).abs().amax(1)
    assert (moved_4 > 0).all()


def test_only_relaters_relate(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="task 'relation' cannot use model 'tagger'; use relater"):
        recipe(tmp_path, {"train": "x"}, tagger("rnn").model_dump(), "relation")
    trained = regard.train(relating(tmp_path), quiet=True)
    with pytest.raises(
        RunError, match="hf: a relater has no counterpart in Hugging Face's models; export to onnx"
    ):
        trained.export(tmp_path / "away", "hf", ["<e1>a</e1> <e2>b</e2>"])
    with pytest.raises(DataError, match="input:1: <e1> is missing; mark two entities once each"):
        trained.export(tmp_path / "away", "onnx", ["a b"])


def test_tags_that_mark_nothing_find_nothing(tmp_path: Path, runs: dict[str, Path]) -> None:
    (tmp_path / "pos.conll").write_text("amber N\nbirch V\n\ncedar N\n\n" * 30)
    asked = recipe(tmp_path, {"train": str(tmp_path / "pos.conll")}, tagger("words").model_dump(), "tag")
    regard.train(asked, quiet=True)
    with pytest.raises(RunError, match="the tagger's tags mark no spans, so it finds no entities"):
        regard.Relations.load(runs["pairs"], tmp_path / "run")
