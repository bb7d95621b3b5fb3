"""Vectors of texts are those that transformers' states, averaged and scaled, give; in order, in any batch."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional as F
from typer.testing import CliRunner

import regard
from berts import TEXTS, their_tokenizer, written
from pictures import classifier, noise
from regard.cli import app
from regard.errors import CheckpointError, DataError, RecipeError
from regard.interop.encoder import read_encoder
from regard.interop.importing import import_folder
from regard.models import Classifier
from regard.runs.store import save_model
from tiny import classifying

MANY = [" ".join(TEXTS[: 1 + n % 3]) for n in range(23)] + [""]


def expected(folder: Path, model: torch.nn.Module, texts: list[str], most: int) -> np.ndarray:
    """One by one, so that no padding can hide a mistake."""
    rows = []
    for text in texts:
        given = their_tokenizer(folder)([text], return_tensors="pt", truncation=True, max_length=most)
        with torch.no_grad():
            states_TD = model(**given).last_hidden_state[0]
        rows.append(F.normalize(states_TD.mean(0), dim=0))
    return torch.stack(rows).numpy()


@pytest.mark.parametrize("max_seq_length", [None, 7])
def test_vectors_are_theirs(tmp_path: Path, max_seq_length: int | None) -> None:
    model = written(tmp_path / "hf")
    if max_seq_length is not None:
        (tmp_path / "hf" / "sentence_bert_config.json").write_text(f'{{"max_seq_length": {max_seq_length}}}')
    import_folder(tmp_path / "hf", tmp_path / "own")
    wanted = expected(tmp_path / "hf", model, MANY, max_seq_length or 31)
    for name in ("hf", "own"):
        found = regard.Embedder.load(tmp_path / name, device="cpu")(MANY)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5)


def test_a_run_embeds_with_its_own_encoder(tmp_path: Path) -> None:
    trained = regard.train(classifying(tmp_path), quiet=True)
    found = regard.Embedder.load(tmp_path / "run", device="cpu")(["amber birch", "cedar"])
    (example,) = trained.task.encode([regard.files.row.Row({"text": "amber birch"}, "x", 1)])
    batch = trained.task.collate([example])
    with torch.no_grad():
        states_1TD = trained.model.encoder(batch.inputs).states_RTD
    np.testing.assert_allclose(found[0], F.normalize(states_1TD[0].mean(0), dim=0).numpy(), atol=1e-6)


@pytest.mark.parametrize("name", ["vit-class", "cnn"])
def test_pictures_are_embedded_by_the_encoder_of_a_classifier(tmp_path: Path, name: str) -> None:
    task, model, config = classifier(name)
    save_model(tmp_path / "model", task, task.config, model, config, {})
    embedder, pictures = regard.Embedder.load(tmp_path / "model", device="cpu"), noise(5)
    found = embedder(pictures)
    assert isinstance(model, Classifier)
    for picture, vector in zip(pictures, found, strict=True):
        (example,) = task.encode(task.asked([picture]))
        with torch.no_grad():
            states_1TD = model.encoder(task.collate([example]).inputs).states_RTD
        wanted = F.normalize(states_1TD[0].mean(0), dim=0)
        np.testing.assert_allclose(vector, wanted.numpy(), rtol=0, atol=1e-5)
    (tmp_path / "a.png").write_bytes(pictures[3])
    np.testing.assert_array_equal(embedder([tmp_path / "a.png"])[0], embedder([pictures[3]])[0])
    with pytest.raises(DataError, match="input 2"):
        embedder([pictures[0], "a.png"])


def test_an_encoder_of_pictures_is_no_beginning_for_texts(tmp_path: Path) -> None:
    task, model, config = classifier("cnn")
    save_model(tmp_path / "pictures", task, task.config, model, config, {})
    with pytest.raises(
        RecipeError, match=r"pictures: its encoder reads image, and has no vocabulary; give one of texts"
    ):
        assert read_encoder(tmp_path / "pictures").tokenizer


def test_texts_are_a_list(tmp_path: Path) -> None:
    written(tmp_path)
    embedder = regard.Embedder.load(tmp_path, device="cpu")
    assert embedder([]).shape == (0, 14)
    with pytest.raises(DataError, match="give a list of texts, not one"):
        embedder("amber")
    for wrong in (None, 5):
        with pytest.raises(DataError, match=f"{wrong}: texts must be strings"):
            embedder(wrong)
    for wrong, place in (([None], 1), (b"x", 1), (["amber", 3.0], 2)):
        with pytest.raises(DataError, match=f"input {place}: the text must be a string"):
            embedder(wrong)


def test_an_odd_limit_is_said(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "sentence_bert_config.json").write_text('{"max_seq_length": "x"}')
    with pytest.raises(CheckpointError, match="max_seq_length is 'x', it should be a number of tokens"):
        read_encoder(tmp_path)


def test_a_damaged_encoder_is_said(tmp_path: Path) -> None:
    written(tmp_path / "hf")
    import_folder(tmp_path / "hf", tmp_path / "own")
    path = tmp_path / "own" / "config.json"
    told = json.loads(path.read_text())
    sizes = told["encoder"]
    for change, sentence in (
        ({"encoder": {"kind": "bert", "d_ff": 0}}, r"config\.json: damaged \(.*d_ff"),
        ({"encoder": "x"}, r"config\.json: damaged \(encoder: "),
        ({"max_length": 0}, r"config\.json: damaged \(max_length: Input should be greater than 0"),
        ({"max_length": 30}, "its encoder has 31 positions, but texts may have 32 tokens"),
        ({"pooler": 7}, r"config\.json: damaged \(pooler: Input should be a valid boolean"),
        ({"encoder": sizes | {"d_ff": 5}}, r"tensor .*ff.* has shape"),
        ({"encoder": sizes | {"max_positions": 10**9}}, r"model\.safetensors: has [\d,]+ bytes, .* needs"),
        ({"encoder": sizes | {"d_model": 10**6}}, r"model\.safetensors: has [\d,]+ bytes, .* needs"),
        ({"encoder": sizes | {"d_model": 2 * 10**9}}, "the sizes of its encoder overflow"),
        ({"format_version": 99}, r"written by a newer regard \(format 99, this one reads 1\); upgrade"),
        ({"format_version": "x"}, r"config\.json: was not made by regard"),
    ):
        path.write_text(json.dumps(told | change))
        with pytest.raises(CheckpointError, match=sentence):
            read_encoder(tmp_path / "own")


def test_a_bad_text_is_told_by_its_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "hf")
    monkeypatch.setattr("regard.api.embed.READ_AHEAD", 2)
    with pytest.raises(DataError, match=r"input 4, character 2 of the text: U\+D800 is half of a surrogate"):
        regard.Embedder.load(tmp_path / "hf")(["a", "b", "c", "d\ud800"])


@pytest.mark.parametrize("out", [[], ["--out", "x.npy"]], ids=["lines", "array"])
def test_the_command_tells_what_was_cut(
    tmp_path: Path, out: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "hf")
    texts = ["amber " * 29, "amber " * 30, "amber " * 31]
    told = CliRunner().invoke(app, ["embed", "hf", *texts, *out])
    assert "2 of the texts longer than 29 tokens, which is what it reads: only the beginning" in told.stderr
    assert CliRunner().invoke(app, ["embed", "hf", texts[0]]).stderr == ""


def test_the_command_writes_lines_or_an_array(tmp_path: Path) -> None:
    written(tmp_path / "hf")
    wanted = regard.Embedder.load(tmp_path / "hf")(MANY)
    (tmp_path / "texts.txt").write_text("\n".join(MANY) + "\n", "utf-8")
    hf, file, out = (str(tmp_path / name) for name in ("hf", "texts.txt", "vectors.npy"))
    run = CliRunner().invoke
    told = run(app, ["embed", hf, *MANY[:2]])
    lines = [json.loads(line) for line in told.stdout.splitlines()]
    assert [line["input"] for line in lines] == MANY[:2]
    np.testing.assert_allclose([line["embedding"] for line in lines], wanted[:2], atol=1e-6)
    assert run(app, ["embed", hf, "--file", file, "--out", out]).exit_code == 0
    np.testing.assert_allclose(np.load(out), wanted, atol=1e-6)


def test_the_command_embeds_pictures_by_their_paths(tmp_path: Path) -> None:
    task, model, config = classifier("vit-class")
    save_model(tmp_path / "model", task, task.config, model, config, {})
    pictures, folder = noise(3), tmp_path / "pictures"
    folder.mkdir()
    for number, picture in enumerate(pictures):
        (folder / f"{number}.png").write_bytes(picture)
    wanted = regard.Embedder.load(tmp_path / "model", device="cpu")(pictures)
    paths = [str(folder / f"{number}.png") for number in range(3)]
    for arguments in (paths, ["--file", f"{folder}/"]):
        answered = CliRunner().invoke(app, ["embed", str(tmp_path / "model"), *arguments])
        lines = [json.loads(line) for line in answered.stdout.splitlines()]
        assert [Path(line["input"]).name for line in lines] == ["0.png", "1.png", "2.png"]
        np.testing.assert_allclose([line["embedding"] for line in lines], wanted, atol=1e-6)
