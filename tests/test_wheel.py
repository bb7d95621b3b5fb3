"""The wheel holds all that regard needs, without the checkout."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (built,) = folder.glob("regard-*.whl")
    return built


def test_all_files_travel(wheel: Path) -> None:
    package = ROOT / "src" / "regard"
    files = {
        f"regard/{path.relative_to(package)}"
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert files <= set(zipfile.ZipFile(wheel).namelist())


def test_it_trains_by_itself(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    (tmp_path / "reviews.csv").write_text(
        "text,label\n" + "clean room,good\nnoisy street,bad\n" * 20, encoding="utf-8"
    )
    environment = {"PYTHONPATH": str(tmp_path / "installed"), "OMP_NUM_THREADS": "1"}

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert str(tmp_path) in run("-c", "import regard; print(regard.__file__)")
    run("-m", "regard", "init", "reviews.csv")
    run("-m", "regard", "train", "recipe.toml", "train.max_steps=2", "run=runs/reviews")
    run("-m", "regard", "explain", "runs/reviews", "clean street")
    assert (tmp_path / "attention.html").is_file()
