"""The command line as its user sees it, in an empty folder, with two models trained once for all tests."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import regard
from regard.cli import app
from small_runs import CLASSIFY, Call, write_recipe


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


@pytest.fixture
def call() -> Call:
    """`call("predict", run, "text", input="…")` is `regard predict RUN text`."""

    def invoke(*arguments: object, input: str | bytes | None = None) -> Result:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=input)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return invoke


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    return write_recipe(tmp_path)


@pytest.fixture(scope="session")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of a trained translator; not to be changed."""
    folder = tmp_path_factory.mktemp("translator")
    regard.train(write_recipe(folder), quiet=True)
    return folder / "run"


@pytest.fixture(scope="session")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of a trained classifier; not to be changed."""
    folder = tmp_path_factory.mktemp("classifier")
    regard.train(write_recipe(folder, CLASSIFY), quiet=True)
    return folder / "run"
