"""Explanations to draw, with weights as a trained model might give them."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Browser, Page

from pages import watch
from regard.explain.explanation import AttentionMap, Explanation, Trust
from regard.fields.axis import Axis

SOURCE = ("我", "昨天", "在", "河", "边", "看见", "了", "一", "只", "白鹭", "。", "</s>")
TARGET = ("Yesterday", "I", "saw", "an", "egr", "et", "by", "the", "river", ".", "</s>")
ALIGNED = (1, 0, 5, 7, 9, 9, 4, 3, 3, 10, 11)
REVIEW = (
    "a",
    "warm",
    ",",
    "funny",
    "and",
    "quietly",
    "devastating",
    "film",
    "that",
    "earns",
    "every",
    "tear",
)


def softmax(scores: NDArray[np.float64]) -> NDArray[np.float32]:
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (exponentials / exponentials.sum(axis=-1, keepdims=True)).astype(np.float32)


def cross(layer: int, n_heads: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Sharper with depth; the last head keeps looking at the end of the sentence, as real ones do."""
    scores = rng.normal(0, 0.7, (n_heads, len(TARGET), len(SOURCE)))
    for row, column in enumerate(ALIGNED):
        scores[:, row, column] += 1.2 + 0.9 * layer
        scores[:, row, max(column - 1, 0)] += 0.5 * layer
    scores[-1, :, -1] += 3.5
    return softmax(scores)


def self_attention(
    n: int, layer: int, n_heads: int, causal: bool, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Heads that look at themselves, at the previous piece, at the next one, and anywhere."""
    place = np.arange(n)
    scores = rng.normal(0, 0.8, (n_heads, n, n))
    for head in range(n_heads):
        offset = (0, -1, 1, 0)[head % 4]
        nearness = -np.abs(place[None, :] - place[:, None] - offset)
        scores[head] += nearness * (1.6 if head % 4 < 3 else 0.1) * (1 - 0.15 * layer)
    if causal:
        scores[:, np.triu(np.ones((n, n), bool), 1)] = -1e9
    return softmax(scores)


def translation() -> Explanation:
    rng = np.random.default_rng(7)
    source, target = Axis("source", SOURCE), Axis("target", TARGET)
    written = Axis("written so far", ("<s>", *TARGET[:-1]))
    n_layers, n_heads = 4, 4
    maps = []
    for layer in range(n_layers):
        weights = self_attention(len(SOURCE), layer, n_heads, False, rng)
        maps.append(
            AttentionMap(
                f"encoder.layers.{layer}.self",
                f"encoder layer {layer + 1}: source → source",
                weights,
                source,
                source,
            )
        )
    for layer in range(n_layers):
        weights = self_attention(len(TARGET), layer, n_heads, True, rng)
        maps.append(
            AttentionMap(
                f"decoder.layers.{layer}.self",
                f"decoder layer {layer + 1}: target → what was written",
                weights,
                target,
                written,
            )
        )
    for layer in range(n_layers):
        title = f"decoder layer {layer + 1}: target → source"
        weights = cross(layer, n_heads, rng)
        maps.append(AttentionMap(f"decoder.layers.{layer}.cross", title, weights, target, source))
    return Explanation(
        task="translate",
        model="transformer 4+4 layers, d=128, 4 heads",
        input="我昨天在河边看见了一只白鹭。",
        output="Yesterday I saw an egret by the river.",
        maps=tuple(maps),
        main="decoder.layers.3.cross",
        trust=Trust(
            "Measured on this input: leaving out the piece it looks at most costs a word of the answer 2.31 "
            "nats on average; a piece at random 0.64, the piece that matters most 3.52. The weights go 58% "
            "of the way from random to best (shuffled ones stay below 17% in 95 % of cases): they largely "
            "point at what matters. Shown first is the map, of 4, that does best.",
            0.58,
            "对这条输入的实测：去掉权重最大的片段，答案中每个词的对数概率平均改变 2.31 奈特。",
        ),
    )


def classification() -> Explanation:
    rng = np.random.default_rng(11)
    scores = rng.normal(0, 0.5, (1, 1, len(REVIEW)))
    for at, word in enumerate(REVIEW):
        scores[0, 0, at] += {"warm": 2.0, "funny": 2.4, "devastating": 3.1, "earns": 1.7}.get(word, 0)
    axes = Axis("label", ("positive",)), Axis("text", REVIEW)
    pooling = AttentionMap("pooling", "pooling: label → words", softmax(scores), *axes)
    trust = Trust("Leaving out the three darkest words changes the answer; three random words do not.", None)
    return Explanation(
        "classify", "bi-LSTM, d=128", " ".join(REVIEW), "positive", (pooling,), "pooling", trust
    )


def large(n_heads: int, n: int) -> Explanation:
    """One site over long texts, its heads looking nearby and everywhere: hard to pack, heavy to draw."""
    rng = np.random.default_rng(3)
    near = 3 * np.exp(-np.abs(np.subtract.outer(np.arange(n), np.arange(n))) / 3)
    weights = softmax(near + rng.normal(0, 1, (n_heads, n, n)))
    axis = Axis("source", tuple(f"piece{at}" for at in range(n)))
    only = AttentionMap("encoder.layers.0.self", "encoder layer 1: source → source", weights, axis, axis)
    return Explanation("translate", "transformer", "long", "long", (only,), only.site, None)


@pytest.fixture(name="translation")
def _translation() -> Explanation:
    return translation()


@pytest.fixture(name="classification")
def _classification() -> Explanation:
    return classification()


@pytest.fixture(name="large")
def _large() -> Callable[[int, int], Explanation]:
    return large


@pytest.fixture
def open_page(browser: Browser, tmp_path) -> Iterator[Callable[..., Page]]:
    """Opens an explanation from disk with the network off; any request, dialog, error or CSP report fails."""
    contexts, faults = [], []

    def opened(explanation: Explanation, **options) -> Page:
        context = browser.new_context(offline=True, **{"locale": "en-US"} | options)
        contexts.append(context)
        page = context.new_page()
        watch(page, faults, lambda url: not url.startswith("http"))
        path = tmp_path / "attention.html"
        explanation.to_html(path)
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]", timeout=20_000)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not faults
