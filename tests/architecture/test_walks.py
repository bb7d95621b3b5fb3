"""The walks of docs/walks.md are true: their functions exist, and a file before each of them names it."""

import ast
import re
from pathlib import Path

import pytest

import regard

SOURCE = Path(regard.__file__).parent
PAGE = (SOURCE.parents[1] / "docs" / "walks.md").read_text("utf-8")
STEP = re.compile(r"^\d+\. `([\w/]+\.py)` `([\w.]+)`", re.MULTILINE)
WALKS = {
    title: STEP.findall(body)
    for title, body in zip(*[iter(re.split(r"^## (.+)$", PAGE, flags=re.MULTILINE)[1:])] * 2, strict=True)
}


def defined(path: Path) -> set[str]:
    """Functions and classes of a file, and the methods of its classes as `Class.method`."""
    tree = ast.parse(path.read_text("utf-8"))
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    names = {node.name for node in ast.walk(tree) if isinstance(node, kinds)}
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    methods = {f"{one.name}.{node.name}" for one in classes for node in one.body if isinstance(node, kinds)}
    return names | methods


def test_the_page_has_all_walks() -> None:
    assert [title.split(":")[0] for title in WALKS] == ["Train", "Predict", "Explain", "HTTP"]
    assert all(len(steps) > 10 for steps in WALKS.values())


@pytest.mark.parametrize("title", WALKS)
def test_every_step_exists(title: str) -> None:
    missing = [(file, name) for file, name in WALKS[title] if name not in defined(SOURCE / file)]
    assert not missing


@pytest.mark.parametrize("title", WALKS)
def test_every_step_is_reached_from_one_before(title: str) -> None:
    """A file of an earlier step names the function, or for a method and a class its own last name."""
    steps = WALKS[title]
    for place, (file, name) in enumerate(steps[1:], 1):
        last = name.split(".")[-1]
        before = {earlier for earlier, _ in steps[:place]}
        texts = [(SOURCE / earlier).read_text("utf-8") for earlier in before]
        called = r"model\(" if last == "forward" else rf"{last}\b"  # a module is called, not its forward
        uses = re.compile(rf"(?<!def )(?<!class )\b{called}")
        assert any(uses.search(text) for text in texts), (
            f"{title}, step {place + 1}: who calls {name} of {file}?"
        )
