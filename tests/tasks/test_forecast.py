"""forecast: windows, scales, quantiles and what is asked, each against the slow way."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from regard.data.splits import Borders
from regard.data.windows import Windows
from regard.decode import in_order
from regard.errors import CheckpointError, DataError, RecipeError
from regard.fields.steps import LEAST
from regard.files.measurements import Measured, Stretch
from regard.files.read import read_rows
from regard.files.row import Row
from regard.metrics.calibration import Calibration
from regard.metrics.resample import differences, intervals
from regard.models import DLinearConfig, ForecasterConfig, NLinearConfig, RNNForecasterConfig
from regard.models.encoders.series import PatchTSTConfig
from regard.recipe import Recipe
from regard.tasks import Forecast, ForecastConfig
from regard.training.evaluate import evaluate
from tiny import stirred

LOOK_BACK, HORIZON, N = 29, 7, 131
HOUR = 3_600_000_000
PATCHES = PatchTSTConfig(patch=7, stride=5, channels="independent", d_model=6, n_heads=2, d_ff=7, n_layers=1)
MODELS: dict[str, Any] = {
    "patchtst": ForecasterConfig(encoder=PATCHES),
    "mixed": ForecasterConfig(encoder=PATCHES.model_copy(update={"channels": "mixed"})),
    "nlinear": NLinearConfig(),
    "dlinear": DLinearConfig(kernel=5),
    "rnn": RNNForecasterConfig(patch=5, d_hidden=6),
}
each = pytest.mark.parametrize("name", MODELS)


def measured(n: int = N, seed: int = 0) -> list[list[float]]:
    """Two channels of very different size, of which one has a season of 6."""
    rng = np.random.default_rng(seed)
    steps = np.arange(n)
    load = 100 + 10 * np.sin(steps * np.pi / 3) + rng.normal(size=n)
    heat = 0.1 * rng.normal(size=n).cumsum()
    return np.round(np.stack([load, heat], 1), 3).tolist()


def series(values: list[list[Any]], **changes: Any) -> Row:
    cell = Stretch(
        id="", channels=["load", "heat"], values=values, known=[[] for _ in values],
        time=[1_467_331_200_000_000 + HOUR * step for step in range(len(values))], zone="",
        goes_on=False, before=None,
    )  # fmt: skip
    return Row({"series": Stretch(cell | changes)}, "load.csv", 2)


def made(name: str = "nlinear", **settings: Any) -> tuple[Forecast, nn.Module]:
    config = ForecastConfig.model_validate({"look_back": LOOK_BACK, "horizon": HORIZON} | settings)
    task = Forecast.fit(config, [series(measured())])
    torch.manual_seed(2)
    return task, stirred(MODELS[name].build(task.widths)).eval()


def asked(task: Forecast, model: nn.Module, *values: Any) -> list[Any]:
    examples = task.encode(task.asked(values))
    return in_order(task.predict(model, task.collate(examples)))


def windows(task: Forecast, values: list[list[Any]]) -> Windows:
    return Windows.of(task, [series(values)])


@each
@pytest.mark.parametrize("scale", ["train", "series", "none"])
def test_losses_are_those_of_values_one_by_one(name: str, scale: str) -> None:
    task, model = made(name, fields={"series": {"scale": scale}})
    values = measured(60, seed=1)
    values[40][0] = values[55][1] = None  # type: ignore[assignment, call-overload]
    examples = [*windows(task, values)][:9]
    batch = task.collate(examples)
    with torch.no_grad():
        forecast = model(batch.inputs)
        found = task.loss(model, batch)
    squared, losses, n = 0.0, 0.0, 0
    for b, example in enumerate(examples):
        past = np.array(example.arrays["steps"], np.float64)
        for c in range(2):
            if scale == "train":
                level, spread = task.series.measured.mean[c], task.series.measured.deviation[c]
            elif scale == "series":
                level, spread = np.nanmean(past[:, c]), np.nanstd(past[:, c])
            else:
                level, spread = 0.0, 1.0
            for y in range(HORIZON):
                truth = (float(example.arrays["future"][y, c]) - level) / spread
                if np.isnan(truth):
                    continue
                n += 1
                squared += (float(forecast[b, c, y, 0]) - truth) ** 2
                for at, level_ in enumerate(task.config.quantiles):
                    over = truth - float(forecast[b, c, y, 1 + at])
                    losses += max(level_ * over, (level_ - 1) * over)
    assert batch.counts == {"values": n, "quantiles": 3 * n}
    assert float(found.parts["values"].sum) == pytest.approx(squared, rel=1e-3)
    assert float(found.parts["quantiles"].sum) == pytest.approx(losses, rel=1e-3)


@each
def test_a_batch_split_in_two_has_the_same_loss_and_gradient(name: str) -> None:
    task, model = made(name)
    values = measured(60, seed=1)
    values[45][0] = None  # type: ignore[call-overload]
    examples = [*windows(task, values)][:9]
    whole = task.collate(examples)
    task.loss(model, whole).objective(whole.counts).backward()
    expected = [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]
    model.zero_grad()
    for part in (examples[:2], examples[2:]):
        task.loss(model, task.collate(part)).objective(whole.counts).backward()
    found = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    for one, other in zip(found, expected, strict=True):
        assert torch.allclose(one, other, rtol=1e-3, atol=1e-4 * float(other.abs().max() + 1))


@each
def test_evaluation_is_that_of_windows_cut_one_by_one(name: str) -> None:
    task, model = made(name)
    values = measured(70, seed=3)
    examples = windows(task, values)
    scores, _ = evaluate(task, model, examples, torch.device("cpu"), thorough=True)
    mean, deviation = np.array(task.series.measured.mean), np.array(task.series.measured.deviation)
    table = np.array(values, np.float32)
    squared, inside = [], []
    for origin in range(LOOK_BACK, len(values) - HORIZON + 1):
        past = torch.tensor(table[origin - LOOK_BACK : origin])[None]
        with torch.no_grad():
            forecast = model({"steps": past})[0].numpy()
        truth = ((table[origin : origin + HORIZON] - mean) / deviation).T
        squared.append((forecast[..., 0] - truth) ** 2)
        band = np.sort(forecast[..., 1:], -1)
        inside.append((band[..., 0] <= truth) & (truth <= band[..., -1]))
    assert len(examples) == len(squared)
    assert scores["mse"] == pytest.approx(np.mean(squared), rel=1e-3)
    assert scores["coverage"] == pytest.approx(100 * np.mean(inside), abs=0.5)


@each
def test_what_is_asked_is_answered_as_the_window_before_it(name: str) -> None:
    """A table as text, columns as lists, a row of a file, alone and together: the same forecast, in the units
    of the file, for the times that come next.
    """
    task, model = made(name)
    values = measured(40, seed=4)
    times = [f"2020-01-{1 + step // 24:02} {step % 24:02}:00:00" for step in range(40)]
    lines = [f"{at},{load},{heat}" for at, (load, heat) in zip(times, values, strict=True)]
    text = "\n".join(["date,load,heat", *lines])
    turned = "\n".join(
        ["date,heat,load", *(f"{a},{heat},{load}" for a, (load, heat) in zip(times, values, strict=True))]
    )
    columns = {"date": times, "load": [load for load, _ in values], "heat": [heat for _, heat in values]}
    answers = asked(task, model, text, {"series": columns}, turned)
    past = torch.tensor(np.array(values[-LOOK_BACK:], np.float32))[None]
    with torch.no_grad():
        raw = model({"steps": past})[0].numpy()
    expected = (
        raw[..., 0] * np.array(task.series.measured.deviation)[:, None]
        + np.array(task.series.measured.mean)[:, None]
    )
    for answer in answers:
        assert answer.times[0] == "2020-01-02 16:00:00"
        assert len(answer.times) == HORIZON
        for channel, wanted in zip(answer.channels, expected, strict=True):
            assert np.allclose(channel.mean, wanted, rtol=1e-3, atol=1e-3)
            levels = np.array([*channel.quantiles.values()])
            assert (np.diff(levels, axis=0) >= 0).all()
        assert [channel.name for channel in answer.channels] == ["load", "heat"]
    alone = asked(task, model, text)[0]
    assert np.allclose(alone.channels[0].mean, answers[0].channels[0].mean, rtol=1e-4)
    assert "2020-01-02 16:00:00 to 2020-01-02 22:00:00: load" in alone.text


def test_empty_rows_at_the_end_are_the_future() -> None:
    task, model = made()
    values = measured(40, seed=4)
    rows = "\n".join(f"{load},{heat}" for load, heat in values)
    plain, longer = asked(task, model, f"load,heat\n{rows}", f"load,heat\n{rows}\n,\n,")
    assert plain.channels == longer.channels


def test_a_shorter_horizon_is_its_beginning_and_a_longer_one_is_refused() -> None:
    task, model = made()
    table = "load,heat\n" + "\n".join(f"{load},{heat}" for load, heat in measured(40))
    whole, short = asked(task, model, table)[0], asked(task.with_settings(horizon="3"), model, table)[0]
    assert short.channels[0].mean == whole.channels[0].mean[:3]
    for horizon in ("8", "0", "x"):
        with pytest.raises(RecipeError, match=rf"horizon={horizon}: this model foretells 1 to 7 steps"):
            task.with_settings(horizon=horizon)
    with pytest.raises(RecipeError, match=r"channel=haet: the model has no such channel; did you mean heat"):
        task.with_settings(channel="haet")
    with pytest.raises(RecipeError, match=r"beam: a forecaster can be asked with horizon and channel"):
        task.with_settings(beam=3)


def test_what_is_known_ahead_is_read_from_rows_without_measurements() -> None:
    config = ForecastConfig.model_validate(
        {
            "look_back": LOOK_BACK,
            "horizon": HORIZON,
            "fields": {"series": {"known_future": ["price"], "calendar": ["hour"], "time": "at"}},
        }
    )
    times = [f"2020-01-{1 + step // 24:02} {step % 24:02}:00" for step in range(N)]
    lines = [
        f"{at},{load},{step % 5}" for step, (at, (load, _)) in enumerate(zip(times, measured(), strict=True))
    ]
    text = "\n".join(["at,load,price", *lines])
    (row,) = (config.asked["series"].clean(text, "x", "y"),)
    task = Forecast.fit(config, [Row({"series": row}, "a", 1)])
    model = stirred(NLinearConfig().build(task.widths)).eval()
    ahead = [f"2020-01-{1 + step // 24:02} {step % 24:02}:00,,{step % 5}" for step in range(N, N + HORIZON)]
    (answer,) = asked(task, model, "\n".join([text, *ahead]))
    assert answer.times[0] == f"2020-01-{1 + N // 24:02} {N % 24:02}:00:00"
    other = [line[:-1] + "9" for line in ahead]
    assert asked(task, model, "\n".join([text, *other]))[0].channels[0].mean != answer.channels[0].mean
    with pytest.raises(DataError, match=r"2 rows follow the last measurement, 7 are needed, with price and"):
        task.encode(task.asked(["\n".join([text, *ahead[:2]])]))


def test_the_calendar_of_the_horizon_is_made() -> None:
    task, _ = made(fields={"series": {"calendar": ["hour", "weekday"]}})
    row = series(measured(40))
    (asked_row,) = task.asked([row])
    (example,) = task.encode([asked_row])
    whole = task.encode([series(measured(40 + HORIZON))])[0].arrays["known"]
    assert np.allclose(example.arrays["known"], whole[40 - LOOK_BACK :])


def test_a_series_that_is_too_short_is_refused() -> None:
    task, _ = made()
    with pytest.raises(DataError, match=r"input 1: the series has 28 steps, the model reads 29"):
        task.encode(task.asked(["load,heat\n" + "\n".join(["1,2"] * 28)]))


def test_settings_that_cannot_be() -> None:
    for settings, fault in (
        ({"quantiles": [0.9, 0.1]}, "the smallest first"),
        ({"quantiles": [0.5]}, "two quantiles at least"),
        ({"quantiles": [0.1, 1.0]}, "between 0 and 1"),
        ({"split": [0.7, 0.2, 0.2]}, "three shares that add up to 1 at most"),
        ({"split": [100, 0, 3]}, "three shares that add up"),
    ):
        with pytest.raises(ValueError, match=fault):
            ForecastConfig.model_validate(settings)


def test_calibration_gives_every_quantile_its_share() -> None:
    task, model = made()
    valid = windows(task, measured(130, seed=8))
    fitted = task.calibrated(model, valid, torch.device("cpu"))
    batch = fitted.collate([*valid])
    with torch.no_grad():
        past = np.stack([one.arrays["steps"] for one in batch.examples]) / task.series.measured.deviation
        deviation = torch.tensor(np.sqrt(past.var(1) + LEAST), dtype=torch.float32)[..., None, None]
        offsets = torch.tensor(fitted.calibration.offsets)[:, None]
        unsorted = model(batch.inputs)[..., 1:] + offsets * deviation
    weights = torch.tensor([0.5 ** (2 * valid.age(i)) for i in range(len(valid))])
    below = (batch.target_BCY[..., None] <= unsorted).float().mean(2)
    below = (below * weights[:, None, None]).sum(0) / weights.sum()
    assert torch.allclose(below.float(), torch.tensor([[0.1, 0.5, 0.9]] * 2), atol=0.01)
    assert [valid.age(i) for i in (0, len(valid) - 1)] == [pytest.approx(1 - 1 / len(valid)), 0]
    assert task.calibration.offsets == ()


def test_calibration_beside_numpy_and_missing_values() -> None:
    apart = np.random.default_rng(1).normal(size=(11, 2, 5, 2)).astype(np.float32)
    apart[3, 1] = np.nan
    weights = np.arange(1, 12)
    found = Calibration.of(apart, (0.2, 0.7), weights)
    for c in range(2):
        for q, level in enumerate((0.2, 0.7)):
            pairs = sorted(
                (value, weight)
                for window, weight in zip(apart[:, c, :, q].tolist(), weights.tolist(), strict=True)
                for value in window
                if not np.isnan(value)
            )
            total = sum(weight for _, weight in pairs)
            below = itertools.accumulate(weight for _, weight in pairs)
            reached = [value for (value, _), sum_ in zip(pairs, below, strict=True) if sum_ >= level * total]
            assert found.offsets[c][q] == pytest.approx(reached[0])


def test_a_saved_task_is_the_same(tmp_path: Path) -> None:
    task, model = made("patchtst")
    valid = windows(task, measured(130, seed=8))
    fitted = task.calibrated(model, valid, torch.device("cpu"))
    fitted.save(tmp_path)
    again = Forecast.load(task.config, tmp_path)
    assert again.calibration == fitted.calibration
    assert again.series == fitted.series
    assert again.widths == fitted.widths
    (tmp_path / "calibration.json").write_text('{"offsets": [[1, 2]]}')
    with pytest.raises(CheckpointError, match=r"should hold a number for each of 2 channels and 3 quantiles"):
        Forecast.load(task.config, tmp_path)
    (tmp_path / "calibration.json").write_text("[")
    with pytest.raises(CheckpointError, match=r"calibration.json: cannot be read"):
        Forecast.load(task.config, tmp_path)


def test_windows_that_share_steps_are_resampled_together() -> None:
    task, model = made()
    examples = windows(task, measured(110, seed=5))
    scores, tally = evaluate(task, model, examples, torch.device("cpu"), thorough=True)
    n = len(examples)
    assert tally.block == max(HORIZON, task.series.season)
    assert len(tally.truth) == len({int(one.arrays["origin"][0]) // tally.block for one in examples})
    assert sum(tally.truth) == n * HORIZON * 2
    low, high = intervals(tally)["mse"]
    assert low < scores["mse"] < high
    others = [one.arrays["steps"][-1:].repeat(HORIZON, 0).T[..., None] for one in examples]
    naive = task.tally([*examples], others)
    apart = differences(tally, naive)
    assert apart["mse"].value == pytest.approx(scores["mse"] - naive.metrics()["mse"])
    assert "pinball" not in apart
    parts = tally.by_kind()
    assert [*parts] == ["load", "heat", "steps 1–2", "steps 3–4", "steps 5–5", "steps 6–7"]
    assert np.mean([parts[name]["mse"] for name in ("load", "heat")]) == pytest.approx(scores["mse"])


@each
def test_replay_is_the_forecast_and_contributions_fit_their_axes(name: str) -> None:
    task, model = made(name)
    task = task.with_settings(channel="heat")
    (row,) = task.asked(["load,heat\n" + "\n".join(f"{load},{heat}" for load, heat in measured(40))])
    (example,) = task.encode([row])
    ((_, answer),) = task.predict(model, task.collate([example]))
    batch = task.force(example, answer)
    with torch.no_grad():
        replayed = task.replay(model, batch)[0]
    mean, deviation = task.series.measured.mean[1], task.series.measured.deviation[1]
    assert torch.allclose(replayed, (torch.tensor(answer.channels[1].mean) - mean) / deviation, atol=1e-4)
    axes = task.axes(example, answer)
    past: Any = model.positions(axes.by_name["past"])  # type: ignore[operator]
    assert len(axes.by_name["ahead"]) == len(replayed)
    assert past.spans[-1][1] == LOOK_BACK
    left = task.leave_out(batch, past, [0, len(past) - 1])
    steps: Tensor = left.inputs["steps"]
    begin, end = past.spans[-1]
    assert torch.equal(steps[1, :begin], batch.inputs["steps"][0, :begin])
    assert not torch.equal(steps[1, begin:end], batch.inputs["steps"][0, begin:end])
    with torch.no_grad():
        for picture in task.pictures(model, batch):
            assert picture.weights_QK.shape == (len(replayed), len(past))
            assert torch.allclose(picture.weights_QK.sum(1), torch.ones(len(replayed)), atol=1e-4)


def test_borders_come_from_the_recipe() -> None:
    base: dict[str, Any] = {
        "data": {"train": "a.csv"},
        "model": {"kind": "nlinear"},
        "task": {"kind": "forecast"},
    }
    assert Recipe.parse(base).hold_out == Borders(96, shares=(0.7, 0.1, 0.2))
    steps = base | {"task": {"kind": "forecast", "split": [8, 3, 2]}}
    assert Recipe.parse(steps).hold_out == Borders(96, rows=(8, 3, 2))
    tested = steps | {"data": {"train": "a.csv", "test": "b.csv"}}
    border = Recipe.parse(tested).hold_out
    assert isinstance(border, Borders)
    assert border.rows == (8, 3)
    shares = Recipe.parse(base | {"data": {"train": "a.csv", "test": "b.csv"}}).hold_out
    assert isinstance(shares, Borders)
    assert shares.shares == pytest.approx((0.875, 0.125))


def test_a_table_with_several_series(tmp_path: Path) -> None:
    rows = [f"{name},{step},{step + shift}" for name, shift in (("a", 0), ("b", 100)) for step in range(20)]
    (tmp_path / "long.csv").write_text("\n".join(["id,ds,y", *rows]))
    config = ForecastConfig.model_validate({"look_back": 5, "horizon": 2, "fields": {"series": {"id": "id"}}})
    assert config.measured == Measured(None, "id", (), ())
    fields, measured_ = config.unfitted, config.measured
    read = [*read_rows(["long.csv"], {"series": None}, fields=fields, base=tmp_path, measured=measured_)]
    task = Forecast.fit(config, read)
    made = Windows.of(task, read)
    assert len(made) == 2 * (20 - 7 + 1)
    answers = asked(task, stirred(NLinearConfig().build(task.widths)), *read)
    assert [answer.id for answer in answers] == ["a", "b"]
