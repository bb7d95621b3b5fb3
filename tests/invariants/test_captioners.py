"""What must hold for every captioner: alone as among others, split as whole, played again as written."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from captions import CAPTIONERS, captioner, rows
from pictures import noise
from regard.attention import Trace, sites, tapped
from regard.data import cache
from regard.data.cache import Examples
from regard.explain.replay import explain
from regard.runs.store import load_model, save_model


@pytest.mark.parametrize("name", CAPTIONERS)
def test_it_is_the_same_alone_and_in_any_batch(name: str) -> None:
    task, model, _ = captioner(name)
    examples = task.encode(rows())
    with torch.inference_mode():
        together = task.log_probs(model, task.collate(examples))
        alone = torch.cat([task.log_probs(model, task.collate([one])) for one in examples])
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", CAPTIONERS)
def test_several_captions_of_a_picture_are_as_so_many_pictures(name: str) -> None:
    task, model, _ = captioner(name)
    (row, *_) = rows()
    together = task.log_probs(model, task.collate(task.encode([row])))
    each = [{**row.cells, "captions": [text]} for text in row.cells["captions"]]
    apart = [type(row)(cells, "f", 1) for cells in each]
    torch.testing.assert_close(together, task.log_probs(model, task.collate(task.encode(apart))))


@pytest.mark.parametrize("name", CAPTIONERS)
def test_splitting_a_batch_changes_nothing(name: str) -> None:
    task, model, _ = captioner(name)
    examples = task.encode(rows())
    counts = task.collate(examples).counts

    def gradient(parts: list[list[object]]) -> list[Tensor]:
        model.train().zero_grad()
        for part in parts:
            task.loss(model, task.collate(part)).objective(counts).backward()  # type: ignore[arg-type]
        return [one.grad.clone() for one in model.parameters() if one.grad is not None]

    whole, split = gradient([examples]), gradient([examples[:1], examples[1:]])  # type: ignore[list-item]
    for one, other in zip(whole, split, strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("name", CAPTIONERS)
def test_every_weight_learns_and_can_begin_again(name: str) -> None:
    task, model, _ = captioner(name)
    batch = task.collate(task.encode(rows()))
    task.loss(model.train(), batch).objective(batch.counts).backward()
    silent = [name for name, one in model.named_parameters() if one.grad is None or not one.grad.any()]
    assert silent == []
    for module in model.modules():
        if [*module.parameters(recurse=False)]:
            assert callable(module.reset_parameters), module


@pytest.mark.parametrize("name", CAPTIONERS)
def test_it_is_saved_and_loaded_and_answers_the_same(name: str, tmp_path: Path) -> None:
    task, model, config = captioner(name)
    save_model(tmp_path / "model", task, task.config, model, config, {})
    again, _, loaded, same, _ = load_model(tmp_path / "model")
    assert (again.widths, same) == (task.widths, config)
    asked = task.encode(task.asked(noise(3)))
    with torch.inference_mode():
        ours = [one.text for _, one in sorted(task.predict(model, task.collate(asked)))]
        theirs = [one.text for _, one in sorted(again.predict(loaded, again.collate(asked)))]
    assert ours == theirs


@pytest.mark.parametrize("search", [{"beam": 1}, {"beam": 3}, {"sample": True, "seed": 5}])
@pytest.mark.parametrize("name", ["cnn-rnn", "vit-transformer"])
def test_a_caption_is_the_same_alone_and_its_score_is_what_replay_gives(
    name: str, search: dict[str, object]
) -> None:
    task, model, _ = captioner(name)
    task = task.with_settings(length_penalty=0, max_length=7, **search)
    examples = task.encode(task.asked(noise(4)))
    with torch.inference_mode():
        answers = dict(task.predict(model, task.collate(examples)))
        for place, example in enumerate(examples):
            ((_, alone),) = task.predict(model, task.collate([example]))
            assert alone.text == answers[place].text
            replayed = task.replay(model, task.force(example, alone))[0]
            steps = torch.tensor(alone.steps)
            torch.testing.assert_close(replayed[: len(steps)], steps, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", CAPTIONERS)
def test_what_looks_at_regions_is_explained(name: str) -> None:
    task, model, config = captioner(name)
    traces = {site: Trace() for site in sites(model)}
    batch = task.collate(task.encode(rows(2)))
    plain = task.forward(model, batch)
    with tapped(model, traces.get):
        torch.testing.assert_close(plain, task.forward(model, batch), atol=1e-5, rtol=1e-5)
    shown = explain(task, model, str(config), noise(1)[0], torch.device("cpu"))
    chosen = shown.map(shown.main)
    assert chosen.columns.grid == ((6, 10) if name.startswith("cnn") else (3, 5))
    assert chosen.rows.labels[-1] == "</s>"
    assert chosen.columns.picture is not None
    assert shown.trust is not None


def test_the_penalty_is_that_of_xu_et_al() -> None:
    """(1 − Σ attention)² over regions, summed beside −log p of each caption, as in their equation 14."""
    task, model, _ = captioner("cnn-rnn-doubly")
    batch = task.collate(task.encode(rows()))
    trace = Trace()
    with tapped(model, {"decoder.attention": trace}.get):
        plain = task.loss(model, batch).parts["tokens"].sum
    weights_BTK = trace.weights_BHQK[:, 0] * batch.keep_BT[..., None]
    penalty = ((1 - weights_BTK.sum(1)) ** 2).sum()
    torch.testing.assert_close(task.loss(model.train(), batch).parts["tokens"].sum, plain + 0.7 * penalty)


def test_captions_are_drawn_anew_in_every_epoch() -> None:
    task, _, _ = captioner("cnn-rnn", references=2)
    cached = Examples.of(task, rows())
    epochs = [[len(task.targets(cached.in_epoch(1, epoch)[at])) for at in range(6)] for epoch in (0, 1)]
    assert epochs == [[2, 1, 2, 2, 1, 2]] * 2
    drawn = {tuple(cached.in_epoch(1, epoch)[0].arrays["target"]) for epoch in range(20)}
    assert len(drawn) == 3
    first, again = (cached.in_epoch(1, 4)[0].arrays["target"] for _ in range(2))
    assert np.array_equal(first, again)


def test_what_was_cached_is_what_was_encoded(tmp_path: Path) -> None:
    task, _, _ = captioner("cnn-rnn")
    cache.write(task, rows(), tmp_path / "cache", name="f")
    revived = Examples.open(task, tmp_path / "cache")
    assert revived is not None
    for one, example in zip(revived, task.encode(rows()), strict=True):
        assert all(np.array_equal(one.arrays[name], array) for name, array in example.arrays.items())
