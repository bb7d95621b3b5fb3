import re

import numpy as np
import pytest

from regard.explain.assets import asset
from regard.explain.colour import DIVERGING, SEQUENTIAL, full_tone, ink_on, luminance, oklab, shade


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_equal_steps_of_weight_are_equal_steps_of_lightness():
    steps = np.diff(oklab(SEQUENTIAL)[:, 0])
    assert (steps < 0).all()
    assert steps.std() < 0.35 * -steps.mean()  # bytes are coarse


def test_the_diverging_scale_is_lightest_in_the_middle_and_falls_alike_to_both_sides():
    lightness = oklab(DIVERGING)[:, 0]
    assert len(DIVERGING) == 256
    assert lightness.argmax() in (126, 127, 128, 129)
    assert np.abs(lightness - lightness[::-1]).max() < 0.03


def test_the_last_colour_is_the_largest_weight_but_never_a_nearly_even_one():
    assert full_tone(np.array([[0.7, 0.1, 0.1, 0.05, 0.05]])) == 4 / 5
    assert full_tone(np.full((3, 11), 1 / 11)) == 4 / 11
    assert full_tone(np.eye(7)) == 1
    assert full_tone(np.ones((5, 1))) == 1


def test_text_on_every_shade_has_contrast():
    for place in range(256):
        fill = shade(SEQUENTIAL, place / 255)
        assert contrast(fill, ink_on(fill)) >= 4.5


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_the_page_has_contrast(theme):
    block = re.findall(r":root \{(.*?)\}", asset("page.css"), re.DOTALL)[theme]
    colours = dict(re.findall(r"--(\w+): (#\w{6})", block))
    for text in ("ink", "muted", "accent"):
        for ground in ("page", "panel"):
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
