"""Pictures: what a model of them is explained with, and how maps to patches are drawn, on any grid."""

from base64 import b64decode
from io import BytesIO, StringIO
from itertools import pairwise, product
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from PIL import Image as Pillow
from rich.cells import cell_len
from rich.console import Console

from pictures import COLUMNS, ENCODERS, LABELS, ROWS, classifier, field, noise
from regard.explain.explanation import AttentionMap, Explanation
from regard.explain.replay import explain
from regard.explain.rollout import rollout
from regard.explain.terminal import render
from regard.explain.trust import LEFT_OUT
from regard.fields.axis import Axis
from regard.fields.labels import Labels
from regard.files.picture import Picture
from regard.tasks import Multilabel, MultilabelConfig

NS = "{http://www.w3.org/2000/svg}"
GRIDS = {
    "vit": (3, 5),
    "vit-conv": (3, 5),
    "vit-deep": (3, 5),
    "vit-class": (3, 5),
    "vit-deit": (3, 5),
    "cnn": (6, 10),
}


def explained(name: str, pooling: str | None = None) -> Explanation:
    task, model, config = classifier(name, pooling)
    (picture,) = noise(1)
    return explain(task, model, str(config), {"image": picture}, torch.device("cpu"))


def made(grid: tuple[int, int], n_fixed: int = 0, *, with_picture: bool = True) -> Explanation:
    """A map from a label and one from patch to patch, of a picture of this grid."""
    n = grid[0] * grid[1]
    rng = np.random.default_rng(n)
    labels = ("[class]", "[distilled]")[:n_fixed] + tuple(f"{y},{x}" for y, x in product(*map(range, grid)))
    pixels = noise(1, 4 * grid[0], 4 * grid[1])[0] if with_picture else None
    patches = Axis("image", labels, "patch", frozenset(range(n_fixed)), grid=grid, picture=pixels)
    weights = rng.dirichlet(np.ones(n + n_fixed), (2, n + n_fixed)).astype(np.float32)
    layer = AttentionMap("layer", "encoder layer 1: patch → patch", weights, patches, patches)
    label = Axis("label", ("dog",), "label")
    pooled = AttentionMap("pooling", "pooling: label → patches", weights[:1, :1], label, patches)
    return Explanation("classify", "vit", "dog.png", "dog", (layer, pooled), "pooling", None)


# what there is to see


def test_a_rollout_is_the_sum_over_all_paths() -> None:
    """Each step of a path is half the attention, half the residual connection."""
    n_layers, n_heads, n = 3, 2, 4
    layers = torch.rand(n_layers, 1, n_heads, n, n).softmax(-1)
    expected = torch.zeros(n, n)
    for path in product(range(n), repeat=n_layers + 1):
        share = 1.0
        for layer, (key, query) in enumerate(pairwise(path)):
            mean = float(layers[layer, 0, :, query, key].mean())
            share *= (mean + (query == key)) / 2
        expected[path[-1], path[0]] += share
    rolled_BKK = rollout(list(layers))
    torch.testing.assert_close(rolled_BKK[0], expected)
    torch.testing.assert_close(rolled_BKK.sum(-1), torch.ones(1, n))


@pytest.mark.parametrize("name", ENCODERS)
def test_every_encoder_shows_where_it_looks_and_what_matters(name: str) -> None:
    one = explained(name)
    for attention in one.maps:
        assert attention.columns.grid == GRIDS[name]
        np.testing.assert_allclose(attention.weights_HQK.sum(-1), 1, atol=1e-5)
    n_layers = 0 if name == "cnn" else 2
    has_class = bool(ENCODERS[name].get("class_tokens"))
    unit = "cells" if name == "cnn" else "patches"
    rolled = [f"last layer: label → {unit}"] * has_class + [f"rollout of all layers: label → {unit}"]
    assert [attention.title for attention in one.maps] == [
        *(f"encoder layer {n + 1}: patch → patch" for n in range(n_layers)),
        *([] if has_class else [f"pooling: label → {unit}"]),
        *(rolled if n_layers else []),
        f"left out: label → {unit}",
    ]
    assert one.trust is not None
    assert (
        f"covering the {unit.removesuffix('es') if unit == 'patches' else 'cell'} with" in one.trust.sentence
    )
    assert one.main != LEFT_OUT


@pytest.mark.parametrize("pooling", ["first", "mean", "attention", "pooler"])
def test_a_rollout_begins_with_what_is_pooled(pooling: str) -> None:
    one = explained("vit-class", pooling)
    layers = [attention.weights_HQK.mean(0) for attention in one.maps[:2]]
    eye = np.eye(16)
    rolled = (layers[1] + eye) / 2 @ ((layers[0] + eye) / 2)
    start = {
        "first": eye[:1],
        "pooler": eye[:1],
        "mean": np.full((1, 16), 1 / 16),
    }
    begun = start[pooling] if pooling in start else one.map("pooling.attention").head(None)
    np.testing.assert_allclose(one.map("rollout").head(None), begun @ rolled, atol=1e-6)
    if pooling != "attention":
        last = one.map("last-layer").weights_HQK
        np.testing.assert_allclose(last, begun @ one.maps[1].weights_HQK, atol=1e-6)


