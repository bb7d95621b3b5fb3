"""A page that is being watched."""

from collections.abc import Callable

from playwright.sync_api import Page


def watch(page: Page, faults: list[str], is_ours: Callable[[str], bool], forgiven: str | None = None) -> None:
    """Notes every dialog, script error, complaint of the browser and request for what is not ours."""

    def complained(kind: str, text: str) -> None:
        if kind == "error" and (forgiven is None or forgiven not in text):
            faults.append(text)

    page.on("dialog", lambda dialog: (faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("pageerror", lambda error: faults.append(f"error: {error}"))
    page.on("console", lambda said: complained(said.type, said.text))
    page.on("request", lambda sent: None if is_ours(sent.url) else faults.append(sent.url))
