"""Pretraining from documents to an encoder that others begin with, through kills, pages, exports and HTTP."""

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from berts import written
from regard.api.trained import Trained
from regard.check.examine import examine
from regard.errors import CheckpointError, DataError, RecipeError
from regard.files.row import rows_of
from regard.interop.encoder import read_encoder
from regard.interop.pretrained import resolve
from regard.models.encoders import WordsEncoderConfig
from regard.runs.prepare import prepare
from regard.training.events import Step
from served import served
from tiny import planted, pretraining, storied

LEARNING = {"max_steps": 300, "eval_every": 75, "lr": 1e-2, "schedule": "constant", "batch_tokens": 600}
BLANK = "amber [MASK] cedar. delta [MASK] fjord."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("documents")


@pytest.fixture(scope="module")
def trained(folder: Path) -> Trained:
    recipe = pretraining(folder, **LEARNING)
    storied(folder, 400)
    storied(folder, 40, "test")
    return regard.train(recipe, quiet=True)


def test_it_learns_and_is_scored(trained: Trained, folder: Path) -> None:
    scores = trained.metrics["scores"]
    assert set(scores) == {"valid", "test"}
    assert set(scores["valid"]) == {"loss", "mlm_accuracy", "mlm_perplexity", "nsp_accuracy"}
    assert scores["test"]["mlm_accuracy"] > 25, "of eleven words, all equally likely, a guess is 9"
    assert scores["test"]["mlm_perplexity"] < 10
    events = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text("utf-8").splitlines()]
    samples = [event["samples"] for event in events if event["event"] == "evaluated"]
    assert samples[0][0].keys() == {"input", "expected", "answer"}
    shown = samples[-1][0]
    assert len(shown["expected"].split()) == len(shown["answer"].split()) >= 1
    again = trained.evaluate(str(folder / "test.txt"))
    assert again.metrics == pytest.approx(scores["test"], rel=1e-5)


