from base64 import b64decode
from dataclasses import replace
from io import BytesIO
from xml.etree import ElementTree

import matplotlib.image
import numpy as np
import pytest

from regard.explain.assets import CAVEAT
from regard.explain.colour import SEQUENTIAL, full_tone, shade
from regard.explain.explanation import AttentionMap, Explanation
from regard.explain.positions import heatmap_svg
from regard.explain.vector import png
from regard.fields.axis import Axis

NS = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return [node.text or "" for node in ElementTree.fromstring(svg).iter(f"{NS}text")]


def test_what_is_no_attention_has_no_caveat_about_it(classification):
    (pooling,) = classification.maps
    measured = replace(classification, maps=(replace(pooling, holds="share"),))
    assert CAVEAT in texts(classification.to_svg())
    assert CAVEAT not in texts(measured.to_svg())


def one_map(weights: np.ndarray, rows: tuple[str, ...], columns: tuple[str, ...]) -> Explanation:
    only = AttentionMap(
        "site", "title", weights.astype(np.float32), Axis("rows", rows), Axis("columns", columns)
    )
    return Explanation("translate", "model", "in", "out", (only,), "site", None)


def test_a_picture_has_its_labels_title_trust_and_caveat(translation):
    shown = texts(translation.to_svg())
    for label in (
        "白鹭",
        "看见",
        "Yesterday",
        "egr",
        "decoder layer 4: target → source · mean over heads",
        CAVEAT,
    ):
        assert label in shown
    assert "Measured on this input" in "".join(shown)
    assert texts(translation.to_svg(head=2))[-1] == CAVEAT
    assert any("· head 3" in line for line in texts(translation.to_svg(head=2)))


def test_cells_have_the_colours_of_their_weights():
    weights = np.array([[[0.125, 0.5, 0.375, 0, 0], [0.125, 0.125, 0, 0.5, 0.25]]])
    root = ElementTree.fromstring(one_map(weights, ("a", "b"), tuple("uvxyz")).to_svg())
    (picture,) = root.findall(f"{NS}g")
    paths = picture.findall(f"{NS}path")[:5]  # the colour scale follows
    cells = {path.get("fill"): path.get("d").count("M") for path in paths}
    counts = {0.5: 2, 0.375: 1, 0.25: 1, 0.125: 3, 0: 3}
    assert cells == {shade(SEQUENTIAL, weight / 0.8): count for weight, count in counts.items()}
    assert "0.80" in texts(one_map(weights, ("a", "b"), tuple("uvxyz")).to_svg())


def test_a_row_that_looks_everywhere_alike_is_pale():
    even = np.full((1, 2, 23), 1 / 23)
    root = ElementTree.fromstring(one_map(even, ("a", "b"), ("x",) * 23).to_svg())
    outlines = {path.get("fill"): path.get("d") for path in root.iter(f"{NS}path")}
    assert max(outlines, key=lambda fill: len(outlines[fill])) == shade(SEQUENTIAL, 0.25)


def test_narrow_chinese_labels_are_stacked_and_latin_ones_turned():
    columns = tuple(["河边散步"] * 40 + ["egret"])
    root = ElementTree.fromstring(one_map(np.full((1, 2, 41), 1 / 41), ("a", "b"), columns).to_svg())
    upright = [node for node in root.iter(f"{NS}text") if node.text == "散"]
    assert len(upright) == 40
    assert all(node.get("transform") is None for node in upright)
    (latin,) = [node for node in root.iter(f"{NS}text") if node.text == "egret"]
    assert latin.get("transform").startswith("rotate(-90")


def test_sixty_labels_are_all_there_and_five_hundred_are_thinned(large):
    sixty, many = large(1, 61).to_svg(), large(1, 509).to_svg()
    assert {f"piece{at}" for at in range(61)} <= set(texts(sixty))
    assert 20 < len([line for line in texts(many) if line.startswith("piece")]) < 200
    assert len(many) < 400_000
    root = ElementTree.fromstring(many)
    assert float(root.get("width")) < 1300


