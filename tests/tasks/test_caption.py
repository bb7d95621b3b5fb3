"""Captioning: where attention points, what is learnt from, what `check` finds, what is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import pictures
from captions import CNN, RNN, captioner, rows
from pictures import COLUMNS, ROWS, noise
from regard.errors import DataError, RecipeError
from regard.files.row import Row
from regard.init.detect import detect
from regard.recipe import Recipe
from regard.tasks import CaptionConfig, Captioning
from regard.tasks.caption_data import CAPTION
from regard.tasks.pointing import pointed
from regard.tasks.prediction import Written

SETTINGS: dict[str, Any] = {
    "task": {"kind": "caption"},
    "data": {"train": "c.json"},
    "model": {"kind": "captioner", "encoder": CNN, "decoder": RNN},
}


def test_pointing_is_counted_word_by_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attention on cell 0 of 6 × 10 for one word and on the last for the next: only one box holds each."""
    task, model, _ = captioner("cnn-rnn", names={"bird": "dog"})
    ids = task.target.tokenizer.encode("a dog above a bird").ids
    boxes = [
        {"name": "dog", "box": [0, 0, COLUMNS / 2, ROWS / 2]},
        {"name": "cat", "box": [0, 0, COLUMNS, ROWS]},
    ]
    (row,) = rows(1)
    batch = task.collate(task.encode([replace(row, cells={**row.cells, "objects": boxes})]))
    cells = iter([0, 0, 0, 0, 59, 0])

    def look(query_BQD: torch.Tensor, memory: Any) -> torch.Tensor:
        weights_BHQK = torch.zeros(1, 1, 1, 60)
        weights_BHQK[..., next(cells)] = 1
        model.decoder.attention.tap(weights_BHQK, memory.states.v_BGKW)
        return torch.zeros_like(query_BQD)

    monkeypatch.setattr(model.decoder, "_look", look)
    assert pointed(task, model, batch, [Written(text="", ids=tuple(ids))]) == [(1, 2)]


@pytest.mark.parametrize(
    ("settings", "box", "expected"),
    [
        ({}, [0, 0, 20, 12], (0, 0, 1, 1)),
        ({"resize": "stretch"}, [10, 3, 5, 6], (0.5, 0.25, 0.75, 0.75)),
        ({}, [10, 3, 5, 6], (0.5, 0.25, 0.75, 0.75)),
    ],
)
def test_a_box_goes_where_its_pixels_go(
    settings: dict[str, Any], box: list[float], expected: tuple[float, ...]
) -> None:
    image = pictures.field(**settings)
    (source,) = (image.parse(one, "f") for one in noise(1))
    assert image.region(source, box) == pytest.approx(expected)


def test_a_box_in_a_picture_of_another_shape_is_where_a_bright_spot_ends_up() -> None:
    image = pictures.field(rows=8, columns=8)
    pixels = np.zeros((40, 100, 3), np.uint8)
    pixels[10:20, 50:60] = 255
    source = image.parse(pictures.png(pixels), "f")
    (coded,) = image.encode([source])
    bright_YX = coded.arrays["pixels"][..., 0] / coded.arrays["pixels"][..., 0].sum()
    y, x = (bright_YX.sum(axis) @ np.arange(8) for axis in (1, 0))
    left, top, right, bottom = image.region(source, [50, 10, 10, 10])
    assert (8 * (top + bottom) / 2, 8 * (left + right) / 2) == pytest.approx((y + 0.5, x + 0.5), abs=0.05)


def test_captions_that_are_too_long_are_left_out_one_by_one() -> None:
    task, _, _ = captioner("cnn-rnn", max_length=4)
    (row, *_) = rows()
    (example,) = task.encode([row])
    assert [len(one) - 2 for one in task.targets(example)] == [2]
    assert task.unusable(example) is None
    (long,) = task.encode([replace(row, cells={**row.cells, "captions": row.cells["captions"][:1]})])
    assert task.unusable(long) == "too long"
    (empty,) = task.encode([replace(row, cells={**row.cells, "captions": []})])
    assert task.unusable(empty) == "without a caption"


def test_a_caption_may_be_long_whatever_its_picture() -> None:
    task, _, _ = captioner("cnn-rnn")
    assert task.writer.limit(1, task.decode) == 41
    bounded = task.with_settings(must_include="zebra", beam=3)
    with pytest.raises(RecipeError, match=r"decode.must_include: 'zebra' has characters the vocabulary"):
        bounded.writer.refuse_unkeepable(bounded.decode)


def test_data_without_captions_are_refused() -> None:
    row = Row({"image": noise(1)[0], "captions": []}, "f", 1)
    with pytest.raises(
        DataError, match="the training data hold no captions; give every picture at least one"
    ):
        Captioning.fit(CaptionConfig(), [row])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoder": {"kind": "rnn"}}, r"rnn reads tokens, but the task's input is pixels; use vit or cnn"),
        ({"decoder": {"kind": "lstm"}}, r"model.decoder.kind: unknown 'lstm'"),
        (
            {"decoder": {"kind": "rnn", "attention": "none", "doubly_stochastic": 1}},
            r"doubly_stochastic needs attention",
        ),
        ({"decoder": {"kind": "transformer", "doubly_stochastic": 1}}, r"model.decoder.doubly_stochastic"),
    ],
)
def test_what_does_not_fit_is_said(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        Recipe.parse(SETTINGS | {"model": SETTINGS["model"] | changes})


def test_check_finds_pictures_without_captions_and_in_two_splits() -> None:
    train = rows(4)
    train[2] = replace(train[2], cells={**train[2].cells, "captions": []})
    found = CAPTION.examine({"train": train, "test": train[:1]}, CaptionConfig())
    said = {one.kind: one.message for one in found}
    assert said["without-caption"].startswith("train: 1 row without a caption, left out of training")
    assert "also in train" in said["shared"]
    assert "4 pictures are too few to learn to see from" in said["few-pictures"]


def test_files_of_captions_are_recognised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("flickr").mkdir()
    for number, content in enumerate(noise(3)):
        Path(f"flickr/{number}.png").write_bytes(content)
    Path("flickr/captions.txt").write_text(
        "".join(f"{number}.png#{k}\tpicture {number} once more, {k}\n" for number in range(3) for k in (0, 1))
    )
    Path("train.csv").write_text(
        "file,caption\n" + "".join(f"flickr/{n}.png,here is what number {n} shows\n" for n in range(3))
    )
    Path("train.json").write_text(
        '{"images": [{"id": 1, "file_name": "flickr/0.png"}], '
        '"annotations": [{"image_id": 1, "caption": "a b"}]}'
    )
    for files in (["flickr/"], ["train.csv"], ["train.json"]):
        guess = detect(files)
        assert (guess.task, dict(guess.kinds)) == ("caption", {"image": "image"})
        assert "flip" not in guess.suggestions["image"].settings, "captions say left and right"
    assert detect(["flickr/"]).n_rows == 3
