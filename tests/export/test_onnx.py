"""Graphs for onnxruntime. Making one takes seconds, so each covers as much as it can."""

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from export.made import labeller, texts, translator
from regard.errors import RunError
from regard.export import export, graphs
from tiny import classifier, rnn, transformer

ROOT = Path(__file__).parents[2]
ONE = {"n_encoder_layers": 1, "n_decoder_layers": 1}
TRANSLATORS: dict[str, Any] = {
    "relative": transformer(position="relative", n_kv_heads=1, **ONE),
    "lstm": rnn(cell="lstm", n_layers=2),
}
CLASSIFIERS: dict[str, Any] = {
    "transformer": classifier("transformer", "first", n_layers=1, position="rotary", norm="pre", n_heads=2),
    "gru": classifier("rnn", "mean", cell="gru"),
    "rnn": classifier("rnn", cell="rnn", bidirectional=False),
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
        monkeypatch.setattr(sys, "argv", ["onnx_translate.py", str(tmp_path / "out"), *texts(5)])
        runpy.run_path(str(ROOT / "examples" / "onnx_translate.py"), run_name="__main__")
        from regard.api import Trained

        trained = Trained(task, task.config, model, config, {}, next(model.parameters()).device)
        said = [answer.text for answer in trained.predict(texts(5), max_length=11, max_ratio=100)]
        assert capsys.readouterr().out.splitlines() == said


@pytest.mark.parametrize("config", CLASSIFIERS.values(), ids=CLASSIFIERS)
def test_classifiers_answer_alike(tmp_path: Path, config: Any) -> None:
    task, model = labeller(config)
    report = export(task, model, config, tmp_path / "out", "onnx", texts())
    assert report.identical == 1.0
    assert report.difference < 1e-4


def test_a_broken_graph_is_caught_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    operators = {kind: (name, tuple(sorted(gates))) for kind, (name, gates) in graphs.OPERATORS.items()}
    monkeypatch.setattr(graphs, "OPERATORS", operators)
    config = classifier("rnn")
    task, model = labeller(config)
    with pytest.raises(RunError, match="does not answer as this model does"):
        export(task, model, config, tmp_path / "out", "onnx", texts())
    assert list(tmp_path.iterdir()) == []
