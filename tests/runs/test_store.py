"""Model folders: what they hold, and how a damaged, foreign or hostile one is refused."""

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from regard.errors import CheckpointError, RunError
from regard.files.row import Row
from regard.runs.store import load_model, save_model
from regard.tasks import TASKS, Classify, ClassifyConfig, Translate, TranslateConfig
from tiny import answerer, classifier, stirred, tagger, transformer

TOKENIZER = {"kind": "word", "vocab_size": 60, "min_frequency": 1}
METRICS = {
    "scores": {"test": {"bleu": 12.345678, "loss": 1.5, "perplexity": None}},
    "intervals": {"test": {"bleu": [11.25, 13.75]}},
    "signatures": {"bleu": "nrefs:1|tok:13a"},
}


@pytest.fixture
def translator(tmp_path: Path) -> Path:
    config = TranslateConfig.model_validate({"tokenizer": TOKENIZER})
    task = Translate.fit(config, [Row({"source": "a b c", "target": "d e"}, "x", 1)])
    model = stirred(transformer().build(task.widths))
    save_model(tmp_path / "model", task, config, model, transformer(), METRICS)
    return tmp_path / "model"


@pytest.fixture
def labeller(tmp_path: Path) -> Path:
    config = ClassifyConfig.model_validate({"tokenizer": TOKENIZER})
    rows = [Row({"text": text, "label": text}, "x", 1) for text in ("good", "bad")]
    task, model_config = Classify.fit(config, rows), classifier("rnn")
    model = stirred(model_config.build(task.widths))
    save_model(tmp_path / "model", task, config, model, model_config, {})
    return tmp_path / "model"


def test_a_folder_holds_what_others_expect(translator: Path) -> None:
    held = sorted(str(path.relative_to(translator)) for path in translator.rglob("*") if path.is_file())
    assert held == [
        "README.md",
        "config.json",
        "metrics.json",
        "model.safetensors",
        "source/tokenizer.json",
        "target/tokenizer.json",
    ]
    assert [path.name for path in translator.parent.iterdir()] == ["model"], "nothing half-written is left"
    config = json.loads((translator / "config.json").read_text("utf-8"))
    assert config["format_version"] == 1
    assert config["model"]["kind"] == "transformer"
    card = (translator / "README.md").read_text("utf-8")
    assert "| test | bleu | 12.35 | 11.25 to 13.75 |\n| test | loss | 1.5 |  |\n" in card
    assert "nrefs:1|tok:13a" in card
    assert "library_name: regard" in card


def test_everything_comes_back(translator: Path) -> None:
    task, task_config, model, model_config, metrics = load_model(translator)
    assert isinstance(task, Translate)
    assert task_config.kind == "translate"
    assert (model_config, metrics) == (transformer(), METRICS)
    found = load_file(translator / "model.safetensors")
    assert all(torch.equal(found[name], tensor) for name, tensor in model.state_dict().items())


def test_loaded_weights_are_copies_in_memory_of_their_own(translator: Path) -> None:
    """A memory-mapped file could change under us, and its alignment could change bits."""
    _, _, model, _, _ = load_model(translator)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    path = translator / "model.safetensors"
    path.write_bytes(b"\0" * path.stat().st_size)
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())


def test_a_run_folder_is_as_good_as_its_model_folder(translator: Path) -> None:
    assert load_model(translator.parent)[3] == load_model(translator)[3]


def test_a_model_without_metrics_is_still_a_model(translator: Path) -> None:
    (translator / "metrics.json").unlink()
    assert load_model(translator)[4] == {}


def edited(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text("utf-8"))
        change(config)
        (folder / "config.json").write_text(json.dumps(config), "utf-8")

    return edit


def written(name: str, content: bytes) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(content) and None


def truncated(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-7])


