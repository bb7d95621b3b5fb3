"""A worker answers its probe, whatever columns a forecaster was trained on."""

from pathlib import Path
from typing import Any

import pytest

import regard
from regard.errors import DataError
from regard.files.read import read_rows
from regard.models import NLinearConfig
from regard.runs.store import save_model
from regard.serve.worker import Worker
from regard.tasks import Forecast, ForecastConfig
from tiny import stirred

N = 60
TABLES: dict[str, tuple[list[str], dict[str, Any]]] = {
    "named": (["load,heat", *(f"{n % 7},{n % 5}" for n in range(N))], {}),
    "numbers": ([f"{n % 7},{n % 5}" for n in range(N)], {}),
    "hours": (
        ["date,load", *(f"2020-01-{1 + n // 24:02} {n % 24:02}:00,{n % 7}" for n in range(N))],
        {"calendar": ["hour"]},
    ),
    "uneven": (["ds,y", *(f"{n * n},{n % 7}" for n in range(N))], {}),
    "by numbers": (
        [f"{n % 5},2020-01-{1 + n // 24:02} {n % 24:02}:00+01:00,{n % 7},{n % 3}" for n in range(N)],
        {"time": 2, "values": [3], "known_future": [4]},
    ),
    "long": (
        ["at,sensor,price,load", *(f"{n},{name},{n % 3},{n % 7}" for name in "ab" for n in range(N))],
        {"time": "at", "id": "sensor", "known_future": ["price"]},
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_worker_answers_its_probe(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines, settings = TABLES[name]
    (tmp_path / "train.csv").write_text("\n".join(lines) + "\n")
    config = ForecastConfig.model_validate({"look_back": 9, "horizon": 3, "fields": {"series": settings}})
    fields, measured = config.unfitted, config.measured
    rows = read_rows(["train.csv"], {"series": None}, fields=fields, base=tmp_path, measured=measured)
    task = Forecast.fit(config, rows)
    model = stirred(NLinearConfig().build(task.widths))
    scores = {"format_version": 1, "scores": {}, "seed": 1}
    save_model(tmp_path / "model", task, config, model, NLinearConfig(), scores)
    trained = regard.load(tmp_path / "model")
    about = Worker(trained, 0, 0).about()
    assert about["task"] == "forecast"
    answer = trained.predict(trained.task.probe())
    assert [len(channel.mean) for channel in answer.channels] == [3] * len(task.series.channels)
    assert len(answer.channels[0].past) <= 9
    if "calendar" in settings:
        with pytest.raises(DataError, match=r"has no dates, and fields.series.calendar \(hour\) needs them"):
            trained.predict([[float(n) for n in range(20)]])
