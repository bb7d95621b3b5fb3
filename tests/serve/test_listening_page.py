"""The page of a model that listens, in a browser whose microphone is a file."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import regard
from hearers import make_hearer
from pages import watch
from served import Served, served
from sounds import spoken, wav

RATE = 16_000


@pytest.fixture(scope="module")
def sound() -> bytes:
    return wav(spoken("amber birch cedar delta amber birch cedar", 3, RATE)[0], RATE)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hearer") / "hearer"
    return make_hearer(folder, fields={"audio": {"mels": 11, "rate": RATE}})


@pytest.fixture(scope="module")
def hearing(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served([run], tmp_path_factory.mktemp("log") / "stderr") as running:
        yield running


@pytest.fixture
def page(browser: Browser, hearing: Served, sound: bytes, tmp_path: Path) -> Iterator[Page]:
    (tmp_path / "microphone.wav").write_bytes(sound)
    launched = browser.browser_type.launch(
        executable_path=shutil.which("chromium"),
        args=[
            "--use-fake-device-for-media-stream",
            "--use-fake-ui-for-media-stream",
            f"--use-file-for-fake-audio-capture={tmp_path / 'microphone.wav'}",
            "--no-sandbox",
        ],
    )
    faults: list[str] = []
    home = f"http://localhost:{hearing.port}/"
    context = launched.new_context(locale="en-US", permissions=["microphone"])
    opened = context.new_page()
    watch(opened, faults, lambda url: url.startswith((home, "blob:")))
    opened.goto(home)
    opened.wait_for_selector("html[data-ready]", timeout=20_000)
    yield opened
    launched.close()
    assert faults == []


def test_what_the_microphone_gives_is_written_while_it_comes(page: Page) -> None:
    expect(page.locator("#hearing")).to_be_visible()
    expect(page.locator("#asking")).to_be_hidden()
    page.click("#record")
    expect(page.locator("#record")).to_have_text("Stop")
    loud = re.compile(r"width: ([2-9]\d|100)")
    expect(page.locator("#level")).to_have_attribute("style", loud, timeout=10_000)
    expect(page.locator("#clock")).to_have_text(re.compile("0:0[2-9]"), timeout=10_000)
    expect(page.locator("#heard")).to_have_text(re.compile(r"\w+"), timeout=10_000)
    page.click("#record")
    page.wait_for_selector("#heard:not(.waiting)", timeout=10_000)
    expect(page.locator("#record")).to_have_text("Record")
    expect(page.locator("#tentative")).to_have_text("")
    assert page.inner_text("#stable").strip()
    expect(page.locator("#fault")).to_be_hidden()


def test_a_file_is_heard_as_python_hears_it(page: Page, run: Path, sound: bytes, tmp_path: Path) -> None:
    (tmp_path / "talk.wav").write_bytes(sound)
    page.set_input_files("#recording", str(tmp_path / "talk.wav"))
    page.wait_for_selector("#heard:not(.waiting)", timeout=20_000)
    (answer,) = regard.load(run).predict([tmp_path / "talk.wav"], streamed=True)
    expect(page.locator("#stable")).to_have_text(answer.text)
    assert answer.text


def test_a_file_that_is_no_sound_is_refused_with_a_sentence(page: Page, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no sound")
    page.set_input_files("#recording", str(tmp_path / "notes.txt"))
    expect(page.locator("#fault")).to_have_text("notes.txt is no recording that can be read.")
