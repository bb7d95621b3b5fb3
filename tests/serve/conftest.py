from collections.abc import Iterator
from pathlib import Path

import pytest

import regard
from served import Served, make_models, served


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return make_models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="session")
def server(models: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One for all tests that leave it as it was."""
    with served(models, tmp_path_factory.mktemp("log") / "stderr") as running:
        yield running


@pytest.fixture(scope="session")
def offline(models: list[Path]) -> "dict[str, regard.Trained]":
    return {path.name: regard.load(path) for path in models}
