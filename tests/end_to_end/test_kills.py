"""The trainer is killed for real and goes on: a small part of `make soak`."""

import signal
from pathlib import Path

import pytest

from kills import MODELS, SAVE_EVERY, damages, random_stops, stops_inside_saves


@pytest.mark.parametrize("model", MODELS)
def test_kills_at_random_moments(model: str, tmp_path: Path) -> None:
    total = random_stops(tmp_path, model, 10)
    assert total.kills >= 10
    assert max(total.redone) <= SAVE_EVERY


@pytest.mark.parametrize("model", MODELS)
def test_asked_to_stop_at_random_moments(model: str, tmp_path: Path) -> None:
    total = random_stops(tmp_path, model, 5, signal.SIGTERM)
    assert max(total.redone, default=0) == 0, "nothing is lost"


@pytest.mark.parametrize("model", [one for one in MODELS if one != "vit"])  # whose saves are as the others
def test_kills_at_every_named_moment_of_a_save(model: str, tmp_path: Path) -> None:
    assert stops_inside_saves(tmp_path, model, 1) >= 10


def test_asked_to_stop_at_every_named_moment_of_a_save(tmp_path: Path) -> None:
    assert stops_inside_saves(tmp_path, "rnn", 1, signal.SIGTERM) >= 10


def test_every_damage_is_seen_and_got_around(tmp_path: Path) -> None:
    damages(tmp_path, "transformer", 40, 40, 2)
