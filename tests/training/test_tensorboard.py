"""TensorBoard hears what the journal hears."""

import sys
from pathlib import Path

import pytest

import regard
from regard.errors import RecipeError
from tiny import translating


def test_scalars_arrive(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    recipe = translating(tmp_path, max_steps=4, eval_every=2, tensorboard=True)
    regard.train(recipe, quiet=True)
    events = EventAccumulator(str(Path(recipe.run) / "tensorboard"))
    events.Reload()
    assert {"train/loss", "train/lr", "valid/bleu"} <= set(events.Tags()["scalars"])
    assert [event.step for event in events.Scalars("train/loss")] == [1, 2, 3, 4]
    assert [event.step for event in events.Scalars("valid/bleu")] == [2, 4]


def test_without_it_the_recipe_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(RecipeError, match=r"train\.tensorboard: needs tensorboard; .*regard\[track\]"):
        regard.train(translating(tmp_path, tensorboard=True), quiet=True)