def test_the_vocabulary_is_a_berts(trained: Trained) -> None:
    tokenizer = trained.task.tokenizers["text"]
    assert tokenizer.names[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert tokenizer.special.mask == 4
    ids = tokenizer.ids(["Amber [SEP] [MASK]"])[0]
    assert not {2, 3, 4} & set(ids), "a text that spells a mark is a text"


def test_an_interrupted_run_ends_with_the_same_bits(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    (tmp_path / "broken").mkdir()
    settings = {"max_steps": 60, "save_every": 7, "eval_every": 25}
    regard.train(pretraining(tmp_path / "whole", **settings), quiet=True)
    broken = pretraining(tmp_path / "broken", **settings)
    epochs = set()
    for stop_after in (10, 23, 100):
        with prepare(broken) as run:
            for number, event in enumerate(run.events()):
                epochs |= {event.epoch} if isinstance(event, Step) else set()
                if number == stop_after:
                    break
    assert len(epochs) > 1
    weights = [(tmp_path / name / "run/model/model.safetensors").read_bytes() for name in ("whole", "broken")]
    assert weights[0] == weights[1]


def test_parts_of_a_batch_change_nothing(tmp_path: Path) -> None:
    """Though hidden pieces and pairs are counted apart, and some parts have no pair."""
    losses = []
    for parts in (1, 3):
        (tmp_path / str(parts)).mkdir()
        recipe = pretraining(tmp_path / str(parts), accumulate=parts, max_steps=3)
        recipe = recipe.model_copy(
            update={"model": recipe.model.model_copy(update={"encoder": _dry(recipe)})}
        )
        with prepare(recipe) as run:
            losses.append([event.loss for event in run.events() if isinstance(event, Step)])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def _dry(recipe: regard.Recipe) -> Any:
    encoder = recipe.model.encoder  # type: ignore[union-attr]
    return encoder.model_copy(update={"dropout": 0.0})


def test_blanks_are_filled(trained: Trained) -> None:
    filled = trained.predict(BLANK)
    assert "[MASK]" not in filled.text
    assert len(filled.blanks) == 2
    for blank in filled.blanks:
        assert BLANK[blank.start : blank.end] == "[MASK]"
        likely = [one.probability for one in blank.candidates]
        assert len(likely) == 5
        assert likely == sorted(likely, reverse=True)
        assert 0 < sum(likely) <= 1 + 1e-6
    assert all(blank.candidates[0].text in filled.text for blank in filled.blanks)
    together = trained.predict(["birch [MASK]", BLANK, "[MASK]", ""])
    assert together[1].text == filled.text
    assert together[3].text == ""
    told = filled.to_json()
    assert told["blanks"][0]["candidates"][0].keys() == {"text", "probability"}


def test_a_piece_that_continues_a_word_stands_without_a_space(trained: Trained) -> None:
    task: Any = trained.task
    names = task.tokenizer.names
    continued = next(i for i, name in enumerate(names) if name.startswith("##"))
    (row,) = rows_of(["amber [MASK] cedar"], "text")
    found = task._filled(row, [[continued]], [[1.0]])
    assert found.text == f"amber{names[continued][2:]} cedar"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("amber birch", r"input:1: the text has no \[MASK\]; write it where a word is to be found"),
        ("[MASK] " * 22, r"the text has 22 tokens, this model reads 21 at most \(task\.max_length\)"),
    ],
)
def test_what_cannot_be_filled_is_said(trained: Trained, text: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        trained.predict(text)
    with pytest.raises(RecipeError, match="beam: a pretrained BERT does not search"):
        trained.predict("[MASK]", beam=3)


def test_it_explains_itself(trained: Trained) -> None:
    explained = trained.explain(BLANK)
    layers = [f"encoder.stack.layers.{n}.self" for n in range(2)]
    assert explained.sites == [*layers, "left-out", "candidates"]
    assert explained.main == "left-out"
    spoke = explained.map("left-out")
    assert spoke.columns.labels[:3] == ("[CLS]", "amber", "[MASK]")
    assert len(spoke.rows) == 2
    weights_QK = spoke.head(None)
    assert weights_QK[:, [0, 2, -1]].max() < 1e-3, "marks and the blank itself say nothing"
    assert weights_QK.sum(1) == pytest.approx(1.0)
    likely = explained.map("candidates")
    best = {name: n for n, name in enumerate(likely.columns.labels)}
    for row, name in enumerate(likely.rows.labels):
        assert likely.head(None)[row].argmax() == best[name]
    assert explained.trust is not None


def test_a_classifier_begins_with_it(trained: Trained, folder: Path, tmp_path: Path) -> None:
    recipe = regard.Recipe.parse(fine_tuning(tmp_path, folder / "run"))
    encoder = read_encoder(folder / "run")
    with prepare(recipe) as run:
        begun = run.training.model.state_dict()
        assert run.training.task.tokenizers["text"].is_like(trained.task.tokenizers["text"])
        taken = [name for name in begun if name.startswith(("encoder.", "pooling."))]
        assert all(torch.equal(begun[name], encoder.tensors[name]) for name in taken)
        assert set(begun) - set(taken) == {"output.weight", "output.bias"}
    assert regard.train(recipe, quiet=True).predict("amber birch").text in ("yes", "no")


def fine_tuning(folder: Path, begins: Path) -> dict[str, Any]:
    return {
        "run": str(folder / "tuned"),
        "task": {"kind": "classify", "max_length": 20},
        "data": {"train": planted(folder, 43), "valid": planted(folder, 7, "valid")},
        "model": {"kind": "classifier", "init_from": str(begins), "pooling": "pooler"},
        "train": {"max_steps": 4, "batch_tokens": 200, "warmup": 3, "device": "cpu"},
    }


def test_texts_of_which_nothing_is_known_are_not_scored(trained: Trained, tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("Ω Ψ\nΞ\n\nΔ Θ\nΛ\n", "utf-8")
    with pytest.raises(DataError, match="nothing could be hidden: the vocabulary knows no token"):
        trained.evaluate([str(tmp_path / "other.txt")])


def test_it_embeds(trained: Trained, folder: Path) -> None:
    vectors = regard.Embedder.load(folder / "run", "cpu")(["amber birch", "cedar"])
    assert vectors.shape == (2, 12)


def test_pretraining_goes_on_from_another(trained: Trained, folder: Path, tmp_path: Path) -> None:
    """With all of it, its vocabulary too; which must have something to hide words behind."""
    given = pretraining(tmp_path).model_dump(mode="json")
    given["model"] = {"kind": "bert_pretraining", "init_from": str(folder / "run")}
    del given["task"]["tokenizer"]
    with prepare(regard.Recipe.parse(given)) as run:
        begun = run.training.model.state_dict()
        before = trained.model.state_dict()
        assert begun.keys() == before.keys()
        assert all(torch.equal(begun[name], before[name]) for name in before)
    (tmp_path / "other").mkdir()
    bert = {"kind": "bert", "d_model": 12, "n_heads": 3, "d_ff": 11, "max_positions": 300}
    other = fine_tuning(tmp_path / "other", folder) | {"run": str(tmp_path / "other" / "run")}
    other["model"] = {"kind": "classifier", "encoder": bert}
    regard.train(regard.Recipe.parse(other), quiet=True)
    given["run"], given["model"]["init_from"] = str(tmp_path / "third"), str(tmp_path / "other" / "run")
    with pytest.raises(RecipeError, match=r"its vocabulary has no \[MASK\]"):
        prepare(regard.Recipe.parse(given))


def test_only_a_bert_is_pretrained_further(trained: Trained, folder: Path, tmp_path: Path) -> None:
    given = pretraining(tmp_path).model_dump(mode="json")
    given["model"] = {"kind": "bert_pretraining", "init_from": str(folder / "run")}
    del given["task"]["tokenizer"]
    other = replace(read_encoder(folder / "run"), config=WordsEncoderConfig())
    with pytest.raises(
        RecipeError, match=r"model\.init_from: the encoder in .* is 'words', but pretraining needs 'bert'"
    ):
        resolve(regard.Recipe.parse(given), other)


@pytest.mark.parametrize(
    ("architecture", "anew"),
    [
        ("BertForPreTraining", ()),
        ("BertForMaskedLM", ("pooling.", "follows.")),
        ("BertModel", ("hidden", "output_bias", "follows.")),
    ],
)
def test_pretraining_goes_on_from_a_foreign_one(
    tmp_path: Path, architecture: str, anew: tuple[str, ...]
) -> None:
    """What the folder has is taken; the rest does not begin with its numbers."""
    written(tmp_path / "hf", architecture)
    given = pretraining(tmp_path).model_dump(mode="json")
    given["model"] = {"kind": "bert_pretraining", "init_from": str(tmp_path / "hf")}
    del given["task"]["tokenizer"]
    with prepare(regard.Recipe.parse(given)) as run:
        begun = run.training.model.state_dict()
        found = read_encoder(tmp_path / "hf").tensors
        taken = {name for name in begun if name in found and torch.equal(begun[name], found[name])}
        assert begun.keys() - taken == {name for name in begun if name.startswith(anew)}


def test_it_is_served(trained: Trained, folder: Path, tmp_path: Path) -> None:
    with served([folder / "run"], tmp_path / "log") as server:
        reply = server.post("/v1/fill", text=[BLANK, "[MASK]"])
        expected = trained.predict([BLANK, "[MASK]"])
        assert [one["text"] for one in reply.json["answers"]] == [one.text for one in expected]
        assert reply.json["answers"][0]["blanks"][1]["start"] == BLANK.rindex("[MASK]")
        (about,) = server.get("/v1/models").json["models"]
        assert (about["task"], about["heads"] > 0) == ("pretrain", True)
        explained = server.post("/v1/explain", text=BLANK).json["answer"]["attention"]
        assert [one["site"] for one in explained["maps"]][-1] == "candidates"
        whole = server.post("/v1/fill", text="amber")
        assert (whole.status, whole.code) == (422, "cannot_be_done")
        assert "the text has no [MASK]" in whole.json["error"]["message"]


def test_documents_come_in_many_files_and_formats(tmp_path: Path) -> None:
    first, second = storied(tmp_path, 30, "first"), storied(tmp_path, 20, "second")
    for number, path in enumerate((first, second)):
        with gzip.open(tmp_path / f"part-{number}.txt.gz", "wt", encoding="utf-8") as file:
            file.write(Path(path).read_text("utf-8"))
    with prepare(changed(tmp_path, data={"train": str(tmp_path / "part-*.txt.gz")})) as run:
        assert run.training.train.n_documents + 2 == 50, "every 20th is held out"
    texts = [part.replace("\n", " ") for part in Path(first).read_text("utf-8").split("\n\n")]
    lines = "".join(json.dumps({"id": "x", "text": text}) + "\n" for text in texts)
    (tmp_path / "rows.jsonl").write_text(lines, "utf-8")
    data = {"train": str(tmp_path / "rows.jsonl")}
    with prepare(changed(tmp_path, run="rows", data=data, task={"sentences": "marks"})) as run:
        assert run.training.train.n_documents + 1 == 30
        assert run.training.train.n_with_next > 10


def changed(folder: Path, run: str = "other", **parts: dict[str, Any]) -> regard.Recipe:
    given = pretraining(folder).model_dump(mode="json") | {"run": str(folder / run)}
    for name, changes in parts.items():
        given[name] = given[name] | changes if name != "data" else changes
    return regard.Recipe.parse(given)


BAD = {
    "no blank lines": (
        "amber birch.\ncedar.\n" * 30,
        {},
        r"train\.txt: holds only one document, so no sentence can "
        r"come from another; put a blank line between",
    ),
    "one sentence each": ("amber birch.\n\n" * 30, {}, r"train\.txt: every document has only one sentence"),
    "nothing": ("\n \n", {}, "holds no records, only a header or blank lines"),
    "empty": ("", {}, r"train\.txt: is empty"),
    "too few to hold one out": (
        "amber.\nbirch.\n\n" * 5,
        {},
        r"there are fewer than 20 documents, too few to hold any out for validation",
    ),
}


@pytest.mark.parametrize(("text", "task", "said"), BAD.values(), ids=BAD)
def test_bad_documents_are_refused(tmp_path: Path, text: str, task: dict[str, Any], said: str) -> None:
    recipe = changed(tmp_path, data={"train": str(tmp_path / "train.txt")}, task=task)
    (tmp_path / "train.txt").write_text(text, "utf-8")
    with pytest.raises(DataError, match=said), prepare(recipe):
        pass
    assert not (tmp_path / "other" / "recipe.json").exists()


def test_bad_settings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"task\.max_length: 3 should be greater than or equal to 8"):
        changed(tmp_path, task={"max_length": 3})
    with pytest.raises(RecipeError, match="documents and sentences cannot both be lines"):
        changed(tmp_path, task={"documents": "lines"})
    with pytest.raises(RecipeError, match=r"room for 21 tokens, but task\.max_length is 22"):
        changed(tmp_path, task={"max_length": 22})
    with pytest.raises(RecipeError, match=r"task\.tokenizer\.kind: 'bpe' should be 'wordpiece'"):
        changed(tmp_path, task={"tokenizer": {"kind": "bpe"}})


def test_check_counts_documents_of_one_sentence(tmp_path: Path) -> None:
    recipe = changed(tmp_path, data={"train": str(tmp_path / "train.txt")})
    report = examine(recipe)
    assert report.trainable
    found = {finding.kind: finding for finding in report.findings}
    assert found["one-sentence"].severity == "warning"
    assert found["one-sentence"].count > 3
    (tmp_path / "train.txt").write_text("amber birch.\n\n" * 30, "utf-8")
    report = examine(recipe)
    assert not report.trainable
    found = {finding.kind: finding for finding in report.findings}
    assert 'nothing follows; try task.sentences = "marks"' in found["one-sentence"].message
    assert "every document has only one sentence" in found["untrainable"].message
    (tmp_path / "train.txt").write_text("amber birch.\ncedar.\n" * 30, "utf-8")
    assert "one-document" in {one.kind for one in examine(recipe).findings}


def test_a_vocabulary_without_the_mask_is_damage(trained: Trained, folder: Path, tmp_path: Path) -> None:
    trained.save(tmp_path / "copy")
    path = tmp_path / "copy" / "tokenizer.json"
    path.write_text(path.read_text("utf-8").replace("[MASK]", "[HIDE]"), "utf-8")
    with pytest.raises(CheckpointError, match=r"the vocabulary lacks \[MASK\]"):
        regard.load(tmp_path / "copy")
