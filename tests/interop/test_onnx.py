"""Graphs for onnxruntime. Making one takes seconds, so each covers as much as it can."""

import copy
import json
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from interop.made import asked, labeller, reader, texts, translator
from regard.api.trained import Trained
from regard.errors import RunError
from regard.interop import onnx_classifier, onnx_tagger
from regard.interop.export import export
from regard.interop.tag_parity import CRFScores
from regard.models import HMMConfig
from tiny import NGRAMS, answerer, classifier, relater, rnn, tagger, transformer

ROOT = Path(__file__).parents[2]
ONE = {"n_encoder_layers": 1, "n_decoder_layers": 1}
TRANSLATORS: dict[str, Any] = {
    "relative": transformer(position="relative", n_kv_heads=1, **ONE),
    "lstm": rnn(cell="lstm"),
    "the context enters the next step": rnn(order="luong", input_feeding="context"),
}
CLASSIFIERS: dict[str, Any] = {
    "gru": classifier("rnn", "mean", cell="gru"),
    "words": classifier("words"),
    "n-grams": classifier("words", ngrams=NGRAMS),
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
        trained = Trained(task, task.config, model, config, {}, next(model.parameters()).device)
        said = [answer.text for answer in trained.predict(asked, max_length=11, max_ratio=100)]
        assert capsys.readouterr().out.splitlines() == said


@pytest.mark.parametrize("config", CLASSIFIERS.values(), ids=CLASSIFIERS)
def test_classifiers_answer_alike(tmp_path: Path, config: Any) -> None:
    task, model = labeller(config)
    report = export(task, model, config, tmp_path / "out", "onnx", texts())
    assert report.identical == 1.0
    assert report.difference < 1e-4


READERS: dict[str, tuple[str, Any, bool]] = {
    "pairs, bert": ("classify_pair", classifier("bert", "pooler"), False),
    "pairs, a bert's vocabulary": ("classify_pair", classifier("words", "mean"), True),
    "pairs, n-grams": ("classify_pair", classifier("words", "mean", ngrams=NGRAMS), False),
    "several labels": ("multilabel", classifier("transformer", "mean"), False),
    "relations": ("relation", relater("rnn"), True),
    "answers": ("answer", answerer("bert"), False),
    "answers, a bert's vocabulary": ("answer", answerer("rnn"), True),
}


@pytest.mark.parametrize(("kind", "config", "berts"), READERS.values(), ids=READERS)
def test_readers_answer_alike(tmp_path: Path, kind: str, config: Any, berts: bool) -> None:
    task, model = reader(kind, config, berts=berts)
    report = export(task, model, config, tmp_path / "out", "onnx", asked(kind))
    assert (report.identical, report.n_compared) == (1.0, 24)
    assert report.difference < 1e-4


TAGGERS: dict[str, tuple[Any, bool]] = {
    "rnn": (tagger("rnn"), False),
    "bert": (tagger("bert", crf=False), True),
    "hmm": (HMMConfig(), False),
}


@pytest.mark.parametrize(("config", "berts"), TAGGERS.values(), ids=TAGGERS)
def test_taggers_answer_alike(
    tmp_path: Path,
    config: Any,
    berts: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task, model = reader("tag", config, berts=berts)
    report = export(task, model, config, tmp_path / "out", "onnx", asked("tag"))
    assert (report.identical, report.n_compared) == (1.0, 24)
    assert report.difference < 1e-4
    told = [text for text in map(str, asked("tag", 40)) if len(text.split()) <= 5]
    told.append("amber \u200b ember inlet")  # a word of which a BERT's vocabulary leaves nothing
    monkeypatch.setattr(sys, "argv", ["onnx_tag.py", str(tmp_path / "out"), *told])
    example = runpy.run_path(str(ROOT / "examples" / "onnx_tag.py"), run_name="__main__")
    trained = Trained(task, task.config, model, config, {}, torch.device("cpu"))
    said = [answer.text for answer in trained.predict(told, split="spaces")]
    assert capsys.readouterr().out.splitlines() == said
    with pytest.raises(SystemExit, match="more than 8 pieces; give it in parts"):
        example["tag"](tmp_path / "out", [["amber"] * 9])


def test_what_may_not_follow_is_null(tmp_path: Path) -> None:
    """And is −∞ to whoever reads it; the rest are the numbers of the model, to the bit."""
    task, model = reader("tag", tagger("words"))
    onnx_tagger.write(task, model, tmp_path)
    told = json.loads((tmp_path / "tags.json").read_text("utf-8"))
    assert told["tags"] == ["B-TREE", "I-TREE", "O"]
    assert told["crf"]["begin"][1] is None
    assert told["crf"]["step"][2][1] is None
    chain = CRFScores.of(told["crf"])
    assert chain is not None
    for found, weight in zip(chain, model.crf.weights(), strict=True):
        assert np.array_equal(found, weight.detach().double().numpy())


def test_other_steps_from_tag_to_tag_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where the best tags stay the same."""
    honest = onnx_tagger.write

    def dishonest(task: Any, model: Any, folder: Path) -> None:
        other = copy.deepcopy(model)
        with torch.no_grad():
            other.crf.step_CC[2, 2] += 0.01
        honest(task, other, folder)

    monkeypatch.setattr(onnx_tagger, "write", dishonest)
    config = tagger("words")
    task, model = reader("tag", config)
    with pytest.raises(RunError, match=r"100.0% of the answers .* log-probabilities differ by up to 0\.0"):
        export(task, model, config, tmp_path / "out", "onnx", asked("tag"))


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
    with pytest.raises(RunError, match="does not answer as the original does"):
        export(task, model, config, tmp_path / "out", "onnx", texts())
    assert list(tmp_path.iterdir()) == []