@pytest.mark.parametrize("name", ["vit-class", "cnn"])
def test_what_matters_is_measured_by_covering_patches(name: str) -> None:
    task, model, config = classifier(name)
    (content,) = noise(1)
    one = explain(task, model, str(config), {"image": content}, torch.device("cpu"))
    pixels = Picture(content, "x").pixels(3)
    index = LABELS.index(one.output)

    def log_prob(pixels: np.ndarray) -> float:
        with torch.no_grad():
            logits_BC = model({"pixels": torch.from_numpy(pixels[None])})
        return float(logits_BC.log_softmax(-1)[0, index])

    n_rows, n_columns = GRIDS[name]
    height, width = ROWS // n_rows, COLUMNS // n_columns
    changes = []
    for y, x in product(range(n_rows), range(n_columns)):
        covered = pixels.copy()
        covered[y * height : (y + 1) * height, x * width : (x + 1) * width] = np.array(field().mean).round()
        changes.append(abs(log_prob(pixels) - log_prob(covered)))
    shares = one.map(LEFT_OUT).head(None)[0]
    expected = np.array(changes) / sum(changes)
    np.testing.assert_allclose(shares[len(shares) - len(expected) :], expected, atol=1e-4)


def test_a_model_without_attention_shows_what_matters_alone() -> None:
    one = explained("cnn", "mean")
    assert one.sites == [LEFT_OUT]
    assert one.trust is not None
    assert "each cell was covered with the mean colour in turn" in one.trust.sentence
    assert "盖住" in (one.trust.in_chinese or "")


def test_a_multilabel_model_is_explained_too() -> None:
    _, model, config = classifier("vit-class")
    settings: Any = MultilabelConfig(fields={"image": {"kind": "image"}})  # type: ignore[dict-item]
    task = Multilabel(settings, {"image": field()}, Labels(names=LABELS))
    one = explain(task, model, str(config), {"image": noise(1)[0]}, torch.device("cpu"))
    assert "rollout of all layers: labels → patches" in [attention.title for attention in one.maps]


# the drawing


def marks(svg: str, tag: str) -> list[ElementTree.Element]:
    return [*ElementTree.fromstring(svg).iter(f"{NS}{tag}")]


@pytest.mark.parametrize("grid", [(1, 1), (1, 7), (3, 5), (8, 8), (14, 14), (40, 3), (64, 64)])
@pytest.mark.parametrize("n_fixed", [0, 2])
def test_any_grid_is_drawn_with_its_picture(grid: tuple[int, int], n_fixed: int) -> None:
    one = made(grid, n_fixed) if grid != (64, 64) else small_map((64, 64), n_fixed)
    for site in one.sites:
        svg = one.to_svg(site=site)
        shown = [mark for mark in marks(svg, "image") if mark.get("href") != ""]
        png = b64decode((shown[0].get("href") or "").removeprefix("data:image/png;base64,"))
        assert Pillow.open(BytesIO(png)).size == (4 * grid[1], 4 * grid[0])
        width, height = (float(shown[0].get(side) or 0) for side in ("width", "height"))
        assert width / height == pytest.approx(grid[1] / grid[0], rel=1e-3)
        root = ElementTree.fromstring(svg)
        assert float(root.get("width") or 0) < 1100
        assert float(root.get("height") or 0) < 1600


def small_map(grid: tuple[int, int], n_fixed: int) -> Explanation:
    """Only the row of a label, of so fine a grid that a map of all patches would be large."""
    n = grid[0] * grid[1]
    labels = tuple(map(str, range(n + n_fixed)))
    patches = Axis("image", labels, "patch", frozenset(range(n_fixed)), grid, picture=noise(1, 256, 256)[0])
    weights = np.random.default_rng(0).dirichlet(np.ones(n + n_fixed), (1, 1)).astype(np.float32)
    only = AttentionMap("pooling", "pooling: label → patches", weights, Axis("label", ("dog",)), patches)
    return Explanation("classify", "vit", "dog.png", "dog", (only,), "pooling", None)


