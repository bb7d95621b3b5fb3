"""A training of a tiny translator, ready to run: 23 pairs, several batches an epoch."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from regard.data.cache import Examples
from regard.files.read import read_rows
from regard.tasks import Translate, TranslateConfig
from regard.training.config import TrainConfig
from regard.training.state import Training
from tiny import mirrored, transformer

Make = Callable[..., Training]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Keywords are those of TrainConfig; `folder` holds the checkpoints, `model_seed` first weights."""
    rows = list(read_rows(mirrored(tmp_path, 23), {"source": None, "target": None}))
    config = TranslateConfig.model_validate(
        {"tokenizer": {"kind": "word", "vocab_size": 50, "min_frequency": 1}, "max_length": 8}
    )
    task = Translate.fit(config, rows)
    train, valid = Examples.of(task, rows[:19]), task.encode(rows[19:])

    def build(
        folder: str = "run", *, seed: int = 1, model_seed: int = 1, dropout: float = 0.2, **plan: object
    ) -> Training:
        torch.manual_seed(model_seed)
        model = transformer(n_encoder_layers=1, n_decoder_layers=1, dropout=dropout).build(task.widths)
        settings = TrainConfig.model_validate({"batch_tokens": 20, "lr": 0.01, "warmup": 3} | plan)
        return Training(
            task,
            model,
            train,
            valid,
            settings,
            tmp_path / folder / "checkpoints",
            seed,
            torch.device("cpu"),
            d_model=12,
        )

    return build
