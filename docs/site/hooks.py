"""Hooks of the documentation site: files of the project that pages link to become pages of the site."""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\((?!#)([^)\s:#]+)(#[^)\s]*)?\)")
CHINESE = "\u3000-\u303f\u4e00-\u9fff\uff00-\uffef"
BROKEN_LINE = re.compile(f"(?<=[{CHINESE}])\n(?=[{CHINESE}])")
CODE = re.compile(r"(<pre.*?</pre>)", re.DOTALL)
LANGUAGES = {".py": "python", ".toml": "toml", ".txt": "text", ".js": "javascript", "": "text"}


def project_file(page: str, target: str) -> Path | None:
    """File of the project that lies outside `docs` and that `target` on the page `page` leads to."""
    path = (ROOT / "docs" / posixpath.dirname(page) / target).resolve()
    inside = path.is_relative_to(ROOT) and not path.is_relative_to(ROOT / "docs")
    return path if inside and path.exists() else None


def page_of(path: Path) -> str:
    return f"project/{path.relative_to(ROOT)}.md"


def content_of(path: Path) -> str:
    name = str(path.relative_to(ROOT))
    if path.is_dir():
        return f"# {name}\n\n" + "\n".join(f"- `{child.name}`" for child in sorted(path.iterdir()))
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        return LINK.sub("]", text)  # its links start from another folder
    return f"# {name}\n\n````{LANGUAGES.get(path.suffix, 'text')}\n{text}````\n"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for every file of the project that a page of the documentation links to."""
    linked = {
        path
        for page in list(files.documentation_pages())
        for link in LINK.finditer(page.content_string)
        if (path := project_file(page.src_uri, link[1]))
    }
    for path in sorted(linked):
        files.append(File.generated(config, page_of(path), content=content_of(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to files of the project to their pages."""

    def led(link: re.Match[str]) -> str:
        path = project_file(page.file.src_uri, link[1])
        if path is None:
            return link[0]
        start = posixpath.dirname(page.file.src_uri) or "."
        return f"]({posixpath.relpath(page_of(path), start)}{link[2] or ''})"

    return LINK.sub(led, markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Join lines of Chinese, which a browser would part with a space."""
    return "".join(
        part if part.startswith("<pre") else BROKEN_LINE.sub("", part) for part in CODE.split(html)
    )