def test_a_patch_is_the_clearer_the_more_weight_it_has() -> None:
    one = made((2, 3))
    weights = one.map("pooling").head(None)[0]
    veils = [mark for mark in marks(one.to_svg(), "path") if mark.get("fill-opacity")]
    opacity = np.zeros(6)
    for mark in veils:
        for corner in (mark.get("d") or "").split("M")[1:]:
            x, y = map(float, corner.split("h")[0].split())
            opacity[int((y - 84) // 100) * 3 + int((x - 24) // 100)] = float(mark.get("fill-opacity") or 0)
    assert opacity[weights.argmax()] == 0
    np.testing.assert_allclose(opacity, 0.75 * (1 - weights / weights.max()), atol=0.02)


def test_without_a_picture_there_are_shades_alone() -> None:
    svg = made((3, 5), with_picture=False).to_svg()
    assert marks(svg, "image") == []
    assert not [mark for mark in marks(svg, "path") if mark.get("fill-opacity")]


def test_class_tokens_stand_beside_the_plane_with_their_weights() -> None:
    one = made((3, 5), 2)
    weights = one.map("pooling").head(None)[0]
    shown = [mark.text for mark in marks(one.to_svg(), "text")]
    assert f"[class] {weights[0]:.2f}   [distilled] {weights[1]:.2f}" in shown
    rows = [mark.text for mark in marks(one.to_svg(site="layer"), "text")]
    assert {"[class]", "[distilled]"} <= set(rows)


@pytest.mark.parametrize("grid", [(1, 7), (3, 5), (14, 14), (64, 64)])
@pytest.mark.parametrize("width", [30, 60, 80, 200])
def test_the_terminal_shows_the_plane_and_no_line_is_too_wide(grid: tuple[int, int], width: int) -> None:
    one = small_map(grid, 1)
    console = Console(file=StringIO(), width=width, force_terminal=True, color_system="truecolor")
    console.print(render(one, width))
    plain = Console(file=StringIO(), width=width)
    plain.print(render(one, width))
    lines = plain.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert max(map(cell_len, lines)) <= width
    assert ("▀" in plain.file.getvalue()) == (4 * grid[1] + 2 <= width)  # type: ignore[attr-defined]
    assert "\x1b[48;2;" in console.file.getvalue()  # type: ignore[attr-defined]


# the page


def readout(page: Any) -> str:
    return str(page.locator("#readout").inner_text())


@pytest.mark.parametrize("n_fixed", [0, 1])
def test_the_page_shows_picture_and_shades(open_page: Any, n_fixed: int) -> None:
    one = made((3, 5), n_fixed)
    page = open_page(one)
    assert page.locator("#plane image").count() == 1
    assert page.locator("#stage").is_hidden()
    assert page.locator("#words").is_hidden()
    row, column, weight = one.strongest(1)[0]
    assert readout(page) == f"‘{row}’ → ‘{column}’ {weight:.2f}"
    assert page.locator("#columns-line bdi").count() == n_fixed
    page.get_by_role("button", name="中文").click()
    assert "汇聚: 标签 → 图块" in page.locator("#site").inner_text()


def test_pointing_at_a_patch_reads_it_out(open_page: Any) -> None:
    one = made((3, 5))
    page = open_page(one)
    weights = one.map("pooling").head(None)[0]
    place = page.evaluate("drawn.plane.place")
    for corner, at in (("shades", 7), ("picture", 13)):
        y, x = divmod(at, 5)
        spot = {
            "x": place[corner]["x"] + (x + 0.5) * place["cell"],
            "y": place[corner]["y"] + (y + 0.5) * place["cell"],
        }
        page.locator("#plane").hover(position=spot)
        assert readout(page) == f"‘dog’ → ‘{y},{x}’ {weights[at]:.2f}"
    assert page.locator("#plane rect").count() == 2


def test_the_picture_chooses_which_patch_looks(open_page: Any) -> None:
    one = made((3, 5), 1)
    page = open_page(one)
    page.select_option("#site", "0")
    before = page.locator("#plane g").first.inner_html()
    place = page.evaluate("drawn.plane.place")
    page.locator("#plane").hover(position={"x": 2.5 * place["cell"], "y": 1.5 * place["cell"]})
    assert readout(page).startswith("‘1,2’ → ")
    assert page.locator("#plane g").first.inner_html() != before
    page.locator("#rows-line bdi", has_text="[class]").hover()
    assert readout(page).startswith("‘[class]’ → ")


def test_arrows_move_over_the_plane(open_page: Any) -> None:
    page = open_page(made((3, 5)))
    page.locator("#plane").focus()
    for _ in range(6):
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowUp")
    assert "→ ‘0,0’" in readout(page)
    for key in ("ArrowRight", "ArrowDown", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    assert "→ ‘2,1’" in readout(page)


def test_numbers_lie_as_the_patches_do(open_page: Any) -> None:
    one = made((3, 5), 1)
    page = open_page(one)
    page.locator("#numbers-toggle").click()
    rows = "Array.from(document.querySelectorAll('#numbers tr'), (row) => row.innerText)"
    shown = [[float(number) for number in row.split()] for row in page.evaluate(rows)]
    expected = one.map("pooling").head(None)[0, 1:].reshape(3, 5)
    np.testing.assert_allclose(shown, expected, atol=6e-4)


def test_the_saved_file_holds_picture_and_shades(open_page: Any, tmp_path: Any) -> None:
    page = open_page(made((3, 5)))
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Save SVG").click()
    waiting.value.save_as(tmp_path / "saved.svg")
    svg = (tmp_path / "saved.svg").read_text("utf-8")
    assert len(marks(svg, "image")) == 1
    assert len(marks(svg, "path")) > 10
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Save PNG").click()
    waiting.value.save_as(tmp_path / "saved.png")
    assert Pillow.open(BytesIO((tmp_path / "saved.png").read_bytes())).size[0] > 800
