"""What trains, explains and serves meets tasks, models and kinds of data only through their protocols."""

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest

import regard
from regard.fields import FIELDS
from regard.models import ModelConfig
from regard.models.encoders import ENCODERS
from regard.tasks import TASKS

SOURCE = Path(regard.__file__).parent
GENERIC = ("data", "training", "explain", "serve", "cli")
"""The packages that know no concrete task, model or field."""
FILES = sorted(path for package in GENERIC for path in (SOURCE / package).rglob("*.py"))
PROTOCOLS = {
    *("regard.tasks", "regard.tasks.task", "regard.tasks.prediction"),
    *("regard.fields", "regard.fields.field", "regard.fields.axis"),
}
"""The modules of tasks, models and fields that they may import: protocols, tables, what maps are between."""
EXCUSED = {("data/paired.py", "regard.fields.sentences")}
"""The layout of pairs of sentences names the three classes of a pair as the field of documents does."""
ALSO_WORDS = {"answer", "audio", "caption", "image", "label", "series", "speech", "text", "words"}
"""Kinds that are the names of roles, of parts of messages or of elements of a page as well."""


def model_kinds() -> set[str]:
    return {config.model_fields["kind"].default for config in get_args(get_args(ModelConfig)[0])}


KINDS = {*TASKS, *model_kinds(), *ENCODERS, *FIELDS}


def concrete(source: str) -> Iterator[str]:
    """What a file knows of one task, model or field: its class, its kind, or the module that holds it."""
    tree = ast.parse(source)
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module)) if _is_concrete(module):
                yield f"line {node.lineno}: from {module}"
            case ast.Import(names=names):
                yield from (f"line {node.lineno}: import {a.name}" for a in names if _is_concrete(a.name))
            case ast.Constant(value=str(value)) if value in KINDS - ALSO_WORDS and id(node) not in prose:
                yield f"line {node.lineno}: {value!r}"
            case ast.Compare(left=left, comparators=others) if any(map(_asks_kind, (left, *others))):
                if any(_literals(side) & KINDS for side in (left, *others)):
                    yield f"line {node.lineno}: {ast.unparse(node)}"
            case ast.Match(subject=subject, cases=cases) if _asks_kind(subject):
                if any(_literals(case.pattern) & KINDS for case in cases):
                    yield f"line {node.lineno}: match {ast.unparse(subject)}"
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, classes]):
                names = {n.id for n in ast.walk(classes) if isinstance(n, ast.Name)}
                yield from (f"line {node.lineno}: isinstance of {name}" for name in names & CLASSES)
            case ast.MatchClass(cls=ast.Name(id=name)) if name in CLASSES:
                yield f"line {node.lineno}: case {name}"


def _is_concrete(module: str) -> bool:
    return module.startswith(("regard.tasks", "regard.models", "regard.fields")) and module not in PROTOCOLS


def _asks_kind(node: ast.expr) -> bool:
    """Whether it is `something.kind`, or what an encoder reads."""
    return isinstance(node, ast.Attribute) and node.attr in ("kind", "reads", "task")


def _literals(node: ast.AST) -> set[str]:
    return {n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)}


def _classes() -> set[str]:
    """The names of all classes of tasks, models and fields, and of their settings, but for the protocols."""
    for path in SOURCE.rglob("*.py"):
        if path.relative_to(SOURCE).parts[0] in ("tasks", "models", "fields"):
            __import__(".".join(("regard", *path.relative_to(SOURCE).with_suffix("").parts)))
    modules = [
        module
        for name, module in list(sys.modules.items())
        if _is_concrete(name) and isinstance(module, ModuleType)
    ]
    return {
        name
        for module in modules
        for name, value in vars(module).items()
        if inspect.isclass(value) and value.__module__ == module.__name__ and not name.startswith("_")
    }


CLASSES = _classes()


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_file_knows_a_task_a_model_or_a_field(path: Path) -> None:
    name = str(path.relative_to(SOURCE))
    excused = {f"from {module}" for file, module in EXCUSED if file == name}
    places = [place for place in concrete(path.read_text("utf-8")) if place.split(": ")[1] not in excused]
    assert not places, f"{name}: put what it asks for on the protocol: {places}"


@pytest.mark.parametrize(
    "line",
    [
        'if trained.task.kind == "classify": ...',
        'if field.kind in ("audio", "image"): ...',
        'NAME = "language_model"',
        "if isinstance(task, Translate): ...",
        "from regard.fields.image import Image",
        "import regard.models.gpt",
        'match task.kind:\n    case "answer": ...',
        "match config:\n    case GPTConfig(): ...",
    ],
)
def test_knowing_one_is_noticed(line: str) -> None:
    assert list(concrete(line))


def test_speaking_of_one_is_not_knowing_it() -> None:
    assert not list(concrete('"""classify"""\ntext = {"text": 1}\nif purpose == "answer": ...'))


TABLES = {
    "tasks/__init__.py": "TASKS, which recipes, commands, routes and the reference are made from",
    "serve/web/answers.js": "ANSWERS, how the page shows an answer",
    "serve/web/ask.js": "the types of these answers",
    "serve/web/page.js": "which of them have a second input",
    "explain/web/strings.json": "Chinese names; without one the page has the English name",
}
"""Files that name three tasks or more, and why; not those of other tools' formats, in interop."""


def _named(text: str) -> set[str]:
    return {kind for kind in TASKS if re.search(rf"""["']{kind}["']|\b{kind}:""", text)}


def _named_in_python(source: str) -> set[str]:
    classes = {name: task.kind for task in TASKS.values() for name in (task.__name__, task.settings.__name__)}
    tree = ast.parse(source)
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} & classes.keys()
    return {classes[name] for name in names} | (_strings(tree) & (TASKS.keys() - ALSO_WORDS - {"tag"}))


def _strings(tree: ast.AST) -> set[str]:
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in prose)
    return {node.value for node in constants if isinstance(node.value, str)}


def test_the_tables_a_task_is_entered_in() -> None:
    """Each is in docs/architecture.md, and there is no other."""
    tables = set()
    for path in SOURCE.rglob("*.*"):
        if path.suffix not in (".py", ".js", ".json", ".html") or path.is_relative_to(SOURCE / "interop"):
            continue
        names = (_named_in_python if path.suffix == ".py" else _named)(path.read_text("utf-8"))
        if len(names) >= 3:
            tables.add(str(path.relative_to(SOURCE)))
    assert tables == set(TABLES)
    page = (SOURCE.parents[1] / "docs" / "architecture.md").read_text("utf-8")
    assert all(table in page for table in TABLES)
