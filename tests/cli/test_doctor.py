"""The environment is told as it is."""

import json
from importlib import import_module

import pytest
import torch
from typer.testing import CliRunner

from regard.cli import app

doctor = import_module("regard.cli.doctor")  # the package calls its function so


def test_the_environment_as_json() -> None:
    result = CliRunner().invoke(app, ["doctor", "--json"])
    report = json.loads(result.stdout)
    assert report["torch"] == torch.__version__
    assert report["packages"]["needed"]["torch"] == torch.__version__
    assert set(report["packages"]) >= {"needed", "serve", "image", "onnx"}
    assert not {"dev", "docs"} & set(report["packages"])


def test_what_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_version", lambda name: None if name in ("pillow", "numpy") else "7")
    output = CliRunner().invoke(app, ["doctor"]).stdout
    assert "pillow (not installed)" in output
    assert "! numpy is missing, but regard cannot run without it" in output


def test_idle_cores_and_an_unseen_gpu_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    warnings = doctor._warnings(8, 3, False, {"needed": {"torch": "2.13.0+cu130"}})
    assert warnings == [
        "OMP_NUM_THREADS=3 leaves 5 of 8 cores idle; unset it, unless several processes share this machine",
        "torch is built for a GPU, but none is visible; check the driver, or install the CPU build",
    ]
    assert doctor._warnings(8, 3, True, {"needed": {"torch": "2.13.0+cu130"}}) == warnings[:1]
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert doctor._warnings(8, 3, False, {"needed": {"torch": "2.13.0+cpu"}}) == []
