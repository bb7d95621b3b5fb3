"""A tagger being served: words, tags and spans over HTTP, and what explains them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

import regard
from served import Served, served
from tiny import tagging

TEXT = "amber ember, cedar"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("names")
    regard.train(tagging(folder), quiet=True)
    return folder / "run"


@pytest.fixture(scope="module")
def names(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served([run], tmp_path_factory.mktemp("log") / "stderr") as running:
        yield running


def test_answers_are_those_of_the_library(names: Served, run: Path) -> None:
    reply = names.post("/v1/tag", text=[TEXT, "birch"])
    assert reply.status == 200
    assert reply.json["model"] == "run"
    assert reply.json["answers"] == [one.to_json() for one in regard.load(run).predict([TEXT, "birch"])]
    assert reply.json["answers"][0]["words"] == ["amber", "ember", ",", "cedar"]


def test_an_answer_comes_with_what_explains_it(names: Served) -> None:
    answer = names.post("/v1/explain", text=TEXT).json["answer"]
    assert [one["site"] for one in answer["attention"]["maps"]] == ["left-out", "marginals", "transitions"]
    (same,) = names.post("/v1/tag", text=TEXT, attention=True).json["answers"]
    assert same["attention"]["axes"] == answer["attention"]["axes"]


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("/v1/classify", {"text": TEXT, "model": "run"}, "other_task"),
        ("/v1/classify", {"text": TEXT}, "which_model"),
        ("/v1/tag", {"text": TEXT, "decode": {"beam": 2}}, "invalid"),
        ("/v1/tag", {"text": " "}, "empty_text"),
        ("/v1/tag", {"text": "a" * 5001}, "too_long"),
    ],
)
def test_what_is_refused(names: Served, path: str, body: dict[str, object], code: str) -> None:
    reply = names.post(path, **body)
    assert (reply.status, reply.code) == (422, code)


def test_the_description_knows_the_answer(names: Served) -> None:
    described = names.get("/openapi.json").json
    answer = described["components"]["schemas"]["Tagged"]["properties"]
    assert set(answer) == {"text", "words", "tags", "probabilities", "spans", "input_cut", "attention"}


def test_the_page_shows_every_word_with_its_tag(names: Served, run: Path, browser: Browser) -> None:
    answer = regard.load(run).predict(TEXT)
    page = browser.new_page()
    try:
        page.goto(f"http://localhost:{names.port}/")
        page.wait_for_selector("html[data-ready]", timeout=20_000)
        page.fill("#input", TEXT)
        page.locator("#input").press("Enter")
        page.wait_for_selector("#picture:not([hidden])")
        shown = page.locator("#output ruby").evaluate_all(
            "nodes => nodes.map(node => [node.firstChild.data, node.querySelector('rt').textContent])"
        )
        assert shown == [
            [word, "" if tag == "O" else tag] for word, tag in zip(answer.words, answer.tags, strict=True)
        ]
        assert page.locator("#site option").count() == 3
        style = "nodes => nodes.map(node => getComputedStyle(node).paddingInlineStart)"
        assert {*page.locator("#output rt").evaluate_all(style)} == {"3px"}, "tags of neighbours stay apart"
    finally:
        page.close()
