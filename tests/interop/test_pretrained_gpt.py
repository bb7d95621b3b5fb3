"""Language models that begin with one that was trained before: a GPT-2 from Hugging Face, or a run."""

from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from berts import fine_tuning, goes_on_where_it_stood
from berts import written as bert_written
from gpt2s import END, vocabulary, written
from regard.check.examine import examine
from regard.errors import CheckpointError, RecipeError, RunError
from regard.interop.decoder import read_decoder
from regard.interop.importing import import_folder
from regard.interop.pretrained import load_pretrained, resolve
from regard.runs.prepare import prepare
from tiny import classifying, continuing, gpt, talking, told


@pytest.fixture
def hf(tmp_path: Path) -> Path:
    written(tmp_path / "hf")
    return tmp_path / "hf"


def going_on(
    folder: Path, init_from: Path, task: dict[str, Any] | None = None, **model: Any
) -> dict[str, Any]:
    """A recipe that begins with a folder; `model` are its other settings."""
    folder.mkdir(exist_ok=True)
    (folder / "text.txt").write_text(told(211), "utf-8")
    return {
        "run": str(folder / "run"),
        "task": {"kind": "language_model", "max_length": 12} | (task or {}),
        "data": {"train": str(folder / "text.txt")},
        "model": {"kind": "gpt", "init_from": str(init_from)} | model,
        "train": {"max_steps": 6, "batch_tokens": 60, "lr": 1e-3, "log_every": 1, "device": "cpu"},
    }


def test_sizes_vocabulary_and_weights_are_the_folders(tmp_path: Path, hf: Path) -> None:
    found = read_decoder(hf)
    import_folder(hf, tmp_path / "own")
    for number, folder in enumerate((hf, tmp_path / "own")):
        with prepare(regard.Recipe.parse(going_on(tmp_path / str(number), folder))) as run:
            begun = run.training.model.state_dict()
            assert begun.keys() == found.tensors.keys()
            assert all(torch.equal(begun[name], tensor) for name, tensor in found.tensors.items())
            assert run.training.task.tokenizer.is_like(found.tokenizer)
            assert (run.recipe.model.d_model, run.recipe.model.max_positions) == (14, 31)
            end = vocabulary()[0][END]
            assert [block.arrays["ids"].tolist().count(end) for block in run.training.train].count(0) > 0


def test_it_ends_in_a_model_of_its_own_that_others_begin_with(tmp_path: Path, hf: Path) -> None:
    recipe = regard.Recipe.parse(going_on(tmp_path / "first", hf, dropout=0.25))
    assert str(recipe.model) == "gpt from hf", "not where it lies"
    first = regard.train(recipe, quiet=True)
    assert first.model_config.dropout == 0.25
    assert str(first.model_config) == "gpt from hf, 2 layers, d=14, 2 heads"
    assert not torch.equal(first.model.embed.weight, read_decoder(hf).tensors["embed.weight"])
    for path in hf.iterdir():
        path.unlink()
    again = regard.load(tmp_path / "first" / "run", device="cpu")
    assert again.predict("amber birch", beam=1).text == first.predict("amber birch", beam=1).text
    second = going_on(tmp_path / "second", tmp_path / "first" / "run")
    with prepare(regard.Recipe.parse(second)) as run:
        before, begun = first.model.state_dict(), run.training.model.state_dict()
        assert all(torch.equal(before[name], begun[name]) for name in before)


def test_a_run_with_a_vocabulary_of_ours_is_begun_with(tmp_path: Path) -> None:
    first = regard.train(continuing(tmp_path), quiet=True)
    recipe = regard.Recipe.parse(going_on(tmp_path / "second", tmp_path / "run"))
    with prepare(recipe) as run:
        assert run.training.task.tokenizer.is_like(first.task.tokenizer)
        before, begun = first.model.state_dict(), run.training.model.state_dict()
        assert all(torch.equal(before[name], begun[name]) for name in before)


