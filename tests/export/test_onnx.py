"""Graphs for onnxruntime. Making one takes seconds, so each covers as much as it can."""

import copy
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from export.made import asked, labeller, reader, texts, translator
from regard.errors import RunError
from regard.export import export, onnx_classifier
from tiny import classifier, relater, rnn, transformer

ROOT = Path(__file__).parents[2]
ONE = {"n_encoder_layers": 1, "n_decoder_layers": 1}
TRANSLATORS: dict[str, Any] = {
    "relative": transformer(position="relative", n_kv_heads=1, **ONE),
    "lstm": rnn(cell="lstm"),
}
CLASSIFIERS: dict[str, Any] = {
    "gru": classifier("rnn", "mean", cell="gru"),
    "words": classifier("words"),
}


@pytest.mark.parametrize("config", TRANSLATORS.values(), ids=TRANSLATORS)
def test_translators_answer_alike(
    tmp_path: Path, config: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    task, model = translator(config, decode={"beam": 1})
    report = export(task, model, config, tmp_path / "out", "onnx", texts())
    assert report.identical == 1.0
    assert report.difference < 1e-4
    if config.kind == "transformer":  # the example knows nothing of the model, so one is enough
        asked = [*texts(5), " ".join(texts(9))]  # the last is longer than what is read of it
        monkeypatch.setattr(sys, "argv", ["onnx_translate.py", str(tmp_path / "out"), *asked])
        runpy.run_path(str(ROOT / "examples" / "onnx_translate.py"), run_name="__main__")
        from regard.api import Trained

        trained = Trained(task, task.config, model, config, {}, next(model.parameters()).device)
        said = [answer.text for answer in trained.predict(asked, max_length=11, max_ratio=100)]
        assert capsys.readouterr().out.splitlines() == said


@pytest.mark.parametrize("config", CLASSIFIERS.values(), ids=CLASSIFIERS)
def test_classifiers_answer_alike(tmp_path: Path, config: Any) -> None:
    task, model = labeller(config)
    report = export(task, model, config, tmp_path / "out", "onnx", texts())
    assert report.identical == 1.0
    assert report.difference < 1e-4


LONG = {"max_positions": 300}
READERS: dict[str, tuple[str, Any, bool]] = {
    "pairs, bert": ("classify_pair", classifier("bert", "pooler", **LONG), False),
    "pairs, a bert's vocabulary": ("classify_pair", classifier("words", "mean"), True),
    "several labels": ("multilabel", classifier("transformer", "mean"), False),
    "relations": ("relation", relater("rnn"), True),
}


@pytest.mark.parametrize(("kind", "config", "berts"), READERS.values(), ids=READERS)
def test_readers_answer_alike(tmp_path: Path, kind: str, config: Any, berts: bool) -> None:
    task, model = reader(kind, config, berts=berts)
    report = export(task, model, config, tmp_path / "out", "onnx", asked(kind))
    assert (report.identical, report.n_compared) == (1.0, 24)
    assert report.difference < 1e-4


def test_a_broken_graph_is_caught_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = onnx_classifier.write

    def dishonest(task: Any, model: Any, folder: Path) -> None:
        other = copy.deepcopy(model)
        with torch.no_grad():
            other.output.bias[1] += 0.5
        honest(task, other, folder)

    monkeypatch.setattr(onnx_classifier, "write", dishonest)
    config = classifier("words", "first")
    task, model = labeller(config)
    with pytest.raises(RunError, match="does not answer as this model does"):
        export(task, model, config, tmp_path / "out", "onnx", texts())
    assert list(tmp_path.iterdir()) == []
