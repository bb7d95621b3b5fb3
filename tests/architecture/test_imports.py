"""Who may know whom. An arrow not in this table is a decision somebody has to take, not an accident."""

import ast
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from graphlib import TopologicalSorter
from itertools import chain
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
    "shapes": "",
    "config": "",
    "linear": "",
    # what knows no model
    "files": "durable config errors",
    "text": "files durable config errors",
    "fields": "files text check.finding check.rows durable config errors",
    "data": "fields files text durable config errors",
    "metrics": "text errors",
    "decode": "config errors",
    "baselines": "files fields text data metrics errors",
    # what is computed
    "attention": "linear",
    "layers": "attention linear config",
    "models": "fields.axis layers attention linear text.tags config errors",
    # what a problem means
    "tasks": "layers.inputs layers.heads layers.retrieval layers.sampled models baselines files text fields"
    " data metrics decode attention.tap config errors"
    " init.columns init.match init.guess init.plan init.settings init.seq2seq"
    " check.finding check.rows check.labels",
    "training.machine": "",
    "init.columns": "fields files",
    "init.match": "init.columns files",
    "init.guess": "fields files",
    "init.plan": "init.guess training.machine",
    "init.settings": "init.guess init.plan",
    "init.seq2seq": "init.plan init.settings",
    "check.finding": "files",
    "check.rows": "check.finding files",
    "check.labels": "check.finding check.rows files errors",
    # what sees a problem only through the Task protocol
    "training": "linear tasks.task metrics.resample data text.sanitize durable config errors",
    "explain": "tasks.task tasks.prediction fields.axis files.row files.picture text decode.tree"
    " attention.tap durable errors",
    # what joins them
    "recipe": "fields models tasks training.config files text data config errors",
    "runs.store": "baselines models tasks training.checkpoint text durable errors __version__",
    "runs": "recipe models tasks interop.pretrained baselines metrics training files text data durable errors"
    " __version__",
    "interop": "fields runs.store recipe models layers attention tasks decode files text data durable"
    " training.checkpoint config errors __version__",
    "api": "text recipe runs interop models layers tasks metrics.resample decode training explain"
    " files fields data errors",
    "check": "fields recipe runs interop models.encoders tasks training files text data errors",
    "init": "fields tasks models recipe interop.pretrained runs.store training.machine files config errors",
    "regard": "api recipe",
    "experiments": "api models training layers attention linear durable",
    # what users touch
    "serve": "regard api decode tasks files explain text config errors __version__",
    "cli": "regard experiments api runs baselines check init interop serve recipe tasks metrics.resample"
    " fields files text data durable errors __version__ training explain attention.position",
    "__main__": "cli",
}
ONLY_TORCH = {"linear", "attention"}
PACKAGES = {
    "PIL": "pillow",
    "sklearn": "scikit_learn",
    "pycrfsuite": "python_crfsuite",
    "pydantic_core": "pydantic",
}
"""Libraries whose package has another name."""
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
    """The row of the table a file belongs to: its own, or its package's."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return "regard" if parts == ("__init__",) else row_of(".".join(parts))


def row_of(module: str) -> str:
    return module if module in MAY_IMPORT else module.split(".")[0]


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
        {part: {row_of(edge) for edge in edges.split()} for part, edges in MAY_IMPORT.items()}
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


def test_every_library_that_is_imported_is_required() -> None:
    """Also where another requirement brings it along, which may stop doing so, or bring an old one."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    required = {
        re.split("[<>=]", requirement)[0].lower().replace("-", "_")
        for requirement in [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    }
    used = set().union(*(libraries(path.read_text("utf-8")) for path in FILES))
    assert {PACKAGES.get(library, library) for library in used} - required == set()


def test_the_server_takes_no_library_with_a_known_hole() -> None:
    """starlette before 0.49.1: CVE-2025-62727; h11 before 0.16: CVE-2025-43859."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    for extra in ("serve", "dev"):
        assert {"starlette>=0.49.1", "h11>=0.16"} <= set(extras[extra])


@pytest.mark.parametrize(
    ("part", "source", "found"),
    [
        ("attention", "from regard.linear import Linear", []),
        ("attention", "import regard.models.transformer", ["models.transformer"]),
        ("attention", "def f():\n    from regard import errors", ["errors"]),
        ("training", "from regard.tasks.task import Task", []),
        ("training", "from regard.tasks import task, TASKS", ["tasks"]),
        ("training", "import regard", ["regard"]),
        ("runs.store", "from regard import __version__", []),
        ("explain", "from regard.attention.tap import Trace", []),
        ("explain", "from regard.attention import Trace", ["attention"]),
        ("layers", "if TYPE_CHECKING:\n    from ..models import widths", ["..models"]),
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


@pytest.mark.parametrize("package", ["files", "text", "fields", "data", "baselines"])
def test_what_reads_data_needs_no_torch(package: str) -> None:
    for path in (SOURCE / package).glob("*.py"):
        assert "torch" not in libraries(path.read_text("utf-8")), path


def test_few_modules_stand_outside_of_packages() -> None:
    assert len(list(SOURCE.glob("*.py"))) <= 9