def test_many_cells_become_an_image_with_a_pixel_a_cell(large):
    explanation = large(1, 151)
    (image,) = ElementTree.fromstring(explanation.to_svg()).iter(f"{NS}image")
    pixels = matplotlib.image.imread(BytesIO(b64decode(image.get("href").split(",")[1])), format="png")
    weights = explanation.maps[0].head(0)
    expected = SEQUENTIAL[np.rint(weights / full_tone(weights) * 255).astype(int)]
    np.testing.assert_allclose(pixels[..., :3] * 255, expected, atol=0.5)


def test_beyond_a_thousand_cells_a_single_link_stays_visible():
    weights = np.zeros((1, 2, 3001), np.float32)
    weights[0, 1, 2000] = 1
    root = ElementTree.fromstring(one_map(weights, ("a", "b"), ("x",) * 3001).to_svg())
    assert shade(SEQUENTIAL, 1) in [path.get("fill") for path in root.find(f"{NS}g").iter(f"{NS}path")]


def test_words_are_shaded_and_carry_their_numbers(classification):
    svg = classification.to_svg()
    weights = classification.maps[0].head(0)[0]
    assert {f"{weight:.2f}" for weight in weights} <= set(texts(svg))
    words = [node for node in ElementTree.fromstring(svg).iter(f"{NS}rect") if node.get("rx")]
    assert [word.get("fill") for word in words] == [
        shade(SEQUENTIAL, w / full_tone(weights)) for w in weights.tolist()
    ]
    lines = {float(word.get("y")) for word in words}
    assert len(lines) > 1
    assert all(float(word.get("x")) + float(word.get("width")) <= 720 for word in words)


def test_a_very_long_text_is_cut_and_says_so():
    long = one_map(np.full((1, 1, 1201), 1 / 1201), ("positive",), ("好",) * 1201)
    assert "… and 201 more" in texts(long.to_svg())


@pytest.mark.parametrize(
    "hostile", ["</text><script>x()</script>", "]]>", "a\x00b", "\ud800", "&amp;", '"><a']
)
def test_hostile_text_stays_text(translation, hostile):
    axis = Axis(hostile, (hostile,) * 11)
    maps = (replace(translation.maps[-1], title=hostile, rows=axis),)
    svg = replace(translation, maps=maps, model=hostile, main=maps[0].site).to_svg()
    root = ElementTree.fromstring(svg.encode())
    assert {node.tag.removeprefix(NS) for node in root.iter()} <= {
        "svg",
        "title",
        "rect",
        "g",
        "text",
        "path",
    }


def test_all_zero_weights_can_be_drawn():
    assert "1.00" in texts(one_map(np.zeros((1, 2, 3)), ("a", "b"), ("x", "y", "z")).to_svg())


def test_png_is_read_back_by_another_library():
    places = np.arange(35, dtype=np.uint8).reshape(5, 7)
    pixels = matplotlib.image.imread(BytesIO(png(places, SEQUENTIAL)), format="png")
    np.testing.assert_allclose(pixels[..., :3] * 255, SEQUENTIAL[places], atol=0.5)


def sinusoids(n_positions: int, d_model: int) -> np.ndarray:
    angles = np.arange(n_positions)[:, None] / 10000 ** (np.arange(0, d_model, 2) / d_model)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(n_positions, d_model)


def test_positions_are_drawn_with_ticks_and_a_scale_around_zero():
    svg = heatmap_svg(sinusoids(50, 128))
    shown = texts(svg)
    for line in ("position", "dimension", "50 positions × 128 dimensions", "0", "40", "120", "−1", "+1"):
        assert line in shown
    assert len(svg) < 300_000


@pytest.mark.parametrize("shape", [(1, 2), (7, 14), (1000, 1024)])
def test_positions_of_any_size(shape):
    root = ElementTree.fromstring(heatmap_svg(sinusoids(*shape)))
    assert len(list(root.iter(f"{NS}text"))) < 40
