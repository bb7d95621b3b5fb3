"""The tree of a search as a page: every beginning once, reachable by keyboard, and no text obeyed."""

import math
from dataclasses import replace

from playwright.sync_api import Page, expect

from hostile_texts import HOSTILE
from regard.explain.beams import BeamNode, BeamTree

TREE = BeamTree(
    "transformer 3+3 layers, d=256, 4 heads",
    "我昨天看见了一只白鹭。",
    "beam 2, n_best 2",
    (
        BeamNode(0, "", "", 1.0, 0.0, 0.0, 0, 0, "went on", None),
        BeamNode(0, "Yesterday", "Yesterday", 0.6, -0.51, -0.44, 1, 0, "went on", None),
        BeamNode(0, "I", "I", 0.3, -1.2, -1.03, 1, 0, "left behind", None),
        BeamNode(0, "The", "The", 0.05, -3.0, -2.57, 1, 0, "outranked", None),
        BeamNode(1, "I", "Yesterday I", 0.9, -0.61, -0.46, 2, 0, "went on", None),
        BeamNode(1, "egret", "Yesterday egret", 0.08, -3.1, -2.3, 2, 0, "outranked", None),
        BeamNode(4, "</s>", "Yesterday I", 0.5, -1.3, -0.87, 3, 0, "answer", 1),
        BeamNode(4, "saw", "Yesterday I saw", 0.4, -1.5, -1.0, 3, 0, "too late", None),
        BeamNode(2, "</s>", "I", 0.5, -1.9, -1.43, 2, 0, "beaten", None),
    ),
)


def boxes(page: Page) -> set[int]:
    return set(page.eval_on_selector_all("#tree g[data-node]", "all => all.map(g => +g.dataset.node)"))


def test_draws_every_beginning_that_was_not_outranked_and_all_on_request(open_page):
    page = open_page(TREE)
    assert boxes(page) == {0, 1, 2, 4, 6, 7, 8}
    page.check("#outranked")
    assert boxes(page) == set(range(9))
    assert page.locator("#tree path").count() == 8
    expect(page.locator("#answers li bdi")).to_have_text(["Yesterday I"])


def test_begins_at_the_answer_and_obeys_the_arrow_keys(open_page):
    page = open_page(TREE)
    expect(page.locator("#fate")).to_have_text("Complete: answer number 1.")
    expect(page.locator("#details")).to_contain_text("50.0 %")
    page.focus("#branches")
    for key, text, fate in (
        ("ArrowDown", "Yesterday I saw", "could no longer become an answer"),
        ("ArrowLeft", "Yesterday I", "one of its continuations"),
        ("ArrowDown", "I", "other complete hypotheses were better"),
        ("ArrowLeft", "I", "none of its continuations was"),
        ("ArrowLeft", "(no token yet)", ""),
        ("ArrowRight", "Yesterday", "one of its continuations"),
    ):
        page.keyboard.press(key)
        expect(page.locator("#written")).to_have_text(text)
        expect(page.locator("#fate")).to_contain_text(fate)


def test_speaks_chinese(open_page):
    page = open_page(TREE, locale="zh-CN")
    expect(page.locator("h1")).to_have_text("答案是怎样找到的")
    expect(page.locator("#fate")).to_have_text("已完成，是第 1 个答案。")


def test_no_text_is_obeyed(open_page):
    hostile = tuple(
        replace(TREE.nodes[4], parent=0, step=1, token=text, text=text, fate="beaten") for text in HOSTILE
    )
    page = open_page(replace(TREE, input=HOSTILE[0], nodes=(TREE.nodes[0], *hostile)))
    assert len(boxes(page)) == len(HOSTILE) + 1
    assert page.evaluate("window.__pwned") is None


def test_a_model_that_says_nothing_finite_is_drawn_too(open_page):
    nothing = replace(TREE.nodes[6], log_prob=float("-inf"), score=float("nan"), probability=0.0)
    page = open_page(replace(TREE, nodes=(*TREE.nodes[:6], nothing)))
    expect(page.locator("#details")).to_contain_text("−∞")
    page = open_page(replace(TREE, nodes=(*TREE.nodes[:6], replace(nothing, probability=math.nan))))
    expect(page.locator("#details")).to_contain_text("this token – ·")
