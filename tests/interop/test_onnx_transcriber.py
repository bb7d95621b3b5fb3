"""A model that listens, exported in chunks: the same answers from onnxruntime, chunk after chunk."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from hearers import make_hearer
from regard.errors import RunError
from regard.interop import onnx_transcriber
from regard.interop.export import export
from sounds import RATE, spoken, wav


@pytest.mark.parametrize("kind", ["transducer", "ctc"])
def test_onnxruntime_hears_the_same(kind: str, tmp_path: Path) -> None:
    trained = regard.load(make_hearer(tmp_path / "model", kind))
    sounds = [wav(spoken("amber birch cedar delta"[: 5 + 6 * n], n)[0]) for n in (0, 1, 3)]
    report = export(trained.task, trained.model, trained.model_config, tmp_path / "onnx", "onnx", sounds)
    assert report.identical == 1.0
    assert report.difference < 1e-3
    assert (tmp_path / "onnx" / "joint.onnx").exists() == (kind != "ctc")


def test_what_waits_for_what_comes_is_not_exported(tmp_path: Path) -> None:
    from invariants.test_speech import made

    settings: dict[str, Any] = {"kind": "ctc"}
    task, _, config = made(settings)
    waiting = config.model_copy(update={"encoder": config.encoder.model_copy(update={"look_ahead": 2})})
    with pytest.raises(RunError, match="look_ahead"):
        export(
            task, waiting.build(task.widths).eval(), waiting, tmp_path / "out", "onnx", [wav(np.zeros(RATE))]
        )
    assert not (tmp_path / "out").exists()


def test_the_features_in_the_graph_are_those_of_the_field(tmp_path: Path) -> None:
    import torch

    from regard.fields.mel import Mel
    from regard.interop.onnx_transcriber import Features

    mel, rng = Mel(RATE, 11), np.random.default_rng(0)
    samples = (rng.normal(0, 3000, 40 * mel.hop + mel.window)).astype(np.int16)
    graph = Features(mel, 41)(torch.from_numpy(samples.astype(np.float32)))
    np.testing.assert_allclose(graph.numpy(), mel.frames(samples), atol=2e-4)


@pytest.mark.parametrize("kind", ["lstm", "ctc"])
def test_the_example_streams_what_regard_hears(kind: str, tmp_path: Path) -> None:
    trained = regard.load(make_hearer(tmp_path / "model", kind))
    (tmp_path / "onnx").mkdir()
    onnx_transcriber.write(trained.task, trained.model, tmp_path / "onnx")
    recording = tmp_path / "recording.wav"
    recording.write_bytes(wav(spoken("amber birch cedar delta amber", 4)[0]))
    (answer,) = trained.predict([recording], streamed=True, beam=1)
    example = Path(__file__).parents[2] / "examples" / "stream_onnx.py"
    command = [sys.executable, str(example), str(tmp_path / "onnx"), str(recording)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.strip() == answer.text
    assert answer.text
