"""A relater and a tagger being served together: marked texts, raw ones, and what is refused."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

import regard
from served import Served, served
from tiny import counting, relating

TEXT = "<e1>amber</e1> over <e2>birch</e2>"
RAW = "amber birch ember cedar inlet"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Barely trained; the tagger counts, so that it finds something."""
    folder = tmp_path_factory.mktemp("served")
    made = []
    for name, recipe in (("pairs", relating), ("names", counting)):
        (folder / name).mkdir()
        asked = recipe(folder / name, max_steps=4)
        regard.train(asked.model_copy(update={"run": str(folder / f"{name}-run")}), quiet=True)
        made.append(folder / f"{name}-run")
    return made


@pytest.fixture(scope="module")
def both(runs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(runs, tmp_path_factory.mktemp("log") / "stderr") as running:
        yield running


def test_marked_texts_are_answered_as_by_the_library(both: Served, runs: list[Path]) -> None:
    reply = both.post("/v1/relate", text=[TEXT, f"the {TEXT}"])
    assert reply.status == 200
    answers = regard.load(runs[0]).predict([TEXT, f"the {TEXT}"])
    assert reply.json == {"model": "pairs-run", "answers": [one.to_json() for one in answers]}
    explained = both.post("/v1/explain", text=TEXT, model="pairs-run").json["answer"]
    assert [one["site"] for one in explained["attention"]["maps"]] == ["pooling.attention", "labels"]


def test_raw_texts_are_answered_as_by_the_library(both: Served, runs: list[Path]) -> None:
    reply = both.post("/v1/relate", text=[RAW, "birch"], entities="names-run")
    assert reply.status == 200
    relations = regard.Relations.load(*runs)
    assert reply.json["answers"] == [relations(text).to_json() for text in (RAW, "birch")]
    assert len(reply.json["answers"][0]["entities"]) > 1


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"text": "no marks"}, "cannot_be_done"),
        ({"text": TEXT, "entities": "names-run"}, "cannot_be_done"),
        ({"text": RAW, "entities": "pairs-run"}, "other_task"),
        ({"text": RAW, "entities": "nobody"}, "unknown_model"),
        ({"text": RAW, "entities": "names-run", "attention": True}, "contradiction"),
        ({"text": RAW, "entities": 3}, "invalid"),
        ({"text": TEXT, "model": "names-run"}, "other_task"),
        ({"text": " ", "entities": "names-run"}, "empty_text"),
    ],
)
def test_what_is_refused(both: Served, body: dict[str, object], code: str) -> None:
    reply = both.post("/v1/relate", **body)
    assert (reply.status, reply.code) == (404 if code == "unknown_model" else 422, code)
    assert "<e1>amber" not in str(reply.json), "what was sent is not repeated"


def test_a_text_that_is_refused_is_told_by_its_number(both: Served) -> None:
    reply = both.post("/v1/relate", text=[TEXT, TEXT, "no marks"], model="pairs-run")
    assert (reply.status, reply.code) == (422, "cannot_be_done")
    assert reply.json["error"]["message"].startswith("text 3: <e1> is missing; mark two entities")


def test_the_description_knows_the_answer(both: Served) -> None:
    described = both.get("/openapi.json").json
    properties = described["components"]["schemas"]["RelationAsk"]["properties"]
    assert set(properties) == {"text", "entities", "model", "attention"}
    answer = described["components"]["schemas"]["Relation"]["properties"]
    assert {"text", "probability", "probabilities", "entities", "relations", "input_cut"} <= set(answer)


def test_the_page_shows_the_relation(both: Served, runs: list[Path], browser: Browser) -> None:
    page = browser.new_page()
    try:
        page.goto(f"http://localhost:{both.port}/")
        page.wait_for_selector("html[data-ready]", timeout=20_000)
        assert "<e1>" in str(page.get_attribute("#input", "placeholder"))
        page.fill("#input", TEXT)
        page.locator("#input").press("Enter")
        page.wait_for_selector("#picture:not([hidden])")
        assert page.inner_text("#output") == regard.load(runs[0]).predict(TEXT).text
        assert page.locator("#site option").count() == 2
        longer = (
            "it => { it.textContent = 'Entity-Destination(e1,e2)'; return it.scrollWidth <= it.clientWidth; }"
        )
        assert page.locator("#labels bdi").first.evaluate(longer), "its direction can be read"
        page.fill("#input", "no marks")
        page.locator("#input").press("Enter")
        page.wait_for_selector("#fault:not([hidden])")
        assert "<e1> is missing" in page.inner_text("#fault")
    finally:
        page.close()
