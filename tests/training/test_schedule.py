"""Learning rates against the formulas of the papers, evaluated here once more."""

import math

import pytest

from regard.training.config import TrainConfig
from regard.training.schedule import learning_rate

STEPS = [1, 2, 3, 16, 17, 18, 99, 100, 101, 500]


def rate(step: int, schedule: str, *, d_model: int = 64, **plan: float) -> float:
    config = TrainConfig.model_validate(
        {"schedule": schedule, "max_steps": 101, "warmup": 17, "lr": 0.3} | plan
    )
    return learning_rate(config, step, d_model=d_model, total_steps=config.max_steps)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("d_model", [64, 512])
def test_the_papers(step: int, d_model: int) -> None:
    """Vaswani et al. 2017, equation 3."""
    expected = (1 / math.sqrt(d_model)) * min(1 / math.sqrt(step), step / (17 * math.sqrt(17)))
    assert rate(step, "paper", d_model=d_model, lr=1.0) == pytest.approx(expected, rel=1e-12)
    assert rate(step, "paper", d_model=d_model, lr=0.3) == pytest.approx(0.3 * expected, rel=1e-12)


@pytest.mark.parametrize("schedule", ["inverse_sqrt", "cosine", "linear", "constant"])
def test_the_others_climb_in_a_line_to_the_peak(schedule: str) -> None:
    for step in range(1, 18):
        assert rate(step, schedule) == pytest.approx(0.3 * step / 17, rel=1e-12)


@pytest.mark.parametrize("step", [17, 18, 50, 100, 101])
def test_and_fall_in_their_own_way(step: int) -> None:
    done = (step - 17) / (101 - 17)
    assert rate(step, "constant") == 0.3
    assert rate(step, "inverse_sqrt") == pytest.approx(0.3 * math.sqrt(17) / math.sqrt(step))
    assert rate(step, "linear") == pytest.approx(0.3 * (1 - done), abs=1e-12)
    assert rate(step, "cosine") == pytest.approx(0.3 * math.cos(math.pi * done / 2) ** 2, abs=1e-12)


@pytest.mark.parametrize("schedule", ["paper", "inverse_sqrt", "cosine", "linear", "constant"])
def test_stay_sensible_at_the_edges(schedule: str) -> None:
    for warmup in (0, 1, 101, 1000):
        rates = [rate(step, schedule, warmup=warmup) for step in range(1, 300)]
        assert all(0 <= value <= 0.3 for value in rates)
        assert rates[0] > 0


def test_a_peak_is_reached_without_warmup_at_once() -> None:
    assert rate(1, "constant", warmup=0) == rate(1, "inverse_sqrt", warmup=0) == 0.3


@pytest.mark.parametrize("schedule", ["cosine", "linear"])
def test_what_falls_needs_an_end(schedule: str) -> None:
    with pytest.raises(ValueError, match=f"the {schedule} schedule needs a known last step.*max_steps"):
        TrainConfig.model_validate({"schedule": schedule, "max_minutes": 5})


def test_training_must_end() -> None:
    with pytest.raises(
        ValueError, match="would never end; give max_epochs, max_steps, max_minutes or patience"
    ):
        TrainConfig(max_epochs=None)
    for given in ({}, {"lr": 0.1}):
        plan = TrainConfig.model_validate(given)
        assert (plan.max_epochs, plan.patience) == (20, 5)
    assert TrainConfig(max_steps=7).max_epochs is None
