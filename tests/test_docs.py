"""The documentation tells the truth: its snippets run, its recipes are recipes, its commands exist, its links
lead somewhere, the lines of code it quotes are in the code, and its tables are those of the classes."""

import io
import re
import runpy
import shlex
import sys
import tempfile
import tokenize
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
import typer.main

from regard.cli import app
from regard.recipe import Recipe

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *ROOT.glob("src/**/*.md")])
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
EXAMPLES = sorted(path.name for path in ROOT.glob("examples/*.py"))
KNOWN_HOSTS = {"semver.org", "127.0.0.1:8000", "127.0.0.1:8000;", "app.example.org`"}

FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
QUOTED_CODE = re.compile(r"\]\(([^)]+\.py)\)[:：]\s*`([^`]+)`")
COMMAND = re.compile(r"^(?:.*\| )?regard ([a-z]+(?: .+)?)$", re.MULTILINE)
VERBS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


def read(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def blocks(name: str, language: str) -> list[str]:
    return [code for kind, code in FENCE.findall(read(name)) if kind == language]


def without_comments(code: str) -> list[str]:
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    return [token.string for token in tokens if token.type != tokenize.COMMENT]


def anchors(page: str) -> set[str]:
    """As GitHub makes them: lower case, marks dropped, spaces to hyphens."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.fixture(scope="module")
def make_reference() -> ModuleType:
    spec = spec_from_file_location("make_reference", DOCS / "make_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_is_what_the_classes_say(make_reference: ModuleType) -> None:
    page = read("docs/recipe.md")
    assert make_reference.updated(page) == page, "run: python docs/make_reference.py"


def test_every_setting_has_one_meaning(make_reference: ModuleType) -> None:
    for section in make_reference.SECTIONS:
        undescribed = {
            name for name, schema in make_reference.settings(section) if "description" not in schema
        }
        written = set(make_reference.MEANINGS.get(section.config, {}))
        assert written <= undescribed <= written | set(make_reference.GENERAL), section.title


def test_every_task_says_what_it_is(make_reference: ModuleType) -> None:
    assert all(section.config.__doc__ for section in make_reference.TASK_SECTIONS)


@pytest.mark.parametrize("name", ["docs/attention.md", "docs/python.md"])
def test_snippets_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    snippets = blocks(name, "python")
    assert len(snippets) > 5
    namespace: dict[str, object] = {}
    for number, code in enumerate(snippets, 1):
        exec(compile(code, f"{name}, block {number}", "exec"), namespace)


def test_the_chinese_snippets_are_the_english_ones() -> None:
    english, chinese = (
        [without_comments(code) for code in blocks(name, "python")]
        for name in ("docs/attention.md", "docs/zh/attention.md")
    )
    assert chinese == english


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_run(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [example, "2"])
    runpy.run_path(str(ROOT / "examples" / example), run_name="__main__")


@pytest.mark.parametrize("name", [name for name in NAMES if blocks(name, "toml")])
def test_recipes_in_the_docs_are_recipes(name: str) -> None:
    for block in blocks(name, "toml"):
        given = tomllib.loads(block)
        model = given.setdefault("model", {"kind": "transformer"})
        usual = {
            "classifier": "classify",
            "tagger": "tag",
            "relater": "relation",
            "bert_pretraining": "pretrain",
        }.get(model["kind"], "translate")
        given.setdefault("task", {"kind": usual})
        given.setdefault("data", {}).setdefault("train", ["train.source", "train.target"])
        Recipe.parse(given, name)


@pytest.mark.parametrize("name", NAMES)
def test_commands_exist(name: str) -> None:
    for line in COMMAND.findall("".join(blocks(name, ""))):
        verb, *words = shlex.split(line, comments=True)
        assert verb in VERBS, line
        options = {option for parameter in VERBS[verb].params for option in parameter.opts}
        assert {word for word in words if word.startswith("-") and word != "-"} <= options, line
    for verb in re.findall(r"`regard ([a-z]+)", FENCE.sub("", read(name))):
        assert verb in VERBS


def test_every_verb_has_a_section() -> None:
    assert anchors(read("docs/cli.md")) >= set(VERBS)


@pytest.mark.parametrize("name", ["docs/data.md", "docs/zh/data.md"])
def test_every_finding_of_the_doctor_is_explained(name: str) -> None:
    told = re.compile(r'(?:Finding|about)\(\s*"(?:error|warning|note)", "([a-z-]+)"')
    source = "".join(path.read_text("utf-8") for path in ROOT.glob("src/regard/*/*.py"))
    found = set(told.findall(source))
    assert len(found) > 10
    assert not {kind for kind in found if not re.search(rf"\b{kind}\b", read(name))}


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name: str) -> None:
    for link in LINK.findall(FENCE.sub("", read(name))):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = ROOT / name if not path else (ROOT / name).parent / path
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target.read_text("utf-8")), link


def test_quoted_lines_are_in_the_code() -> None:
    quotes = [(name, *quote) for name in NAMES for quote in QUOTED_CODE.findall(read(name))]
    assert len(quotes) > 30
    for name, path, code in quotes:
        assert code in ((ROOT / name).parent / path).read_text("utf-8"), f"{name} quotes {code}"


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_this_machine_is_told(name: str) -> None:
    page = read(name)
    assert not re.findall(r"(?<![\w.])/(?:home|root|work|tmp|mnt|Users)/\S*", page)
    assert set(re.findall(r"https?://([^/\s)>\"]+)", page)) <= KNOWN_HOSTS