def test_a_dialogue_begins_with_a_language_model_and_the_other_way_round(tmp_path: Path, hf: Path) -> None:
    given = continuing(tmp_path).model_dump(mode="json")
    given["model"] = gpt(max_positions=300).model_dump(mode="json")
    first = regard.train(regard.Recipe.parse(given), quiet=True)
    (tmp_path / "talk").mkdir()
    talk = talking(tmp_path / "talk", {"kind": "gpt", "init_from": str(tmp_path / "run")}).model_dump(
        mode="json", exclude_unset=True
    )
    del talk["task"]["tokenizer"]
    second = regard.train(regard.Recipe.parse(talk), quiet=True)
    assert second.task.source.tokenizer.is_like(first.task.tokenizer)
    with prepare(regard.Recipe.parse(going_on(tmp_path / "third", tmp_path / "talk" / "run"))) as run:
        assert torch.equal(run.training.model.state_dict()["embed.weight"], second.model.embed.weight)
    talk |= {"run": str(tmp_path / "fourth"), "model": {"kind": "gpt", "init_from": str(hf)}}
    talk["task"]["max_length"] = 8
    with pytest.raises(RecipeError, match="a dialogue needs a vocabulary with the marks of regard's own"):
        prepare(regard.Recipe.parse(talk))


def test_an_interrupted_run_ends_with_the_same_bits(tmp_path: Path, hf: Path) -> None:
    assert goes_on_where_it_stood(regard.Recipe.parse(going_on(tmp_path / "x", hf)))


def test_what_is_settled_stays(tmp_path: Path, hf: Path) -> None:
    recipe = regard.Recipe.parse(going_on(tmp_path / "x", hf, dropout=0.3, n_layers=2))
    agreed = resolve(recipe, load_pretrained(recipe))
    assert (agreed.model.dropout, agreed.model.d_ff, agreed.model.init_from) == (0.3, 17, str(hf))
    assert resolve(agreed, load_pretrained(agreed)) == agreed


CONTRADICTIONS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "sizes": ({"d_ff": 5}, {}, r"model\.d_ff is 5, the model in \S+ has 17; leave it out"),
    "preset": ({"preset": "tiny"}, {}, r"model\.d_ff is 512, .* has 17; leave it out"),
    "positions": ({"position": "rotary"}, {}, r"model\.position is 'rotary', .* has 'learned'"),
    "vocabulary": ({}, {"tokenizer": {"kind": "char"}}, r"task\.tokenizer: the vocabulary comes from"),
    "lengths": ({}, {"max_length": 31}, "room for 30 tokens, but task.max_length is 31"),
}


@pytest.mark.parametrize(("model", "task", "sentence"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_a_recipe_may_not_contradict(
    tmp_path: Path, hf: Path, model: dict[str, Any], task: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(RecipeError, match=sentence):
        prepare(regard.Recipe.parse(going_on(tmp_path / "x", hf, task, **model)))
    assert not (tmp_path / "x" / "run" / "task").exists()


def test_other_weights_are_another_run(tmp_path: Path, hf: Path) -> None:
    recipe = regard.Recipe.parse(going_on(tmp_path / "x", hf))
    with prepare(recipe):
        pass
    written(hf)
    with pytest.raises(RunError, match=r"weights\.model\.safetensors has changed since this run began"):
        prepare(recipe)


def test_what_cannot_be_begun_with_is_said(tmp_path: Path, hf: Path) -> None:
    def begun(folder: Path) -> None:
        prepare(regard.Recipe.parse(going_on(tmp_path / "x", folder)))

    with pytest.raises(RunError, match="nowhere: no such folder; give a run, or a GPT-2 from Hugging Face"):
        begun(tmp_path / "nowhere")
    bert_written(tmp_path / "bert")
    with pytest.raises(CheckpointError, match="model_type is 'bert', not 'gpt2'"):
        begun(tmp_path / "bert")
    regard.train(classifying(tmp_path), quiet=True)
    with pytest.raises(RunError, match=r"its model .* is not a language model"):
        begun(tmp_path / "run")
    data = {"train": str(tmp_path / "train.csv")}
    with pytest.raises(CheckpointError, match="model_type is 'gpt2', not 'bert'"):
        prepare(regard.Recipe.parse(fine_tuning(tmp_path / "y", hf, data)))


def test_check_measures_the_model_that_will_be_trained(tmp_path: Path, hf: Path) -> None:
    report = examine(regard.Recipe.parse(going_on(tmp_path / "x", hf)))
    assert report.trainable
    assert report.vocabulary == {"text": len(vocabulary()[0])}
    assert report.estimate is not None
    assert report.estimate.parameters == sum(tensor.numel() for tensor in read_decoder(hf).tensors.values())
