"""What must hold for every model that hears: in pieces as at once, alone as in a batch, saved as loaded."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from regard.attention import Trace, sites, tapped
from regard.data.cache import Examples
from regard.decode.frames import searching
from regard.models.encoders.speech import Speech, SpeechConfig
from regard.runs.store import load_model, save_model
from regard.tasks import Transcribe, TranscribeConfig
from sounds import rows

SIZES: dict[str, Any] = {"d_model": 16, "n_heads": 2, "d_ff": 24, "n_layers": 2, "d_stem": 3, "chunk": 5}
ENCODERS: dict[str, dict[str, Any]] = {
    "transformer": {"left_chunks": 2},
    "conformer": {"block": "conformer", "kernel": 4, "left_chunks": 1},
    "ahead": {"look_ahead": 3, "left_chunks": 2},
    "relative": {"position": "relative", "block": "conformer", "look_ahead": 2, "left_chunks": 3},
    "alibi": {"position": "alibi", "left_chunks": 0},
}
MODELS: dict[str, dict[str, Any]] = {
    "transducer": {"kind": "transducer", "d_joint": 12},
    "lstm": {"kind": "transducer", "prediction": "lstm", "d_joint": 12},
    "ctc": {"kind": "ctc"},
}
LENGTHS = (4, 7, 31, 64, 101, 167, 331)
each_encoder = pytest.mark.parametrize("settings", ENCODERS.values(), ids=ENCODERS.keys())
each_model = pytest.mark.parametrize("settings", MODELS.values(), ids=MODELS.keys())


def encoder(**settings: Any) -> Speech:
    torch.manual_seed(1)
    width = {"mels": 11, "rate": 8000, "mean": [0.3] * 11, "deviation": [1.3] * 11}
    return SpeechConfig(**(SIZES | settings)).build(width).eval()


def frames_of(length: int, n_batch: int = 2) -> Tensor:
    return torch.randn(n_batch, length, 11, generator=torch.Generator().manual_seed(length))


def streamed(model: Speech, frames_BTM: Tensor) -> Tensor:
    """The states of chunk after chunk."""
    heard, states, at = model.start(len(frames_BTM)), [], 0
    while True:
        n = model.n_frames(heard)
        last = at + n >= frames_BTM.shape[1]
        found, heard = model.step(frames_BTM[:, at : at + n], heard, last=last)
        states.append(found)
        at += n
        if last:
            return torch.cat(states, 1)


@each_encoder
def test_chunk_by_chunk_is_the_whole_under_the_same_mask(settings: dict[str, Any]) -> None:
    model = encoder(**settings)
    for length in LENGTHS:
        frames_BTM = frames_of(length)
        lengths_B = torch.tensor([length] * 2)
        with torch.no_grad():
            whole = model({"frames": frames_BTM, "lengths": lengths_B, "streamed": torch.ones(())})
            torch.testing.assert_close(streamed(model, frames_BTM), whole.states_RTD, atol=1e-5, rtol=1e-5)


@each_encoder
def test_caches_have_one_size(settings: dict[str, Any]) -> None:
    model, heard, sizes = encoder(**settings), None, []
    heard = model.start(1)
    for number in range(9):
        _, heard = model.step(frames_of(model.n_frames(heard), 1) + number, heard)
        sizes.append([tuple(one.shape) for one in tensors_in(heard)])
    assert sizes[-1] == sizes[-2] == sizes[-3]


def tensors_in(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, tuple):
        return [one for part in value for one in tensors_in(part)]
    names = getattr(value, "__dataclass_fields__", {})
    return [one for name in names for one in tensors_in(getattr(value, name))]


@each_encoder
def test_positions_begin_anew_without_a_change(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, frames_BTM = encoder(**settings), frames_of(640)
    with torch.no_grad():
        far = streamed(model, frames_BTM)
        monkeypatch.setattr("regard.models.encoders.speech.FAR", 23)
        torch.testing.assert_close(streamed(model, frames_BTM), far, atol=1e-5, rtol=1e-5)


@each_encoder
@pytest.mark.parametrize("in_chunks", [False, True])
def test_padding_changes_nothing(settings: dict[str, Any], in_chunks: bool) -> None:
    model = encoder(**settings)
    extra = {"streamed": torch.ones(())} if in_chunks else {}
    frames_BTM = torch.full((len(LENGTHS), max(LENGTHS), 11), 7.0)
    for row_TM, length in zip(frames_BTM, LENGTHS, strict=True):
        row_TM[:length] = frames_of(length, 1)[0]
    with torch.no_grad():
        together = model({"frames": frames_BTM, "lengths": torch.tensor(LENGTHS), **extra})
        for row, length in enumerate(LENGTHS):
            alone = model({"frames": frames_of(length, 1), "lengths": torch.tensor([length]), **extra})
            n = int(alone.lengths_R[0])
            assert n == int(together.lengths_R[row]) == length // 4
            torch.testing.assert_close(
                together.states_RTD[row, :n], alone.states_RTD[0, :n], atol=1e-5, rtol=1e-5
            )


def test_what_is_not_heard_yet_changes_nothing() -> None:
    """A state of a chunk depends on no frame behind it, but for as many as it waits for."""
    for ahead in (0, 3):
        model, frames_BTM = encoder(look_ahead=ahead, left_chunks=2), frames_of(120, 1)
        changed_BTM = frames_BTM.clone()
        changed_BTM[:, 60:] += 1.0
        inputs = {"lengths": torch.tensor([120]), "streamed": torch.ones(())}
        with torch.no_grad():
            one, other = (model({"frames": x, **inputs}).states_RTD[0] for x in (frames_BTM, changed_BTM))
        same_T = torch.isclose(one, other, atol=1e-6).all(-1)
        first = int((~same_T).nonzero()[0])
        assert first == (15 - ahead) // 5 * 5


def made(settings: dict[str, Any], **task: Any) -> tuple[Transcribe, Any, Any]:
    from pydantic import TypeAdapter

    from regard.models import ModelConfig

    fields = {"audio": {"mels": 11, "rate": 8000}}
    config = TranscribeConfig.model_validate(
        {"fields": fields, "tokenizer": {"kind": "word", "min_frequency": 1}} | task
    )
    fitted = Transcribe.fit(config, rows(9))
    torch.manual_seed(2)
    model_config: Any = TypeAdapter(ModelConfig).validate_python(
        settings | {"encoder": {"kind": "speech", **SIZES}}
    )
    return fitted, model_config.build(fitted.widths).eval(), model_config


@each_model
def test_a_model_is_saved_and_loaded(settings: dict[str, Any], tmp_path: Path) -> None:
    task, model, config = made(settings)
    save_model(tmp_path / "model", task, task.config, model, config, {})
    again, _, loaded, same, _ = load_model(tmp_path / "model")
    assert (again.widths, same) == (task.widths, config)
    batch = task.collate(task.encode(rows(3, 1)))
    assert [one.text for _, one in task.predict(model, batch)] == [
        one.text for _, one in again.predict(loaded, batch)
    ]


@each_model
def test_every_weight_learns(settings: dict[str, Any]) -> None:
    task, model, _ = made(settings)
    batch = task.collate(task.encode(rows(4)))
    task.loss(model.train(), batch).objective(batch.counts).backward()
    silent = [name for name, one in model.named_parameters() if one.grad is None or not one.grad.any()]
    assert silent == []


@each_model
@pytest.mark.parametrize("beam", [1, 4])
def test_answers_are_the_same_alone_and_in_a_batch(settings: dict[str, Any], beam: int) -> None:
    task, model, _ = made(settings, decode={"beam": beam})
    examples = task.encode(rows(5, 3))
    together = dict(task.predict(model, task.collate(examples)))
    for place, example in enumerate(examples):
        ((_, alone),) = task.predict(model, task.collate([example]))
        assert (alone.text, alone.ids, alone.frames) == (
            together[place].text,
            together[place].ids,
            together[place].frames,
        )
        assert alone.score == pytest.approx(together[place].score, abs=1e-3)


@each_model
@pytest.mark.parametrize("beam", [1, 3])
def test_a_search_in_pieces_is_the_search_at_once(settings: dict[str, Any], beam: int) -> None:
    task, model, _ = made(settings, decode={"beam": beam})
    (example,) = task.encode(rows(1, 4))
    begin, search = searching(model)
    with torch.no_grad():
        entered_BTF = model.enter(model.encoder(task.collate([example]).inputs).states_RTD)
    n_frames, rng = entered_BTF.shape[1], np.random.default_rng(0)
    setting = task.settings_of(task.decode, torch.device("cpu"))
    at_once = search(entered_BTF, [n_frames], begin(1), setting).rows[0]
    for _ in range(5):
        borders = [0, *sorted(rng.choice(n_frames, 4, replace=False).tolist()), n_frames]
        found = begin(1)
        for first, end in pairwise(borders):
            found = search(entered_BTF[:, first:end], [end - first], found, setting)
        assert [(path.labels, path.frames) for path in found.rows[0]] == [
            (path.labels, path.frames) for path in at_once
        ]


@each_model
def test_it_is_the_same_while_somebody_looks(settings: dict[str, Any]) -> None:
    task, model, _ = made(settings)
    batch = task.collate(task.encode(rows(2, 5)))
    with torch.no_grad():
        plain = model.encoder(batch.inputs).states_RTD
        traces = {site: Trace() for site in sites(model)}
        with tapped(model, traces.get):
            seen = model.encoder(batch.inputs).states_RTD
    torch.testing.assert_close(plain, seen, atol=1e-5, rtol=1e-5)
    assert len(traces) == SIZES["n_layers"]


@each_model
def test_splitting_a_batch_changes_nothing(settings: dict[str, Any]) -> None:
    task, model, _ = made(settings)
    examples = [Examples.of(task, rows(6))[i] for i in range(6)]
    whole = task.collate(examples)

    def gradient(parts: list[list[Any]]) -> list[Tensor]:
        model.zero_grad()
        for part in parts:
            task.loss(model, task.collate(part)).objective(whole.counts).backward()
        return [one.grad.clone() for one in model.parameters()]

    for one, other in zip(
        gradient([examples]), gradient([examples[:2], examples[2:3], examples[3:]]), strict=True
    ):
        torch.testing.assert_close(one, other, atol=2e-5, rtol=1e-3)


def test_drawn_sounds_are_others_in_every_epoch_and_the_same_when_it_is_run_again() -> None:
    task, _, _ = made(MODELS["ctc"], fields={"audio": {"mels": 11, "rate": 8000, "speed": 0.1, "level": 6}})
    cached = Examples.of(task, rows(5))
    first, again, later = (cached.in_epoch(3, epoch) for epoch in (0, 0, 1))
    same = [np.array_equal(a.arrays["frames"], b.arrays["frames"]) for a, b in zip(first, again, strict=True)]
    other = [
        np.array_equal(a.arrays["frames"], b.arrays["frames"]) for a, b in zip(first, later, strict=True)
    ]
    assert all(same)
    assert not any(other)
