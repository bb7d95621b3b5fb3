"""The page in a real browser: answers arrive, words show what they attended to, no text is executed.

The `open_page` fixture fails a test on any dialog, script error, policy violation or request to elsewhere.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

import regard
from hostile_texts import SENDABLE
from pages import watch
from served import Served, served
from tiny import classifier, continuing, pretraining, recipe

LABELS = ["<img src=x onerror=window.__pwned=1>", "</script><script>window.__pwned=1</script>"]


@pytest.fixture(scope="module")
def hostile(models: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Models whose names and labels are markup."""
    folder = tmp_path_factory.mktemp("hostile")
    names = {"numbers": "<img src=x onerror=window.__pwned=2>", "films": "<script>window.__pwned=3<"}
    for path in models:
        shutil.copytree(path, folder / names[path.name])
    (folder / names["films"] / "labels.json").write_text(json.dumps(LABELS))
    with served([folder / name for name in names.values()], folder / "log") as running:
        yield running


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    contexts, faults = [], []

    def opened(server: Served, **options) -> Page:
        home = f"http://localhost:{server.port}/"
        context = browser.new_context(**{"locale": "en-US"} | options)
        contexts.append(context)
        page = context.new_page()
        watch(page, faults, lambda url: url.startswith(home), forgiven="status of 422")
        page.goto(home)
        page.wait_for_selector("html[data-ready]", timeout=20_000)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not faults


def ask(page: Page, text: str) -> None:
    page.fill("#input", text)
    page.locator("#input").press("Enter")
    page.wait_for_selector("#picture:not([hidden]), #fault:not([hidden])")


def test_an_answer_arrives_and_its_words_show_their_weights(server: Served, open_page, offline) -> None:
    page = open_page(server)
    ask(page, "一二三四")
    expected = offline["numbers"].explain("一二三四")
    expect(page.locator("#output")).to_have_text(expected.output)
    main = expected.map(expected.main)
    assert page.locator("#rows bdi").all_inner_texts() == list(main.rows.labels)
    assert page.locator("#columns bdi").all_inner_texts() == list(main.columns.labels)
    expect(page.locator("#measured")).to_have_text(expected.trust.sentence)
    page.locator("#rows bdi").nth(1).hover()
    weights = main.head(None)[1]
    best = int(weights.argmax())
    expect(page.locator("#readout")).to_have_text(
        f"‘{main.rows.labels[1]}’ → ‘{main.columns.labels[best]}’ {weights[best]:.2f}"
    )
    assert darkest(page) == best
    page.select_option("#head", "1")
    assert darkest(page) == int(main.head(1)[1].argmax())
    page.select_option("#site", "0")
    encoder = expected.maps[0]
    assert page.locator("#rows bdi").all_inner_texts() == list(encoder.rows.labels)
    assert darkest(page) == int(encoder.head(1)[0].argmax())


def darkest(page: Page) -> int:
    """Which word of the second line has the strongest colour."""
    shades = page.locator("#columns bdi").evaluate_all(
        "words => words.map((word) => word.style.background.match(/\\d+/g).map(Number))"
    )
    return int(np.argmin(np.sum(shades, axis=1)))


def test_the_answer_is_written_while_it_arrives(server: Served, open_page) -> None:
    page = open_page(server)
    page.evaluate(
        """() => {
          window.seen = [];
          new MutationObserver(() => window.seen.push(document.getElementById("output").textContent))
            .observe(document.getElementById("output"), { childList: true });
        }"""
    )
    page.select_option("#search", "greedy")
    ask(page, "五六七八九")
    seen = [text for text in page.evaluate("window.seen") if text]
    assert len(set(seen)) > 2
    assert all(seen[-1].startswith(text) for text in seen)


