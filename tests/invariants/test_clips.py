"""What must hold for every encoder of clips, and for clips that are drawn anew."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from clips import ENCODERS, FRAMES, LABELS, classifier, field, film, moving
from regard.attention import Trace, sites, tapped
from regard.baselines.majority import Majority
from regard.baselines.pixels import MeanFrame, OneFrame
from regard.data.cache import Examples
from regard.errors import DataError, RecipeError
from regard.explain.replay import explain
from regard.files.row import Row
from regard.models.encoders.video import VideoConfig
from regard.runs.store import load_model, save_model
from regard.tasks import ClassifyConfig, task_rows


def rows(n: int = 4) -> list[Row]:
    films = [film(moving(8, 3 if number % 2 else -3, seed=number)) for number in range(n)]
    return [Row({"video": one, "label": ("left", "right")[at % 2]}, "f", at) for at, one in enumerate(films)]


@pytest.mark.parametrize("name", ENCODERS)
def test_it_is_the_same_alone_and_in_any_batch(name: str) -> None:
    task, model, _ = classifier(name)
    examples = task.encode(rows())
    with torch.inference_mode():
        together = model(task.collate(examples).inputs)
        alone = torch.cat([model(task.collate([one]).inputs) for one in examples])
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ENCODERS)
def test_it_is_the_same_while_somebody_looks(name: str) -> None:
    """The divided attention is then one over all tubelets, with a mask."""
    task, model, _ = classifier(name)
    batch = task.collate(task.encode(rows(2)))
    plain = model(batch.inputs)
    traces = {site: Trace() for site in sites(model)}
    with tapped(model, traces.get):
        seen = model(batch.inputs)
    torch.testing.assert_close(plain, seen, atol=1e-5, rtol=1e-5)
    for site, trace in traces.items():
        weights_BHQK = trace.weights_BHQK
        assert weights_BHQK.shape[-1] == 18, site
        torch.testing.assert_close(weights_BHQK.sum(-1), torch.ones(weights_BHQK.shape[:-1]))
        if site.endswith(".time"):
            seen_K = weights_BHQK[0, 0, 0] > 0
            assert seen_K.nonzero().flatten().tolist() == [0, 3, 6]
        elif ".space." in site:
            assert (weights_BHQK[0, 0, 0] > 0).nonzero().flatten().tolist() == [0, 1, 2, 9, 10, 11]


@pytest.mark.parametrize("name", ENCODERS)
def test_every_weight_learns_and_can_begin_again(name: str) -> None:
    task, model, _ = classifier(name)
    batch = task.collate(task.encode(rows()))
    task.loss(model.train(), batch).objective(batch.counts).backward()
    silent = [name for name, one in model.named_parameters() if one.grad is None or not one.grad.any()]
    assert silent == []
    learns: list[nn.Module] = [one for one in model.modules() if [*one.parameters(recurse=False)]]
    assert all(callable(module.reset_parameters) for module in learns)


@pytest.mark.parametrize("name", ENCODERS)
def test_it_is_saved_and_loaded_and_explained(name: str, tmp_path: Path) -> None:
    task, model, config = classifier(name)
    save_model(tmp_path / "model", task, task.config, model, config, {})
    again, _, loaded, same, _ = load_model(tmp_path / "model")
    assert (again.widths, same) == (task.widths, config)
    inputs = task.collate(task.encode(rows(2))).inputs
    assert torch.equal(model(inputs), loaded(inputs))
    shown = explain(task, model, str(config), rows(1)[0].cells["video"], torch.device("cpu"))
    chosen = shown.map(shown.main)
    assert chosen.columns.grid == (2, 9)
    assert shown.trust is not None


def test_order_in_time_matters() -> None:
    task, model, _ = classifier("divided")
    inputs = task.collate(task.encode(rows(1))).inputs
    backwards = {"frames": inputs["frames"].flip(1)}
    assert not torch.allclose(model(inputs), model(backwards), atol=1e-3)


def test_a_covered_tubelet_is_that_one_and_no_other() -> None:
    """The strip of frames is cut row by row: unit 4 of 2 × 9 is the second place of the second tubelet."""
    video, config = field(), VideoConfig()
    frames = moving()[None]
    (coded,) = video.encode([video.parse(film(moving()), "f")])
    axis = config.positions(video.axis([], coded))
    assert axis.grid == (2, 9)
    changed = video.without({"frames": frames}, axis, [4], "blank")["frames"]
    differs = (changed != frames).any(-1)[0]
    assert np.argwhere(differs.any((1, 2))).flatten().tolist() == [2, 3]
    assert np.argwhere(differs[2])[:, 0].max() < 8
    assert set(np.argwhere(differs[2])[:, 1]) <= set(range(8, 16))


def test_training_clips_are_drawn_anew() -> None:
    task, _, _ = classifier("divided", kept=12, shift=4)
    cached = Examples.of(task, rows(2))
    first, again, later = (cached.in_epoch(1, epoch)[0].arrays["frames"] for epoch in (0, 0, 1))
    assert first.shape[0] == FRAMES
    assert np.array_equal(first, again)
    assert not np.array_equal(first, later)
    assert task.collate([cached[0]]).inputs["frames"].shape[1] == FRAMES


def test_tables_say_which_part_of_a_film_is_meant(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(film(moving(10)))
    (tmp_path / "t.jsonl").write_text('{"path": "a.mp4", "label": "left", "start": 0.2, "end": 0.6}\n')
    config = ClassifyConfig(fields={"video": {"kind": "video"}})  # type: ignore[dict-item]
    (row,) = task_rows(config, ["t.jsonl"], {"video": "path", "label": None}, base=tmp_path)
    video = field()
    assert video.parse(row.cells["video"], "f")[2:] == (0.2, 0.6)
    with pytest.raises(DataError, match=r"begins at 3 s and ends at 1 s; mend start or end"):
        video.clean({"path": "a.mp4", "start": 3, "end": 1}, "f", "video", tmp_path)


def test_check_tells_short_and_damaged_clips() -> None:
    short = Row({"video": film(moving(3)), "label": "left"}, "f", 1)
    damaged = Row({"video": b"nothing", "label": "left"}, "f", 2)
    found = field().check("video", {"train": [short, damaged]})
    said = {one.kind: one.message for one in found}
    assert said["short-clip"].startswith("train: 1 row with fewer than 6 frames, of which some are then")
    assert "clips that cannot be read; the first: f:2: the clip is damaged" in said["unreadable"]


@pytest.mark.parametrize(
    ("settings", "width", "message"),
    [
        ({"tube": 4}, {}, r"6 frames cannot be cut into tubelets of 4; set fields.video.frames = 8"),
        ({"patch": 7}, {}, r"frames of 16 × 24 pixels cannot be cut into patches of 7 × 7; set fields.video"),
    ],
)
def test_sizes_that_do_not_fit_are_said(
    settings: dict[str, int], width: dict[str, int], message: str
) -> None:
    with pytest.raises(RecipeError, match=message):
        VideoConfig(**settings).build({**field().width, **width})  # type: ignore[arg-type]


def test_one_frame_and_the_mean_frame_stand_beside() -> None:
    """A motion is in no frame; where the class is a brightness, both know it."""
    task, _, _ = classifier("divided")
    bright = [
        Row({"video": film(moving(6, seed=at) // 2 + 120 * (at % 2)), "label": LABELS[at % 2]}, "f", at)
        for at in range(12)
    ]
    assert [kind for kind in task.baselines if kind.suits(task)] == [Majority, OneFrame, MeanFrame]
    for kind in (OneFrame, MeanFrame):
        baseline = kind.fit(task, bright[:8])
        assert list(baseline.answers(task.encode(bright[8:]))) == ["left", "right"] * 2
