"""The page of a model that reads pictures: one is chosen, dropped or pasted, and where it looked is drawn."""

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Browser, Page, expect

import regard
from pages import watch
from pictures import classifier, noise
from regard.api.trained import Trained
from served import Served, served

HAND_OVER = """([kind, base64]) => {
  const bytes = Uint8Array.from(atob(base64), (one) => one.charCodeAt(0));
  const files = new DataTransfer();
  files.items.add(new File([bytes], "<b>other</b>.png", { type: "image/png" }));
  const more = { bubbles: true, cancelable: true };
  const event = kind === "paste"
    ? new ClipboardEvent("paste", { ...more, clipboardData: files })
    : new DragEvent("drop", { ...more, dataTransfer: files });
  document.body.dispatchEvent(event);
  return event.defaultPrevented;
}"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    task, model, config = classifier("vit-class")
    folder = tmp_path_factory.mktemp("pictures") / "animals"
    Trained(task, task.config, model, config, {}, torch.device("cpu")).save(folder)
    return regard.load(folder, device="cpu")


@pytest.fixture(scope="module")
def page(trained: Trained, browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("served")
    trained.save(folder / "animals")
    faults: list[str] = []
    with served([folder / "animals"], folder / "log") as server:
        yield opened(server, browser, faults)
    assert not faults


def opened(server: Served, browser: Browser, faults: list[str]) -> Page:
    home = f"http://localhost:{server.port}/"
    page = browser.new_context(locale="en-US").new_page()
    watch(page, faults, lambda url: url.startswith((home, "data:")), forgiven="status of 422")
    page.goto(home)
    page.wait_for_selector("html[data-ready]", timeout=20_000)
    return page


def test_a_chosen_picture_is_answered_and_shows_where_it_was_looked_at(
    page: Page, trained: Trained, tmp_path: Path
) -> None:
    (picture,) = noise(1, seed=3)
    (tmp_path / "one.png").write_bytes(picture)
    expect(page.locator("#drop")).to_contain_text("Drop a picture here")
    page.set_input_files("#file", tmp_path / "one.png")
    expect(page.locator("#picture")).to_be_visible()
    here = trained.explain(picture)
    expect(page.locator("#output")).to_have_text(here.output)
    assert here.trust is not None
    expect(page.locator("#measured")).to_have_text(here.trust.sentence)
    expect(page.locator("#drop-hint")).to_have_text("one.png")
    main = here.map(here.main)
    assert main.columns.picture is not None
    href = page.locator("#plane image").get_attribute("href")
    assert href == f"data:image/png;base64,{b64encode(main.columns.picture).decode()}"
    best = max(main.columns.free, key=lambda unit: main.head(None)[0, unit])
    expect(page.locator("#readout")).to_contain_text(f"‘{main.columns.labels[best]}’")
    expect(page.locator("#readout strong")).to_have_text(f"{main.head(None)[0, best]:.2f}")
    page.locator("#plane").press("ArrowRight")
    expect(page.locator("#columns")).to_be_hidden()


def test_where_patches_look_one_is_chosen_in_the_picture(page: Page, trained: Trained) -> None:
    page.select_option("#site", "0")
    box = page.locator("#plane image").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 0.9 * box["width"], box["y"] + 0.9 * box["height"])
    expect(page.locator("#readout bdi").first).to_have_text("3,5")
    page.locator("#rows bdi", has_text="[class]").hover()
    expect(page.locator("#readout bdi").first).to_have_text("[class]")


@pytest.mark.parametrize("kind", ["drop", "paste"])
def test_a_picture_is_dropped_or_pasted(page: Page, trained: Trained, kind: str) -> None:
    for picture in noise(2, seed=4):
        is_prevented = page.evaluate(HAND_OVER, [kind, b64encode(picture).decode()])
        assert is_prevented == (kind == "drop")  # else the browser would leave the page for the picture
        expect(page.locator("#output")).to_have_text(trained.predict(picture).text)
        expect(page.locator("#drop-hint")).to_have_text("<b>other</b>.png")


def test_what_is_no_picture_is_said(page: Page) -> None:
    page.evaluate(HAND_OVER, ["drop", b64encode(b"hello").decode()])
    expect(page.locator("#fault")).to_contain_text("input 1: not a picture of a kind that is read")
    expect(page.locator("#picture")).to_be_hidden()
