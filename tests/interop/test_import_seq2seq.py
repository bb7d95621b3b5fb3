"""Folders of Hugging Face that come back; and those that must not."""

import json
import os
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from interop.made import retensored, texts, translator
from regard.api.trained import Trained
from regard.errors import CheckpointError, RunError
from regard.interop import hf
from regard.interop.importing import import_folder
from tiny import transformer

KINDS: dict[str, tuple[dict[str, Any], bool]] = {
    "marian": ({}, False),
    "marian joint": ({}, True),
    "marian untied": ({"tie_embeddings": False}, True),
    "grouped heads, no bias": ({"n_kv_heads": 1, "bias": False}, False),
    "pegasus": ({"norm": "pre", "activation": "gelu_tanh"}, True),
    "blenderbot": ({"norm": "pre", "position": "learned"}, True),
}


def written(folder: Path, changes: dict[str, Any], joint: bool) -> Trained:
    """A folder of Hugging Face, and the model that is in it."""
    config = transformer(**{"max_positions": 40} | changes)
    task, model = translator(config, joint=joint, decode={"beam": 3, "length_penalty": 0.5})
    folder.mkdir()
    hf.write(task, model, config, folder)
    return Trained(task, task.config, model, config, {}, torch.device("cpu"))


@pytest.mark.parametrize(("changes", "joint"), KINDS.values(), ids=KINDS)
def test_what_left_comes_back(tmp_path: Path, changes: dict[str, Any], joint: bool) -> None:
    trained = written(tmp_path / "hf", changes, joint)
    import_folder(tmp_path / "hf", tmp_path / "back")
    back = regard.load(tmp_path / "back", device="cpu")
    assert back.task_config == trained.task_config
    if "bias" in changes:  # written out: the same function in other sums
        for ours, theirs in zip(trained.predict(texts()), back.predict(texts()), strict=True):
            assert theirs.text == ours.text
            assert theirs.steps == pytest.approx(ours.steps, abs=1e-5)
    else:
        assert back.predict(texts()) == trained.predict(texts())


def test_a_folder_that_transformers_saved_again_comes_back(tmp_path: Path) -> None:
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    trained = written(tmp_path / "hf", *KINDS["blenderbot"])
    model = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "hf", local_files_only=True)
    with torch.no_grad():
        model.model.encoder.embed_positions.weight += 0.25  # trained further, apart from the decoder's
    model.save_pretrained(tmp_path / "again")
    AutoTokenizer.from_pretrained(tmp_path / "hf", local_files_only=True).save_pretrained(tmp_path / "again")
    import_folder(tmp_path / "again", tmp_path / "back")
    back = regard.load(tmp_path / "back", device="cpu").model
    own = trained.model.embed_target.position.weight
    assert torch.equal(back.embed_source.position.weight, own + 0.25)
    assert torch.equal(back.embed_target.position.weight, own)


