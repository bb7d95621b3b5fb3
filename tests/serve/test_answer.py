"""An answerer being served: questions about contexts over HTTP, and on the page."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

import regard
from served import Served, served
from tiny import answering

CONTEXT = "amber in heath, cedar in the jetty."
QUESTIONS = ["where is amber?", "where is birch?"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trees")
    regard.train(answering(folder), quiet=True)
    return folder / "run"


@pytest.fixture(scope="module")
def trees(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served([run], tmp_path_factory.mktemp("log") / "stderr") as running:
        yield running


def test_answers_are_those_of_the_library(trees: Served, run: Path) -> None:
    reply = trees.post("/v1/answer", question=QUESTIONS, context=CONTEXT)
    assert reply.status == 200
    pairs = [{"question": question, "context": CONTEXT} for question in QUESTIONS]
    assert reply.json["answers"] == [one.to_json() for one in regard.load(run).predict(pairs)]
    one = trees.post("/v1/answer", question=QUESTIONS[0], context=CONTEXT).json["answers"]
    assert one == reply.json["answers"][:1]


def test_an_answer_comes_with_what_explains_it(trees: Served) -> None:
    answer = trees.post("/v1/explain", question=QUESTIONS[0], context=CONTEXT).json["answer"]
    assert [one["site"] for one in answer["attention"]["maps"]] == ["left-out", "probabilities"]
    (same,) = trees.post("/v1/answer", question=QUESTIONS[0], context=CONTEXT, attention=True).json["answers"]
    assert same["attention"]["axes"] == answer["attention"]["axes"]


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("/v1/answer", {"question": "who?"}, "invalid"),
        ("/v1/answer", {"text": "who?"}, "invalid"),
        ("/v1/answer", {"question": " ", "context": CONTEXT}, "empty_text"),
        ("/v1/answer", {"question": QUESTIONS, "context": [CONTEXT]}, "unequal"),
        ("/v1/explain", {"text": "who?"}, "other_fields"),
        ("/v1/explain", {"question": "who?"}, "other_fields"),
        ("/v1/tag", {"text": "who?", "model": "run"}, "other_task"),
    ],
)
def test_what_is_refused(trees: Served, path: str, body: dict[str, object], code: str) -> None:
    reply = trees.post(path, **body)
    assert (reply.status, reply.code) == (422, code)


def test_the_description_knows_what_is_asked(trees: Served) -> None:
    described = trees.get("/openapi.json").json["components"]["schemas"]
    assert {"model", "question", "context", "attention"} == set(described["AnsweredAsk"]["properties"])
    assert set(described["AnsweredAsk"]["required"]) == {"question", "context"}
    assert {"text", "start", "end", "probability", "windows"} <= set(described["Answered"]["properties"])


def test_the_page_marks_the_answer_in_its_context(trees: Served, run: Path, browser: Browser) -> None:
    context = f"𝒳 {CONTEXT}"
    answer = regard.load(run).predict({"question": QUESTIONS[0], "context": context})
    assert answer.text
    page = browser.new_page()
    try:
        page.goto(f"http://localhost:{trees.port}/")
        page.wait_for_selector("html[data-ready]", timeout=20_000)
        page.fill("#context", context)
        page.fill("#input", QUESTIONS[0])
        page.wait_for_selector("#output mark", state="attached", timeout=20_000)
        assert page.locator("#output").text_content() == context
        assert page.locator("#output mark").text_content() == answer.text
        page.wait_for_selector("#picture:not([hidden])", timeout=20_000)
    finally:
        page.close()
