"""The page draws what comes next: a table is pasted or dropped, each channel has a panel with its band."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from pages import watch
from regard.files.read import read_rows
from regard.models import NLinearConfig
from regard.runs.store import save_model
from regard.tasks import Forecast, ForecastConfig
from served import Served, served
from tiny import stirred

LINES = [
    "date,load,<b>heat",
    *(f"2020-01-{1 + n // 24:02} {n % 24:02}:00,{n % 7},{n % 5}" for n in range(60)),
]


@pytest.fixture(scope="module")
def forecaster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("forecaster")
    (folder / "load.csv").write_text("\n".join(LINES))
    config = ForecastConfig(look_back=9, horizon=5)
    rows = read_rows(
        ["load.csv"], {"series": None}, fields=config.unfitted, base=folder, measured=config.measured
    )
    task = Forecast.fit(config, rows)
    model, scores = (
        stirred(NLinearConfig().build(task.widths)),
        {"format_version": 1, "scores": {}, "seed": 1},
    )
    save_model(folder / "load", task, config, model, NLinearConfig(), scores)
    with served([folder / "load"], folder / "log") as running:
        yield running


@pytest.fixture
def page(browser: Browser, forecaster: Served) -> Iterator[Page]:
    faults: list[str] = []
    home = f"http://localhost:{forecaster.port}/"
    context = browser.new_context(locale="en-US")
    opened = context.new_page()
    watch(opened, faults, lambda url: url.startswith(home), forgiven="status of 422")
    opened.goto(home)
    opened.wait_for_selector("html[data-ready]", timeout=20_000)
    yield opened
    context.close()
    assert not faults


def paste(page: Page, text: str) -> None:
    page.fill("#input", text)
    page.click("#send")


def drop(page: Page, text: str) -> None:
    page.evaluate(
        """(text) => {
          const data = new DataTransfer();
          data.items.add(new File([text], "load.csv", { type: "text/csv" }));
          const drop = new DragEvent("drop", { dataTransfer: data, cancelable: true });
          document.getElementById("input").dispatchEvent(drop);
        }""",
        text,
    )


@pytest.mark.parametrize("give", [paste, drop])
def test_a_table_becomes_a_drawing(page: Page, give: Callable[[Page, str], None]) -> None:
    assert (
        page.get_attribute("#input", "placeholder")
        == "Paste a table with a header, or drop a CSV file here …"
    )
    give(page, "\n".join(LINES))
    figures = page.locator("#forecast figure")
    expect(figures).to_have_count(2, timeout=15_000)
    assert page.locator("figcaption").all_inner_texts() == ["load · 80 %", "<b>heat · 80 %"]
    expect(page.locator("#output")).to_contain_text("2020-01-03 12:00:00 to 2020-01-03 16:00:00")
    points = figures.first.locator(".band").get_attribute("points")
    assert points is not None
    assert len(points.split()) == 2 * 5
    assert "2020-01-03 12:00:00" in figures.first.locator("text").all_text_contents()


def test_what_is_no_table_is_a_sentence(page: Page) -> None:
    paste(page, "date,load,<b>heat\n2020-01-01,a,1")
    expect(page.locator("#fault")).to_have_text(
        "input 1:2: column load: 'a' is not a number; leave the cell empty where nothing was measured"
    )
    assert page.locator("#forecast").is_hidden()