def test_nothing_is_written_beside_what_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A temporary folder may be full."""
    written(tmp_path / "hf", {}, False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    import_folder(tmp_path / "hf", tmp_path / "back")
    assert len(regard.load(tmp_path / "back", device="cpu").predict(texts())) == len(texts())


def edited(**changes: Any) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | changes), "utf-8")

    return edit


def replaced(name: str, content: bytes) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(content) and None


def truncated(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-9])


def only_a_pickle(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"model": 1}))


def added_token(folder: Path) -> None:
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text("utf-8"))
    content["added_tokens"] = [{"id": 99, "content": "amber", "special": True}]
    path.write_text(json.dumps(content), "utf-8")


def a_pipe(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    os.mkfifo(folder / "tokenizer.json")


LAYER = "model.decoder.layers.0.fc1.weight"
HOSTILE: dict[str, tuple[Callable[[Path], None], str]] = {
    "not JSON": (replaced("config.json", b"{"), r"config\.json: cannot be read as JSON"),
    "deep": (replaced("config.json", b"[" * 100_000), r"config\.json: cannot be read as JSON"),
    "large": (replaced("config.json", b" " * 1_000_001), "larger than 1,000,000 bytes"),
    "a list": (replaced("config.json", b"[]"), "should hold a JSON object"),
    "another model": (edited(model_type="t5"), r"model_type 't5' cannot be imported, only marian,"),
    "other ids": (edited(pad_token_id=7), "pad_token_id is 7, regard's models have 0"),
    "not scaled": (edited(scale_embedding=False), "scale_embedding is False"),
    "huge width": (edited(d_model=12_000_000), r"has shape .*, config\.json requires .*12000000"),
    "huge depth": (edited(decoder_layers=10**6), "n_decoder_layers: Input should be less than or equal"),
    "absurd": (edited(d_model=10**30), "d_model: .* too large"),
    "not a number": (
        edited(encoder_ffn_dim="x", decoder_ffn_dim="x"),
        "d_ff: Input should be a valid integer",
    ),
    "uneven": (edited(encoder_ffn_dim=5), "encoder_ffn_dim and decoder_ffn_dim differ"),
    "activation": (edited(activation_function="silu"), "'silu' is missing, or not supported by regard"),
    "vocabulary": (edited(vocab_size=5), "the vocabulary sizes are .5, .* but those of the tokenizers"),
    "task": (edited(regard_task={"beam": 1}), "regard_task: beam: Extra inputs"),
    "positions": (edited(max_position_embeddings=5), "max_position_embeddings is 5, but texts may have 12"),
    "truncated": (truncated, r"model\.safetensors: not a readable safetensors file"),
    "not tensors": (replaced("model.safetensors", b"\0" * 100_000), "not a readable safetensors file"),
    "a pickle": (only_a_pickle, r"missing; other formats \(pickle\) are not read"),
    "a tensor less": (
        retensored(lambda t: t.pop(LAYER)),
        rf"tensor {LAYER} is missing, config\.json requires one of shape \(11, 12\)",
    ),
    "a tensor more": (
        retensored(lambda t: t.update(x=torch.ones(3))),
        "tensor x does not belong to this architecture",
    ),
    "another shape": (retensored(lambda t: t.update({LAYER: t[LAYER].T.contiguous()})), "has shape .12, 11."),
    "not finite": (retensored(lambda t: t[LAYER].fill_(torch.nan)), "numbers that are not finite"),
    "a bias": (retensored(lambda t: t["final_logits_bias"].fill_(1)), "final_logits_bias is not zero"),
    "added tokens": (added_token, r"tokenizer\.json: a tokenizer, but not one that regard exported"),
    "no tokenizer": (lambda folder: (folder / "tokenizer.json").unlink(), r"hf/tokenizer\.json: missing"),
    "a pipe for a tokenizer": (a_pipe, r"hf/tokenizer\.json: missing, or not a file"),
    "broken tokenizer": (
        replaced("tokenizer.json", b'{"added_tokens": []}'),
        r"hf/tokenizer\.json: not a tokenizer\.json, or a damaged one",
    ),
    "half a character": (
        replaced("tokenizer.json", b'{"added_tokens": [], "\\ud800": 1}'),
        r"hf/tokenizer\.json: not a tokenizer\.json, or a damaged one",
    ),
    "beyond single precision": (
        retensored(lambda t: t.update({LAYER: torch.full_like(t[LAYER], 1e300, dtype=torch.float64)})),
        "numbers that are not finite",
    ),
    "not finite in a byte": (
        retensored(lambda t: t.update({LAYER: t[LAYER].fill_(torch.nan).to(torch.float8_e4m3fn)})),
        "numbers that are not finite",
    ),
}


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("hf") / "hf"
    written(folder, {}, False)
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("harm", "sentence"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_folder_is_one_sentence(
    tmp_path: Path, exported: dict[str, bytes], harm: Callable[[Path], None], sentence: str
) -> None:
    folder = tmp_path / "hf"
    for name, content in exported.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    harm(folder)
    with pytest.raises(CheckpointError, match=sentence) as refused:
        import_folder(folder, tmp_path / "out")
    assert "\n" not in str(refused.value)
    assert [path.name for path in tmp_path.iterdir()] == ["hf"]


def test_an_existing_folder_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="already exists; choose another"):
        import_folder(tmp_path / "hf", tmp_path)
