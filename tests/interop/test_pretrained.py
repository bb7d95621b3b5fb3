"""Trainings that begin with an encoder that was trained before."""

from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from berts import PIECES, fine_tuning, their_tokenizer, written
from regard.check.examine import examine
from regard.errors import CheckpointError, RecipeError, RunError
from regard.files.row import rows_of
from regard.interop.encoder import read_encoder
from regard.interop.pretrained import load_pretrained, resolve
from regard.runs.prepare import prepare
from regard.training.stopping import Stop
from tiny import asked, classifying, planted, translating

PRESENT = {"hidden_size": 14, "num_hidden_layers": 2, "max_position_embeddings": 31}


@pytest.fixture
def data(tmp_path: Path) -> dict[str, Any]:
    return {"train": planted(tmp_path, 43), "valid": planted(tmp_path, 7, "valid")}


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    written(tmp_path / "bert")
    return tmp_path / "bert"


def test_sizes_vocabulary_and_weights_are_the_folders(
    tmp_path: Path, bert: Path, data: dict[str, Any]
) -> None:
    recipe = regard.Recipe.parse(fine_tuning(tmp_path, bert, data, pooling="pooler"))
    encoder = read_encoder(bert)
    with prepare(recipe) as run:
        begun = run.training.model.state_dict()
        assert len(run.training.task.tokenizers["text"]) == len(PIECES)
        assert run.recipe.model.encoder == encoder.config
        for name, tensor in encoder.tensors.items():
            assert torch.equal(begun[name], tensor), name
        assert {name for name in begun if name not in encoder.tensors} == {"output.weight", "output.bias"}


def test_a_fine_tuning_ends_in_a_model_of_its_own(tmp_path: Path, bert: Path, data: dict[str, Any]) -> None:
    recipe = regard.Recipe.parse(fine_tuning(tmp_path, bert, data))
    trained = regard.train(recipe, quiet=True)
    encoder = read_encoder(bert)
    assert not torch.equal(
        trained.model.state_dict()["encoder.embed.weight"], encoder.tensors["encoder.embed.weight"]
    )
    for path in bert.iterdir():
        path.unlink()
    again = regard.load(tmp_path / "run", device="cpu")
    answer = again.predict("amber birch")
    assert answer.text in ("yes", "no")
    explained = again.explain("amber birch")
    assert explained.maps[0].columns.labels == ("[CLS]", "amber", "birch", "[SEP]")


def test_a_finished_run_is_known_again(tmp_path: Path, bert: Path, data: dict[str, Any]) -> None:
    recipe = regard.Recipe.parse(fine_tuning(tmp_path, bert, data))
    regard.train(recipe, quiet=True)
    before = (tmp_path / "run" / "model" / "model.safetensors").stat().st_mtime_ns
    regard.train(recipe, quiet=True)
    (bert / "config.json").unlink()
    regard.train(tmp_path / "run" / "recipe.json", quiet=True)
    assert (tmp_path / "run" / "model" / "model.safetensors").stat().st_mtime_ns == before


def test_other_weights_are_another_run(tmp_path: Path, bert: Path, data: dict[str, Any]) -> None:
    recipe = regard.Recipe.parse(fine_tuning(tmp_path, bert, data))
    with prepare(recipe, stop=Stop()):
        pass
    written(bert)
    with pytest.raises(RunError, match=r"weights\.model\.safetensors has changed since this run began"):
        prepare(recipe)


def test_a_run_begins_with_another_runs_encoder(tmp_path: Path, data: dict[str, Any]) -> None:
    """Of whatever kind; with its vocabulary, and with its pooling where that is the same."""
    first = regard.train(classifying(tmp_path), quiet=True)
    (tmp_path / "second").mkdir()
    recipe = regard.Recipe.parse(
        fine_tuning(tmp_path / "second", tmp_path / "run", data, pooling="attention")
    )
    with prepare(recipe) as run:
        assert run.recipe.model.encoder == first.model_config.encoder
        assert run.training.task.tokenizers["text"].is_like(first.task.tokenizer)
        before, begun = first.model.state_dict(), run.training.model.state_dict()
        same = {name for name in before if torch.equal(before[name].cpu(), begun[name])}
        assert {name for name in before if name.startswith(("encoder.", "pooling."))} <= same
        assert "output.weight" not in same


