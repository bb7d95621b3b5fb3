"""Several labels a text over HTTP, beside a classifier with one."""

from pathlib import Path

import regard
from served import served
from tiny import classifier, planted, recipe

TEXTS = ["amber birch", "cedar"]


def test_answers_are_those_of_the_library(tmp_path: Path) -> None:
    model = classifier("words").model_dump()
    regard.train(recipe(tmp_path, {"train": planted(tmp_path, 43)}, model, "multilabel"), quiet=True)
    with served([tmp_path / "run"], tmp_path / "stderr") as running:
        reply = running.post("/v1/multilabel", text=TEXTS)
        assert reply.status == 200
        assert reply.json["answers"] == [
            one.to_json() for one in regard.load(tmp_path / "run").predict(TEXTS)
        ]
        answer = running.post("/v1/explain", text="amber").json["answer"]
        assert set(answer) >= {"labels", "probabilities", "attention"}
        assert running.post("/v1/classify", text="amber").status == 422