def test_settings_reach_the_search(server: Served, open_page, offline) -> None:
    page = open_page(server)
    page.click("#more")
    must_not = page.locator("#settings input[name=must_not]")
    expect(must_not).to_have_attribute("placeholder", "with commas between")
    page.fill("#settings input[name=max_length]", "2")
    page.fill("#settings input[name=must_include]", "seven")
    ask(page, "一二三")
    expected = offline["numbers"].predict("一二三", max_length=2, must_include=["seven"]).text
    expect(page.locator("#output")).to_have_text(expected)
    page.fill("#settings input[name=must_include]", "nonsense")
    expect(page.locator("#fault")).to_contain_text("'nonsense' has characters the vocabulary does not know")
    expect(page.locator("#picture")).to_be_hidden()


def test_a_model_that_was_made_to_give_several_answers_shows_one(
    models: list[Path], open_page, tmp_path: Path
) -> None:
    shutil.copytree(models[0], tmp_path / "several")
    config = tmp_path / "several" / "config.json"
    told = json.loads(config.read_text("utf-8"))
    told["task"]["decode"] |= {"beam": 4, "groups": 2, "n_best": 3}
    config.write_text(json.dumps(told), "utf-8")
    with served([tmp_path / "several"], tmp_path / "log") as running:
        reply = running.post("/v1/translate", text="一二", stream=True)
        assert (reply.status, reply.code) == (422, "contradiction")
        assert "stream and n_best (3) exclude each other" in reply.json["error"]["message"]
        page = open_page(running)
        for choice in ("recipe", "greedy", "beam", "sample"):
            page.select_option("#search", choice)
            ask(page, "一二")
            assert page.locator("#fault").is_hidden(), page.inner_text("#fault")


def test_a_classifier_shows_labels_and_words(server: Served, open_page, offline) -> None:
    page = open_page(server)
    page.select_option("#model", "films")
    ask(page, "good film 3")
    expected = offline["films"].predict("good film 3")
    expect(page.locator("#output")).to_have_text(expected.text)
    ranked = sorted(expected.probabilities.items(), key=lambda pair: -pair[1])
    expect(page.locator("#labels li").first).to_have_text(f"{ranked[0][0]}{ranked[0][1]:.3f}")
    assert page.locator("#columns bdi").all_inner_texts() == ["good", "film", "3", "</s>"]
    expect(page.locator("#search")).to_be_hidden()


def test_labels_of_a_model_that_says_nothing_finite_are_shown_too(server: Served, open_page) -> None:
    page = open_page(server)
    answer = {"text": "good", "probabilities": {"good": None, "bad": None}}
    page.route("**/v1/explain", lambda route: route.fulfill(json={"model": "films", "answer": answer}))
    page.select_option("#model", "films")
    page.fill("#input", "film")
    expect(page.locator("#labels li")).to_have_text(["good–", "bad–"])
    expect(page.locator("#fault")).to_be_hidden()


def test_weights_that_arrive_after_another_question_are_not_shown(server: Served, open_page) -> None:
    page = open_page(server)
    page.evaluate(
        """() => {
          const quick = Response.prototype.arrayBuffer;
          window.held = [];
          Response.prototype.arrayBuffer = async function () {
            await new Promise((release) => window.held.push(release));
            return quick.call(this);
          };
        }"""
    )
    page.fill("#input", "一二三")
    page.wait_for_function("() => window.held.length > 0")
    page.fill("#input", "")
    page.locator("#input").press("Enter")
    page.evaluate("window.held.forEach((release) => release())")
    page.wait_for_timeout(200)
    expect(page.locator("#picture")).to_be_hidden()


def test_everything_goes_without_a_mouse(server: Served, open_page) -> None:
    page = open_page(server)
    page.keyboard.type("一二三")
    page.keyboard.press("Enter")
    page.wait_for_selector("#picture:not([hidden])")
    reached = []
    for _ in range(8):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.parentElement.id"))
    assert [name for name in reached if name in ("send", "site", "head", "rows", "columns")] == [
        "send",
        "site",
        "head",
        "rows",
        "columns",
    ]
    page.locator("#rows bdi[tabindex='0']").focus()
    page.keyboard.press("End")
    assert page.evaluate("document.activeElement.textContent") == "</s>"
    before = page.locator("#readout").inner_text()
    page.keyboard.press("ArrowLeft")
    assert page.locator("#readout").inner_text() != before
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.parentElement.id") == "columns"
    page.keyboard.press("]")
    expect(page.locator("#head option:checked")).to_have_text("head 1")