def test_dropout_is_the_recipes(tmp_path: Path, bert: Path, data: dict[str, Any]) -> None:
    encoder = {"kind": "bert", "dropout": 0.25, "n_layers": 2}
    recipe = regard.Recipe.parse(fine_tuning(tmp_path, bert, data, encoder=encoder))
    agreed = resolve(recipe, load_pretrained(recipe))
    assert agreed.model.encoder.dropout == 0.25
    assert agreed.model.encoder.d_model == 14
    assert resolve(agreed, load_pretrained(agreed)) == agreed


CONTRADICTIONS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "kind": (
        {"encoder": {"kind": "rnn"}},
        {},
        r"model\.encoder\.kind is 'rnn', the encoder in \S+ is 'bert'",
    ),
    "sizes": ({"encoder": {"kind": "bert", "d_ff": 5}}, {}, r"model\.encoder\.d_ff is 5, .* has 17; leave"),
    "preset": ({"encoder": {"kind": "bert", "preset": "tiny"}}, {}, r"d_ff is 512, .* has 17; leave it out"),
    "vocabulary": ({}, {"tokenizer": {"vocab_size": 500}}, r"task\.tokenizer: the vocabulary comes from"),
    "lengths": (
        {},
        {"max_length": 30},
        r"^\S+/bert: max_positions leaves room for 29 tokens, but task.max_length is 30",
    ),
    "layers": ({"freeze": 99}, {}, r"^\S+/bert: model\.freeze \(99\) is more than the \d+ layers"),
}


@pytest.mark.parametrize(("model", "task", "sentence"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_a_recipe_may_not_contradict(
    tmp_path: Path,
    bert: Path,
    data: dict[str, Any],
    model: dict[str, Any],
    task: dict[str, Any],
    sentence: str,
) -> None:
    given = fine_tuning(tmp_path, bert, data, **model)
    given["task"] |= task
    with pytest.raises(RecipeError, match=sentence):
        prepare(regard.Recipe.parse(given))
    assert not (tmp_path / "run" / "task").exists()


def test_what_cannot_be_begun_with_is_said(tmp_path: Path, data: dict[str, Any]) -> None:
    def begun(folder: Path) -> None:
        prepare(regard.Recipe.parse(fine_tuning(tmp_path / "x", folder, data)))

    with pytest.raises(RunError, match="nowhere: no such folder; give a run, or a BERT from Hugging Face"):
        begun(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunError, match=r"empty: not a trained model of regard \(no config\.json\)"):
        begun(tmp_path / "empty")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.json").write_text('{"model_type": "gpt2"}')
    with pytest.raises(CheckpointError, match="model_type is 'gpt2', not 'bert'"):
        begun(tmp_path / "other")
    regard.train(translating(tmp_path), quiet=True)
    with pytest.raises(RunError, match=r"its model .* has no encoder"):
        begun(tmp_path / "run")


def test_check_measures_the_model_that_will_be_trained(
    tmp_path: Path, bert: Path, data: dict[str, Any]
) -> None:
    report = examine(regard.Recipe.parse(fine_tuning(tmp_path, bert, data)))
    assert report.trainable
    assert report.vocabulary == {"text": len(PIECES)}
    assert report.estimate is not None
    encoder = sum(tensor.numel() for name, tensor in read_encoder(bert).encoder_tensors.items())
    assert report.estimate.parameters == encoder + 2 * 14 + 2


def test_an_answerer_begins_as_the_folders_own(tmp_path: Path) -> None:
    """Pieces, marks, segments and scores are those of transformers, with its own tokenizer."""
    theirs = written(tmp_path / "bert", "BertForQuestionAnswering")
    told = fine_tuning(tmp_path, tmp_path / "bert", {"train": asked(tmp_path, 21)})
    told["task"] = {"kind": "answer", "max_length": 29, "overlap": 3, "max_question": 9}
    told["model"] = {"kind": "answerer", "init_from": str(tmp_path / "bert")}
    pair = {"question": "where is Cedar?", "context": "unamber in heath, cedar in 好 jetty."}
    with prepare(regard.Recipe.parse(told)) as run:
        task, model = run.training.task, run.training.model.eval()
        batch = task.collate(task.encode(rows_of([pair], *task.inputs)))
        found = their_tokenizer(tmp_path / "bert")(*pair.values(), return_tensors="pt")
        assert torch.equal(batch.inputs["ids"], found["input_ids"])
        assert torch.equal(batch.inputs["segments"], found["token_type_ids"])
        with torch.no_grad():
            start_RT, end_RT = model(batch.inputs)
            expected = theirs(**found)
    torch.testing.assert_close(start_RT, expected.start_logits, rtol=0, atol=1e-5)
    torch.testing.assert_close(end_RT, expected.end_logits, rtol=0, atol=1e-5)
