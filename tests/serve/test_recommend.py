"""/v1/recommend and its page: a history of items in, what is wanted next out."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Browser, Page, expect

import regard
from pages import watch
from regard.api.trained import Trained
from regard.files.catalogue import Described
from regard.files.row import Row
from regard.models import SASRecConfig
from regard.tasks import Recommend, RecommendConfig
from served import Served, served
from tiny import stirred

N_ITEMS = 19
MARKUP = "<img src=x onerror=window.__pwned=1>"
TITLES = {"item 3": "The Godfather", "item 4": "千と千尋の神隠し", "item 5": MARKUP}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recommender with random weights; some of its items have titles."""
    rows = [
        Row({"user": str(n), "items": [f"item {(n + 2 * at) % N_ITEMS}" for at in range(3 + n % 5)]}, "x", n)
        for n in range(60)
    ]
    described = {name: Described(title, "odd|even") for name, title in TITLES.items()}
    task = Recommend.fit(RecommendConfig(max_length=7, k=5), rows, described=described)
    config = SASRecConfig(d_model=8, n_heads=2, d_ff=11, n_layers=1, max_positions=13)
    torch.manual_seed(1)
    model = stirred(config.build(task.widths)).eval()
    folder = tmp_path_factory.mktemp("recommend") / "shop"
    Trained(task, task.config, model, config, {}, torch.device("cpu")).save(folder)
    return folder


@pytest.fixture(scope="module")
def shop(folder: Path) -> Iterator[Served]:
    with served([folder], folder.with_name("log")) as running:
        yield running


def test_histories_of_names_with_spaces_get_lists(shop: Served, folder: Path) -> None:
    offline = regard.load(folder)
    (found,) = shop.post("/v1/recommend", items=["item 1", "item 2"], k=3, because=2).json["answers"]
    (ours,) = offline.predict([["item 1", "item 2"]], k=3, because=2)
    assert found == ours.to_json()
    several = shop.post("/v1/recommend", items=[["item 1", "item 2"], ["item 3", "nobody knows"]]).json
    assert [len(answer["items"]) for answer in several["answers"]] == [5, 5]
    assert [answer["unknown"] for answer in several["answers"]] == [[], ["nobody knows"]]


def test_more_than_the_catalogue_gives_all_of_it(shop: Served) -> None:
    (answer,) = shop.post("/v1/recommend", items=["item 1"], k=1000).json["answers"]
    assert len(answer["items"]) == N_ITEMS - 1
    (answer,) = shop.post("/v1/recommend", items=["item 1"], k=1000, remove_seen=False).json["answers"]
    assert len(answer["items"]) == N_ITEMS


def test_an_item_that_is_asked_about_is_explained(shop: Served, folder: Path) -> None:
    reply = shop.post("/v1/recommend", items=["item 1", "item 2"], item="item 3", attention=True)
    (answer,) = reply.json["answers"]
    ours = regard.load(folder).explain(["item 1", "item 2"], item="item 3")
    assert answer["attention"]["output"] == ours.output
    assert answer["attention"]["trust"]["sentences"]["en"] == ours.trust.sentence  # type: ignore[union-attr]
    assert "The Godfather" in {one["title"] for one in answer["items"]}


@pytest.mark.parametrize(
    ("asked", "fault"),
    [
        ({"items": ["nobody knows"]}, "item 'nobody knows' is not in the catalogue of the training data"),
        ({"items": ["a", "b"]}, "none of its 2 items is in the catalogue"),
        ({"items": []}, "items: List should have at least 1 item"),
        ({"items": "item 1"}, "items: Input should be a valid list"),
        ({"items": ["item 1", 2]}, "items.1: Input should be a valid string"),
        ({"items": ["item 1"], "k": 1001}, "k: Input should be less than or equal to 1000"),
        ({"items": ["item 1"], "k": "5"}, "k: Input should be a valid integer"),
        ({"items": ["item 1"], "item": "strange"}, "item: item 'strange' is not in the catalogue"),
        ({"items": ["item 1"], "becuase": 1}, "becuase: unknown; did you mean because?"),
        ({"items": [["item 1"]] * 65}, "items: List should have at most 64 items"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(shop: Served, asked: dict, fault: str) -> None:
    reply = shop.post("/v1/recommend", **asked)
    assert reply.status == 422
    assert fault in reply.json["error"]["message"]


def test_items_are_found_by_their_titles(shop: Served) -> None:
    found = shop.get("/v1/items?find=FATHER%20god").json["items"]
    assert found == [{"item": "item 3", "title": "The Godfather", "category": "odd|even"}]
    assert [one["item"] for one in shop.get("/v1/items?find=item%2017").json["items"]] == ["item 17"]
    assert len(shop.get("/v1/items").json["items"]) == 12
    assert shop.get("/v1/items?model=none").status == 404


@pytest.fixture
def open_page(browser: Browser, shop: Served) -> Iterator[Callable[[], Page]]:
    faults: list[str] = []
    context = browser.new_context(locale="en-US")

    def opened() -> Page:
        home, page = f"http://localhost:{shop.port}/", context.new_page()
        watch(page, faults, lambda url: url.startswith(home))
        page.goto(home)
        page.wait_for_selector("html[data-ready]", timeout=20_000)
        return page

    yield opened
    context.close()
    assert not faults


def test_the_page_shows_cards_and_why(open_page: Callable[[], Page], folder: Path) -> None:
    page = open_page()
    for title in ("godfather", "img src"):
        page.fill("#find", title)
        page.keyboard.press("Enter")
        expect(page.locator("#find")).to_have_value("")
    expect(page.locator("#history .title")).to_have_text(["The Godfather", MARKUP])
    (ours,) = regard.load(folder).predict([["item 3", "item 5"]], because=2)
    names = [one.title or one.item for one in ours.items]
    expect(page.locator("#recommended .title")).to_have_text(names)
    reasons = [one.because for one in ours.items]
    expect(page.locator("#recommended .why")).to_have_count(sum(map(bool, reasons)))
    expect(page.locator("#picture")).to_be_visible()
    page.locator("#recommended .what").nth(2).click()
    expect(page.locator("#recommended li.current .title")).to_have_text(names[2])
    expect(page.locator("#rows bdi")).to_have_text([names[2]])
    page.get_by_label(f"put into the history: {names[0]}").click()
    expect(page.locator("#history .title")).to_have_text(["The Godfather", MARKUP, names[0]])
    page.get_by_label("take out: The Godfather").click()
    expect(page.locator("#history .title")).to_have_text([MARKUP, names[0]])