def renamed_tensor(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    tensors["decoder.layer.0"] = tensors.pop("embed_source.weight")
    save_file(tensors, folder / "model.safetensors")


DAMAGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "foreign": (written("config.json", b'{"model_type": "bert"}'), "was not made by regard"),
    "not JSON": (written("config.json", b"{"), r"config\.json: cannot be read as JSON"),
    "not UTF-8": (written("config.json", b"\xff\xfe"), r"config\.json: cannot be read as JSON"),
    "a score": (
        written("metrics.json", b'{"scores": {"test": {"bleu": "high"}}}'),
        r"metrics\.json: damaged \(scores are not numbers by split\)",
    ),
    "an interval": (
        written("metrics.json", b'{"intervals": {"test": {"bleu": [1, 2, 3]}}}'),
        r"metrics\.json: damaged \(intervals are not pairs of numbers by split",
    ),
    "deep": (written("config.json", b"[" * 100_000), r"config\.json: cannot be read as JSON"),
    "a list": (written("config.json", b"[]"), r"config\.json: should hold a JSON object"),
    "large": (
        written("config.json", b" " * 1_000_001),
        r"config\.json: cannot be read \(it is larger than 1,000,000 bytes\)",
    ),
    "newer": (edited(lambda c: c.update(format_version=2)), r"newer regard \(format 2, this one reads 1\)"),
    "no widths": (edited(lambda c: c.pop("widths")), r"config\.json: damaged"),
    "odd widths": (edited(lambda c: c.update(widths=3)), r"config\.json: damaged"),
    "other widths": (
        edited(lambda c: c["widths"]["input"].update(vocab=5)),
        r"labels have input vocab = \d+, but config\.json has input vocab = 5; copy the whole folder",
    ),
    "unknown model": (edited(lambda c: c["model"].update(kind="gpt")), r"config\.json: damaged"),
    "unknown key": (edited(lambda c: c["model"].update(n_haeds=4)), r"config\.json: damaged"),
    "wider": (
        edited(lambda c: c["model"].update(d_model=24)),
        "but the model in config.json needs .*; is it truncated",
    ),
    "vast": (
        edited(lambda c: c["model"].update(d_model=2**30, d_ff=2**31 - 1, n_heads=1)),
        r"has [\d,]+ bytes, but the model in config.json needs [\d,]{26}",
    ),
    "vaster": (edited(lambda c: c["model"].update(d_model=3 * 10**14)), r"config\.json: damaged"),
    "overflowing": (
        edited(lambda c: c["model"].update(d_model=2**31 - 4, n_heads=4)),
        r"config\.json: damaged \(model: .* is too large for any machine",
    ),
    "odd heads": (
        edited(lambda c: c["model"].update(n_heads=5)),
        r"config\.json: damaged \(.*n_heads \(5\) must divide d_model",
    ),
    "few positions": (
        edited(lambda c: c["model"].update(position="learned", max_positions=4)),
        r"config\.json: damaged, its model has 4 positions, but texts may have \d+ tokens and an end",
    ),
    "deeper": (edited(lambda c: c["model"].update(n_encoder_layers=10**9)), r"config\.json: damaged"),
    "narrower": (edited(lambda c: c["model"].update(d_ff=7)), r"tensor .* has shape .*, the model needs"),
    "shallower": (
        edited(lambda c: c["model"].update(n_encoder_layers=1)),
        "does not fit the model, it has an unknown",
    ),
    "truncated": (truncated, r"model\.safetensors: (holds \d+ bytes|not a readable safetensors file)"),
    "no weights": (
        lambda folder: (folder / "model.safetensors").unlink(),
        "the weights are missing; copy the whole",
    ),
    "other weights": (renamed_tensor, r"does not fit the model, it (lacks|has an unknown) tensor"),
    "no tokenizer": (lambda folder: shutil.rmtree(folder / "source"), r"tokenizer\.json: cannot be read"),
    "odd tokenizer": (written("source/tokenizer.json", b"{}"), r"tokenizer\.json: not a tokenizer\.json"),
    "odd metrics": (written("metrics.json", b"["), r"metrics\.json: cannot be read as JSON"),
}


@pytest.mark.parametrize(("damage", "sentence"), DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_folder_is_refused_in_one_sentence(
    translator: Path, damage: Callable[[Path], None], sentence: str
) -> None:
    damage(translator)
    with pytest.raises(CheckpointError, match=sentence) as raised:
        load_model(translator)
    assert "\n" not in str(raised.value)


@contextmanager
def without_hanging(seconds: int = 20) -> Iterator[None]:
    def on_alarm(number: int, frame: object) -> None:
        raise TimeoutError(f"still waiting after {seconds} s")

    before = signal.signal(signal.SIGALRM, on_alarm)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("task", ["classify", "tag", "answer"])
def test_a_pipe_in_the_place_of_a_file_is_refused_at_once(tmp_path: Path, task: str) -> None:
    row: dict[str, Any] = {
        "classify": {"text": "a b", "label": "good"},
        "tag": {"text": ["a", "b"], "tags": ["O", "B-X"]},
        "answer": {"question": "a b", "context": "b c d", "answer": "c"},
    }[task]
    rows = [Row(row, "x", 1), Row(row | ({"label": "bad"} if task == "classify" else {}), "x", 2)]
    kind = TASKS[task]
    config = kind.settings.model_validate({"kind": task, "tokenizer": TOKENIZER})
    fitted = kind.fit(config, rows)
    makers = {"classify": classifier, "tag": tagger, "answer": answerer}
    model_config = makers[task]("rnn")
    save_model(tmp_path / "model", fitted, config, model_config.build(fitted.widths), model_config, {})
    pieces = sorted(tmp_path.glob("model/*.json"))
    assert len(pieces) >= 4
    for path in pieces:
        content = path.read_bytes()
        path.unlink()
        os.mkfifo(path)
        with without_hanging():
            if path.name == "metrics.json":
                load_model(tmp_path)
            else:
                with pytest.raises((CheckpointError, RunError)):
                    load_model(tmp_path / "model")
        path.unlink()
        path.write_bytes(content)


def test_more_labels_than_outputs_are_refused(labeller: Path) -> None:
    (labeller / "labels.json").write_text('["bad", "good", "odd"]')
    with pytest.raises(CheckpointError, match=r"labels have target classes = 3, .*has target classes = 2"):
        load_model(labeller)


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="nowhere: no such run or model folder"):
        load_model(tmp_path / "nowhere")
    with pytest.raises(RunError, match=r"not a trained model of regard \(no config\.json\)"):
        load_model(tmp_path)
    (tmp_path / "checkpoints").mkdir()
    with pytest.raises(RunError, match=r"has not finished; run its regard train command again to resume it"):
        load_model(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="not a trained model"):
        load_model(tmp_path / "file")


def test_saving_twice_replaces_the_whole(translator: Path) -> None:
    task, task_config, model, model_config, _ = load_model(translator)
    (translator / "old").write_text("")
    save_model(translator, task, task_config, stirred(model), model_config, {})
    assert not (translator / "old").exists()
    found = load_file(translator / "model.safetensors")
    assert all(torch.equal(found[name], tensor) for name, tensor in model.state_dict().items())


def test_loading_draws_no_random_weights(translator: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They would be overwritten, and `normal_` on a tensor without memory loads half of torch first."""

    def drawn(*_: object, **__: object) -> None:
        raise AssertionError("normal_ was called")

    monkeypatch.setattr("torch.nn.init._no_grad_normal_", drawn)
    load_model(translator)
