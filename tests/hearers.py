"""Folders of small models of transcribe, whose random weights write different words for different sounds."""

from pathlib import Path
from typing import Any

from invariants.test_speech import MODELS, made
from regard.runs.store import save_model


def make_hearer(folder: Path, kind: str = "transducer", **settings: Any) -> Path:
    task, model, config = made(MODELS[kind], **settings)
    save_model(folder, task, task.config, model, config, {})
    return folder
