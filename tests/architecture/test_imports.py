"""Who may know whom. An arrow not in this table is a decision somebody has to take, not an accident."""

import ast
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "regard"
FILES = sorted(SOURCE.rglob("*.py"))

MAY_IMPORT = {
    # the ground
    "__version__": "",
    "errors": "",
    "durable": "",
    "plain": "",
    "shapes": "",
    "config": "",
    "linear": "",
    "letters": "",
    "tags": "",
    # what is computed
    "attention": "linear",
    "layers": "attention linear config",
    "models": "layers attention linear tags config errors",
    # what knows no model
    "data": "durable letters config errors",
    "metrics": "tags letters errors",
    "decode": "config errors",
    # what a problem means
    "tasks": "models layers.heads data metrics decode tags letters config errors",
    # what it means to everybody but its training
    "kinds": "tasks data machine tags letters errors",
    # what sees a problem only through the Task protocol
    "training": "linear tasks.task metrics.resample data.batching data.examples data.ahead machine durable"
    " plain config errors",
    "explain": "tasks.task data.source data.tokenizer decode.tree attention.tap plain errors",
    # what joins them
    "recipe": "models tasks training.config data config errors",
    "report": "training.journal lock durable plain errors",
    "store": "models tasks training.checkpoint durable plain errors __version__",
    "export": "models layers.recurrent layers.copying attention store tasks decode data durable"
    " training.checkpoint config errors",
    "encoder": "store export models layers.pooling data training.checkpoint durable errors __version__",
    "importing": "encoder export store models tasks training.checkpoint config errors",
    "decoder": "store export models data errors",
    "begin": "encoder decoder recipe models errors",
    "lock": "errors",
    "identity": "recipe data.fingerprint machine durable errors",
    "corpus": "recipe tasks data lock errors",
    "run": "recipe corpus begin report store models machine tasks metrics.resample training data"
    " durable identity lock errors",
    "fast": "export tasks models decode data.source errors",
    "api": "recipe store run fast follow models tasks metrics.resample decode training explain export data"
    " errors",
    "describe": "recipe store models tasks training.journal errors",
    "machine": "",
    "follow": "",
    "doctor": "recipe corpus begin run machine tasks kinds training.config training.fitting training.loop"
    " training.state data errors",
    "sniff": "kinds data errors",
    "draft": "kinds",
    "embed": "encoder layers.pooling data.batching data.source run tasks.task errors",
    "relate": "api kinds.pairs tasks data.source errors",
    "regard": "api embed recipe relate",
    # what users touch
    "serve": "regard api decode kinds data.source explain.assets explain.page config plain errors"
    " __version__",
    "cli": "regard api describe embed relate report doctor sniff draft kinds export importing machine serve"
    " recipe tasks.task metrics.resample data durable errors __version__ training.stopping training.ranks"
    " plain explain.explanation explain.terminal explain.positions attention.position",
    "__main__": "cli",
}
ONLY_TORCH = {"linear", "attention"}
ALWAYS_INSTALLED = {
    requirement.split(">=")[0]
    for requirement in tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
}


def imported(source: str) -> Iterator[str]:
    """Dotted names of the modules a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from (
                f"{module}.{alias.name}" if is_module(f"{module}.{alias.name}") else module
                for alias in node.names
            )


def is_module(name: str) -> bool:
    path = SOURCE.joinpath(*name.split(".")[1:])
    return name == "regard.__version__" or (
        name.startswith("regard.") and (path.is_dir() or path.with_suffix(".py").is_file())
    )


def part_of(path: Path) -> str:
    """The row of the table a file belongs to: its package, or itself beside the packages."""
    part = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    return "regard" if part == "__init__" else part


def forbidden(part: str, source: str) -> list[str]:
    allowed = [part, *MAY_IMPORT[part].split()]
    ours = {name.removeprefix("regard.") for name in imported(source) if name.split(".")[0] in ("regard", "")}
    return sorted(name for name in ours if not any(name == a or name.startswith(f"{a}.") for a in allowed))


def libraries(source: str) -> set[str]:
    return {name.split(".")[0] for name in imported(source)} - sys.stdlib_module_names - {"regard", ""}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_file_imports_only_what_its_row_allows(path: Path) -> None:
    part = part_of(path)
    assert part in MAY_IMPORT, f"{part} has no row in the table"
    found = forbidden(part, path.read_text("utf-8"))
    assert not found, f"{part} may import: {MAY_IMPORT[part] or 'nothing of ours'}"


def test_the_table_has_no_cycle() -> None:
    TopologicalSorter(
        {part: {edge.split(".")[0] for edge in edges.split()} for part, edges in MAY_IMPORT.items()}
    ).prepare()


def test_the_heart_needs_only_torch() -> None:
    for path in FILES:
        if part_of(path) in ONLY_TORCH:
            assert libraries(path.read_text("utf-8")) <= {"torch"}, path


def test_an_optional_library_is_imported_in_one_file_only() -> None:
    users: dict[str, list[str]] = defaultdict(list)
    for path in FILES:
        for library in libraries(path.read_text("utf-8")) - ALWAYS_INSTALLED:
            users[library].append(str(path.relative_to(SOURCE)))
    assert {library: files for library, files in users.items() if len(files) > 1} == {}


@pytest.mark.parametrize(
    ("part", "source", "found"),
    [
        ("attention", "from regard.linear import Linear", []),
        ("attention", "import regard.models.transformer", ["models.transformer"]),
        ("attention", "def f():\n    from regard import errors", ["errors"]),
        ("training", "from regard.tasks.task import Task", []),
        ("training", "from regard.tasks import task, TASKS", ["tasks"]),
        ("training", "import regard", ["regard"]),
        ("store", "from regard import __version__", []),
        ("explain", "from regard.attention.tap import Trace", []),
        ("explain", "from regard.attention import Trace", ["attention"]),
        ("layers", "if TYPE_CHECKING:\n    from ..models import dims", ["..models"]),
        ("layers", "import torch, regardless", []),
    ],
)
def test_the_test_sees(part: str, source: str, found: list[str]) -> None:
    assert forbidden(part, source) == found


def test_the_test_sees_libraries() -> None:
    assert libraries("import os, torch.nn\nfrom matplotlib import pyplot\nimport regard.api") == {
        "torch",
        "matplotlib",
    }
