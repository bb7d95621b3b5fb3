"""The site is built without a warning, leads nowhere outside, and joins lines of Chinese."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FETCHED = re.compile(r'<(?:script|link|img)[^>]*(?:src|href)="((?:https?:)?//[^"]+)"')


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    return folder


def test_every_page_is_there(site: Path) -> None:
    pages = {str(page.relative_to(ROOT / "docs").with_suffix(".html")) for page in ROOT.glob("docs/**/*.md")}
    assert {page for page in pages if not (site / page).is_file()} == set()
    assert (site / "project" / "bench" / "RESULTS.md.html").is_file()


def test_nothing_is_fetched(site: Path) -> None:
    fetched = {
        address for page in site.rglob("*.html") for address in FETCHED.findall(page.read_text("utf-8"))
    }
    assert fetched == set()


def test_the_api_is_made_of_docstrings(site: Path) -> None:
    page = (site / "api.html").read_text("utf-8")
    assert "to a scored model." in page
    assert 'id="regard.api.trained.Trained.predict"' in page


def test_the_search_knows_both_languages(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text("utf-8"))
    (page,) = (entry for entry in index["docs"] if entry["location"] == "zh/index.html")
    assert "训练" in re.split(index["config"]["separator"], page["text"])
    assert any("attention" in entry["text"] for entry in index["docs"])


def test_lines_of_chinese_are_joined(site: Path) -> None:
    text = re.sub(r"<pre.*?</pre>", "", (site / "zh" / "index.html").read_text("utf-8"), flags=re.DOTALL)
    assert re.search(r"[\u4e00-\u9fff，。、]\n[\u4e00-\u9fff]", text) is None