def test_chinese_by_the_browser_and_by_the_switch(server: Served, open_page) -> None:
    page = open_page(server, locale="zh-CN")
    expect(page.locator("#send")).to_have_text("提交")
    ask(page, "一二三")
    expect(page.locator("#looked")).to_have_text("模型看了哪里")
    page.get_by_role("button", name="English").click()
    expect(page.locator("#looked")).to_have_text("What the model looked at")
    assert page.evaluate("document.documentElement.lang") == "en"


def test_hostile_texts_names_and_labels_are_shown_and_not_executed(hostile: Served, open_page) -> None:
    page = open_page(hostile)
    for name in page.locator("#model option").all_inner_texts():
        page.select_option("#model", name)
        for attack in SENDABLE[::47]:
            ask(page, attack)
    assert sorted(page.locator("#labels bdi").all_inner_texts()) == sorted(LABELS)
    page.select_option("#model", index=0)
    page.click("#more")
    for attack in SENDABLE[:100:25]:
        page.fill("#settings input[name=must_include]", attack)
        ask(page, "一")
        expect(page.locator("#fault")).to_contain_text("must_include")
    page.wait_for_timeout(100)
    assert page.evaluate("window.__pwned") is None
    assert (
        page.locator("main script, main img:not(#preview), main iframe, main svg, main details").count() == 0
    )


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_nothing_sticks_out_at_any_width(server: Served, open_page, width: int) -> None:
    page = open_page(server, viewport={"width": width, "height": 800})
    page.click("#more")
    ask(page, "一二三四五" * 3)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_no_script_writes_markup() -> None:
    for path in Path(__file__).parents[2].glob("src/regard/serve/web/*.js"):
        source = path.read_text("utf-8")
        for forbidden in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "Function(",
        ):
            assert forbidden not in source, path.name


def test_a_text_is_continued(open_page, tmp_path: Path) -> None:
    trained = regard.train(continuing(tmp_path), quiet=True)
    with served([tmp_path / "run"], tmp_path / "log") as running:
        page = open_page(running)
        ask(page, "amber")
        assert page.locator("#output").text_content() == trained.predict("amber").text
        assert page.is_visible("#picture")
        assert page.is_visible("#search"), "it searches, so the search can be chosen"


def test_blanks_are_filled(open_page, tmp_path: Path) -> None:
    trained = regard.train(pretraining(tmp_path), quiet=True)
    with served([tmp_path / "run"], tmp_path / "log") as running:
        page = open_page(running)
        ask(page, "amber [MASK] cedar")
        filled = trained.predict("amber [MASK] cedar")
        assert page.locator("#output").text_content() == filled.text
        assert page.locator("#labels bdi").all_text_contents() == [
            candidate.text for candidate in filled.blanks[0].candidates
        ]
        assert page.is_visible("#picture")


def test_two_texts_have_a_field_each(open_page, tmp_path: Path) -> None:
    lines = [
        f"amber birch\tcedar {word}\t{'yes' if word == 'delta' else 'no'}" for word in ("delta", "ember")
    ]
    (tmp_path / "train.tsv").write_text("\n".join(lines * 20) + "\n", "utf-8")
    data = {"train": str(tmp_path / "train.tsv"), "columns": {"text": 1, "second": 2, "label": 3}}
    made = recipe(tmp_path, data, classifier("words").model_dump(), "classify_pair")
    trained = regard.train(made, quiet=True)
    with served([tmp_path / "run"], tmp_path / "log") as running:
        page = open_page(running)
        page.fill("#second", "cedar delta")
        ask(page, "amber birch")
        answer = trained.predict({"text": "amber birch", "second": "cedar delta"})
        assert page.locator("#output").text_content() == answer.text
        assert page.locator("#columns bdi").all_text_contents() == [
            "amber", "birch", "</s>", "cedar", "delta", "</s>",
        ]  # fmt: skip
