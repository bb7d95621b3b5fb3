"""Recommenders as graphs for onnxruntime. Making one takes seconds: tests/exports.py has the others."""

import json
from pathlib import Path
from typing import Any

import pytest

from interop.made import histories, recommender
from regard.errors import RunError
from regard.interop import onnx_recommender
from regard.interop.export import export
from regard.models import BERT4RecConfig, GRU4RecConfig

SMALL: dict[str, Any] = {"d_model": 8, "n_heads": 2, "d_ff": 11, "n_layers": 1, "max_positions": 13}
MODELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "gru4rec, attention": (GRU4RecConfig(d_model=8, d_hidden=7, attention=True), {"remove_seen": False}),
    "bert4rec": (BERT4RecConfig(**SMALL), {"objective": "masked"}),
}


@pytest.mark.parametrize(("config", "settings"), MODELS.values(), ids=MODELS)
def test_recommenders_answer_alike(tmp_path: Path, config: Any, settings: dict[str, Any]) -> None:
    task, model = recommender(config, **settings)
    report = export(task, model, config, tmp_path / "out", "onnx", histories())
    assert (report.identical, report.n_compared) == (1.0, 24)
    assert report.difference < 1e-4
    names = json.loads((tmp_path / "out" / "catalogue.json").read_text("utf-8"))["items"]
    (answer,) = onnx_recommender.load_engine(tmp_path / "out").answer([["item 2", "item 3"]])
    ((_, ours),) = task.predict(model, task.collate(task.encode(task.asked([["item 2", "item 3"]]))))
    assert [names[number] for number in answer.ids] == [one.item for one in ours.items]


def test_other_engines_are_refused(tmp_path: Path) -> None:
    config = BERT4RecConfig(**SMALL)
    task, model = recommender(config, objective="masked")
    with pytest.raises(
        RunError, match="ct2: a recommender has no counterpart in CTranslate2; export to onnx"
    ):
        export(task, model, config, tmp_path / "out", "ct2", [["item 1"]])
