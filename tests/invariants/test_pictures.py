"""What must hold for every encoder of pictures, and for training pictures that are drawn anew."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import pictures
from pictures import ENCODERS, LABELS, bright, classifier, field, noise, png
from regard.attention import Trace, sites, tapped
from regard.data import cache
from regard.data.cache import Examples
from regard.fields.field import Augmented
from regard.fields.label import Label
from regard.fields.labels import Labels
from regard.files.row import Row
from regard.runs.store import load_model, save_model
from regard.tasks import Classify, ClassifyConfig, Multilabel, MultilabelConfig

AUGMENTED: dict[str, Any] = {"shift": 2, "flip": True, "colour": 0.3, "cutout": 5, "mixup": 0.4}


def rows(n: int, seed: int = 0) -> list[Row]:
    made = bright(n, seed)
    return [Row({"image": png(one), "label": label}, "f", i) for i, (one, label) in enumerate(made)]


@pytest.mark.parametrize("name", ENCODERS)
def test_it_is_the_same_alone_and_in_any_batch(name: str) -> None:
    task, model, _ = classifier(name)
    examples = task.encode(task.asked(noise(7)))
    with torch.inference_mode():
        together = model(task.collate(examples).inputs)
        alone = torch.cat([model(task.collate([one]).inputs) for one in examples])
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", [name for name in ENCODERS if name != "cnn"])
def test_it_is_the_same_while_somebody_looks(name: str) -> None:
    task, model, _ = classifier(name)
    batch = task.collate(task.encode(task.asked(noise(3))))
    plain = model(batch.inputs)
    traces = {site: Trace() for site in sites(model)}
    with tapped(model, traces.get):
        seen = model(batch.inputs)
    torch.testing.assert_close(plain, seen, atol=1e-5, rtol=1e-5)
    n_states = 15 + ENCODERS[name].get("class_tokens", 0)
    for site, trace in traces.items():
        weights_BHQK = trace.weights_BHQK
        assert weights_BHQK.shape[-1] == n_states, site
        torch.testing.assert_close(weights_BHQK.sum(-1), torch.ones(weights_BHQK.shape[:-1]))


@pytest.mark.parametrize("name", ENCODERS)
def test_it_is_saved_and_loaded(name: str, tmp_path: Path) -> None:
    task, model, config = classifier(name)
    save_model(tmp_path / "model", task, task.config, model, config, {})
    again, _, loaded, same, _ = load_model(tmp_path / "model")
    assert (again.widths, same) == (task.widths, config)
    inputs = task.collate(task.encode(task.asked(noise(3)))).inputs
    assert torch.equal(model(inputs), loaded(inputs))


@pytest.mark.parametrize("name", ENCODERS)
def test_every_weight_learns(name: str) -> None:
    task, model, _ = classifier(name)
    batch = task.collate(task.encode(rows(5)))
    task.loss(model.train(), batch).objective(batch.counts).backward()
    silent = [name for name, one in model.named_parameters() if one.grad is None or not one.grad.any()]
    assert silent == []


@pytest.mark.parametrize("name", ENCODERS)
def test_every_module_can_begin_again(name: str) -> None:
    _, model, _ = classifier(name)
    learns: list[nn.Module] = [one for one in model.modules() if [*one.parameters(recurse=False)]]
    for module in learns:
        assert callable(module.reset_parameters), module


def test_what_was_cached_is_what_was_encoded(tmp_path: Path) -> None:
    task = Classify.fit(ClassifyConfig(fields={"image": {}}), rows(11))  # type: ignore[dict-item]
    cache.write(task, rows(11), tmp_path / "cache", name="f")
    revived = Examples.open(task, tmp_path / "cache")
    assert revived is not None
    for one, example in zip(revived, task.encode(rows(11)), strict=True):
        assert one.arrays.keys() == example.arrays.keys()
        for name, array in example.arrays.items():
            assert np.array_equal(one.arrays[name], array)
            assert one.arrays[name].dtype == array.dtype or name == "label"


# what is drawn


def augmented(kind: type[Any] = Classify) -> Any:
    settings: Any = {"image": {"kind": "image", **AUGMENTED}}
    if kind is Multilabel:
        return Multilabel(
            MultilabelConfig(fields=settings), {"image": field(**AUGMENTED)}, Labels(names=LABELS)
        )
    return Classify(ClassifyConfig(fields=settings), {"image": field(**AUGMENTED)}, Label(LABELS))


def same(one: Any, other: Any) -> bool:
    return all(np.array_equal(array, other.arrays[name]) for name, array in one.arrays.items())


def test_pictures_are_others_in_every_epoch_and_the_same_ones_when_it_is_run_again() -> None:
    task = augmented()
    cached = Examples.of(task, rows(9))
    first, again, later = (cached.in_epoch(3, epoch) for epoch in (0, 0, 1))
    assert all(same(*two) for two in zip(first, again, strict=True))
    assert not any(same(*two) for two in zip(first, later, strict=True))
    assert not any(same(*two) for two in zip(first, cached.in_epoch(4, 0), strict=True))
    backwards = [first[i] for i in reversed(range(9))]
    assert all(same(*two) for two in zip(reversed(backwards), first, strict=True))


def test_nothing_is_drawn_for_whoever_only_asks() -> None:
    task = augmented()
    (one,), (other,) = task.encode(rows(1)), task.encode(rows(1))
    assert same(one, other)
    plain = Classify(ClassifyConfig(fields={"image": {}}), {"image": field()}, Label(LABELS))  # type: ignore[dict-item]
    assert (plain.draws, task.draws) == (False, True)


@pytest.mark.parametrize("kind", [Classify, Multilabel])
def test_splitting_a_batch_changes_nothing(kind: type[Any]) -> None:
    """Partners are drawn by their number among all pictures, so they need not be in the same part."""
    task = augmented(kind)
    examples = [Examples.of(task, rows(8)).in_epoch(1, 2)[i] for i in range(8)]
    _, model, _ = classifier("vit")

    def gradient(parts: list[list[Any]]) -> list[Tensor]:
        model.zero_grad()
        counts = {"examples": 8}
        for part in parts:
            task.loss(model, task.collate(part)).objective(counts).backward()
        return [one.grad.clone() for one in model.parameters() if one.grad is not None]

    whole, split = gradient([examples]), gradient([examples[:3], examples[3:4], examples[4:]])
    for one, other in zip(whole, split, strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-4)


def test_a_mixed_picture_has_the_labels_of_both_by_their_shares() -> None:
    task = augmented()
    only_mixed = replace(field(mixup=0.4), name="image")
    task = Classify(task.config, {"image": only_mixed}, Label(LABELS))
    cached = Examples.of(task, rows(9))
    drawn = [cached.in_epoch(0, 0)[i] for i in range(9)]
    batch = task.collate(drawn)
    plain = [one.arrays["pixels"].astype(float) for one in cached]
    for example, mine, shares_C in zip(drawn, cached, batch.labels_B, strict=True):
        (share,) = example.arrays["share"]
        expected = np.zeros(3)
        expected[int(mine.arrays["label"][0])] += share
        expected[int(example.arrays["partner"][0])] += 1 - share
        np.testing.assert_allclose(shares_C.numpy(), expected, atol=1e-6)
        mixed = [share * mine.arrays["pixels"] + (1 - share) * one for one in plain]
        assert min(np.abs(one - example.arrays["pixels"]).max() for one in mixed) < 0.51
    logits_BC = torch.randn(9, 3)
    loss = task.loss(lambda inputs: logits_BC, batch).parts["examples"].sum  # type: ignore[arg-type]
    log_probs_BC = logits_BC.log_softmax(-1)
    torch.testing.assert_close(loss, -(batch.labels_B * log_probs_BC).sum())


@pytest.mark.parametrize("setting", ["shift", "flip", "colour", "cutout", "mixup"])
def test_every_setting_draws(setting: str) -> None:
    one = pictures.field(**{setting: AUGMENTED[setting]})
    assert isinstance(one, Augmented)
    assert one.draws
    assert not pictures.field().draws
