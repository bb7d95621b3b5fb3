"""The page as a file: what it may do, what it weighs, and that no text can leave its place."""

import json
import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser

import numpy as np
import pytest
from numpy.typing import NDArray

from regard.explain.assets import STRINGS, asset
from regard.explain.explanation import AttentionMap, Explanation
from regard.explain.page import SCRIPTS
from regard.fields.axis import Axis

SINKS = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "DOMParser")


class Read(HTMLParser):
    """The tags of a page in order, and the content of its policy, scripts and style."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.inline: dict[str, str] = {}
        self.policy = self.open = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        self.tags.append(tag)
        self.open = given.get("id") or tag
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"] or ""
        assert not {name for name in given if name.startswith("on") or name in {"href", "src", "style"}}

    def handle_data(self, text: str) -> None:
        self.inline.setdefault(self.open, text)


def test_the_policy_allows_this_script_and_this_style_and_nothing_from_anywhere(translation):
    page = Read(translation.to_html())
    policy = dict(directive.split(" ", 1) for directive in page.policy.split("; "))
    assert policy["default-src"] == "'none'"
    for directive, tag in (("script-src", "script"), ("style-src", "style")):
        digest = b64encode(sha256(page.inline[tag].encode()).digest()).decode()
        assert policy[directive] == f"'sha256-{digest}'"
    assert "http" not in re.sub(r"http://www.w3.org/2000/svg|http-equiv", "", translation.to_html())


def test_the_modules_become_one_script_that_imports_nothing(translation):
    script = Read(translation.to_html()).inline["script"]
    assert script.startswith('"use strict";')
    assert not re.search(r"^\s*(import|export)\b", script, re.MULTILINE)


@pytest.mark.parametrize("script", SCRIPTS)
def test_no_script_can_turn_text_into_markup(script):
    assert not [sink for sink in SINKS if sink in asset(script)]


def test_text_cannot_close_the_data(translation):
    hostile = "</script><script>alert(1)</script><!--"
    page = replace(translation, input=hostile, output=hostile).to_html()
    assert Read(page).tags == Read(translation.to_html()).tags
    assert json.loads(Read(page).inline["data"])["input"] == hostile


def test_both_languages_say_the_same_things():
    assert STRINGS["en"].keys() == STRINGS["zh"].keys()
    for key, english in STRINGS["en"].items():
        if isinstance(english, str):
            assert sorted(re.findall(r"\{\w+\}", english)) == sorted(
                re.findall(r"\{\w+\}", STRINGS["zh"][key])
            )


def diffuse(n_heads: int, n: int, causal: bool) -> NDArray[np.float32]:
    scores = np.random.default_rng(5).normal(0, 1, (n_heads, n, n))
    weights = np.exp(np.where(np.tri(n, dtype=bool), scores, -np.inf) if causal else scores)
    return (weights / weights.sum(-1, keepdims=True)).astype(np.float32)


def test_six_layers_of_eight_heads_over_64_pieces_stay_under_a_megabyte():
    axis = Axis("source", tuple(f"piece{at}" for at in range(64)))
    maps = tuple(
        AttentionMap(f"{layer}.{kind}", f"layer {layer}: {kind}", diffuse(8, 64, kind == "self"), axis, axis)
        for kind in ("encoder", "self", "cross")
        for layer in range(6)
    )
    explanation = Explanation("translate", "transformer", "in", "out", maps, maps[0].site, None)
    assert len(explanation.to_html().encode()) < 1_000_000
