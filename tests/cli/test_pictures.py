"""Pictures in a folder, and in an array, through the command line: trained, asked, looked at, exported."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from pictures import SMALL, png
from regard.cli import app


def call(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture(scope="module", params=["folder", "array", "idx"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of a few steps, from pictures with a bright half."""
    folder = tmp_path_factory.mktemp(request.param)
    rng = np.random.default_rng(1)
    pixels = rng.integers(0, 100, (40, 8, 12, 3), np.uint8)
    labels = np.arange(40) % 2
    for one, label in zip(pixels, labels, strict=True):
        one[:, 6 * label : 6 * label + 6] += 120
    if request.param == "array":
        np.savez(folder / "data.npz", image=pixels, label=labels)
        data: dict[str, Any] = {"train": [str(folder / "data.npz")]}
    elif request.param == "idx":
        names = []
        for name, array in (("images-idx4-ubyte", pixels), ("labels-idx1-ubyte", labels.astype(np.uint8))):
            head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
            (folder / name).write_bytes(head + array.tobytes())
            names.append(str(folder / name))
        data = {"train": names}
    else:
        for at, (one, label) in enumerate(zip(pixels, labels, strict=True)):
            place = folder / "data" / ("left", "right")[label]
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{at}.png").write_bytes(png(one))
        data = {"train": [f"{folder}/data/"]}
    encoder = {"kind": "vit", **SMALL, "class_tokens": 1}
    recipe = {
        "run": str(folder / "run"),
        "task": {"kind": "classify", "fields": {"image": {"kind": "image"}}},
        "data": data,
        "model": {"kind": "classifier", "pooling": "first", "encoder": encoder},
        "train": {"max_steps": 2, "batch_tokens": 60, "baselines": False, "threads": 1, "workers": 0},
    }
    (folder / "recipe.json").write_text(json.dumps(recipe))
    call("train", folder / "recipe.json")
    (folder / "one.png").write_bytes(png(pixels[0]))
    return folder / "run"


def test_it_is_exported_on_its_own_data(run: Path) -> None:
    assert "100.0% of 40" in call("export", run, "--to", "hf")
    assert (run.parent / "run-hf" / "preprocessor_config.json").is_file()


def test_it_is_asked_with_a_path(run: Path) -> None:
    picture = run.parent / "one.png"
    answer = json.loads(call("predict", run, picture, "--json"))
    assert set(answer["probabilities"]) in ({"left", "right"}, {"0", "1"})
    assert "label → patches" in call("explain", run, picture, "--out", run.parent / "look.html")
    assert "data:image/png;base64" in (run.parent / "look.html").read_text("utf-8")
    assert len(json.loads(call("embed", run, picture))["embedding"]) == SMALL["d_model"]


def test_what_is_no_picture_is_one_sentence(run: Path) -> None:
    (run.parent / "no.png").write_bytes(b"hello")
    said = call("predict", run, run.parent / "no.png", code=2)
    assert said.count("\n") == 1
    assert "text, whatever its name says" in said
    assert "nowhere.png: no such file" in call("predict", run, "nowhere.png", code=2)


def test_a_label_for_every_picture_is_said_before_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for at in range(40):
        place = tmp_path / "many" / f"class{at}"
        place.mkdir(parents=True)
        (place / "0.png").write_bytes(png(np.full((8, 8, 3), at, np.uint8)))
    call("init", "many/")
    said = call("train", "recipe.toml", code=2)
    assert said.count("\n") == 1
    assert "does not occur in the training data" in said
    assert not (tmp_path / "runs").exists() or not any((tmp_path / "runs").rglob("recipe.json"))
    checked = CliRunner().invoke(app, ["check", "recipe.toml"]).output
    assert "labels with fewer than 5 examples" in checked
