"""The two colour scales of every picture, perceptually uniform: equal steps of weight are equal in lightness.

Lightness alone carries the value, so the scales read the same to the colour-blind and in grey print; hue only
adds separation. Colours are mixed in Oklab (Ottosson 2020). Dark pages reverse the sequential scale, so that
zero always has the colour of the background.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Palette = NDArray[np.uint8]

INK, MUTED, PAPER, RULE = "#1d1c2b", "#62606f", "#fbfaf5", "#dedbd0"

_LMS_FROM_RGB = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_LAB_FROM_LMS = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def oklab(colours: ArrayLike) -> NDArray[np.float64]:
    """Convert sRGB bytes [..., 3] to Oklab: lightness and two opponent axes."""
    lab: NDArray[np.float64] = np.cbrt(_linear_rgb(colours) @ _LMS_FROM_RGB.T) @ _LAB_FROM_LMS.T
    return lab


def luminance(colour: str) -> float:
    """Relative luminance of #rrggbb as WCAG defines it, 0 to 1."""
    return float(_linear_rgb(tuple(bytes.fromhex(colour[1:]))) @ [0.2126, 0.7152, 0.0722])


def _linear_rgb(colours: ArrayLike) -> NDArray[np.float64]:
    """Convert sRGB bytes to linear light."""
    encoded = np.asarray(colours, dtype=np.float64) / 255
    return np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)


def _srgb_bytes(lab: NDArray[np.float64]) -> Palette:
    linear = (lab @ np.linalg.inv(_LAB_FROM_LMS).T) ** 3 @ np.linalg.inv(_LMS_FROM_RGB).T
    linear = linear.clip(0, 1)
    encoded = np.where(linear <= 0.0031308, linear * 12.92, 1.055 * linear ** (1 / 2.4) - 0.055)
    return (encoded * 255).round().astype(np.uint8)


def _palette(*anchors: str) -> Palette:
    """Interpolate 256 colours through the anchors (light to dark, or dark to light), even in lightness."""
    lab = oklab([tuple(bytes.fromhex(anchor[1:])) for anchor in anchors])
    order = np.argsort(lab[:, 0])
    lightness = np.linspace(lab[0, 0], lab[-1, 0], 256)
    axes = [np.interp(lightness, lab[order, 0], lab[order, axis]) for axis in (1, 2)]
    return _srgb_bytes(np.stack([lightness, *axes], axis=1))


SEQUENTIAL: Palette = _palette("#f7f5ec", "#d3e6d3", "#7fc4b8", "#2f8fa8", "#2c5793", "#2a2a66", "#17152f")
DIVERGING: Palette = np.concatenate(
    [_palette("#2457a6", "#6c9fd6", "#f7f5ec")[::2], _palette("#f7f5ec", "#e89a4c", "#8f3f05")[1::2]]
)


def full_tone(weights_QK: NDArray[np.floating]) -> float:
    """Weight that gets the darkest colour: the largest, but at least four times the uniform weight.

    So a row of uniform attention looks pale; the legend shows the end of the scale.
    """
    even = 1 / len(weights_QK.T)
    return min(1.0, max(float(weights_QK.max()), 4 * even))


def shade(palette: Palette, fraction: float) -> str:
    """Colour of a value between 0 and 1, as #rrggbb."""
    return "#" + bytes(palette[_index(np.float64(fraction))]).hex()


def indices(fractions: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Palette indices of values between 0 and 1."""
    return _index(fractions).astype(np.uint8)


def _index(fractions: NDArray[np.floating] | np.float64) -> NDArray[np.int64]:
    return np.asarray(np.rint(np.clip(fractions, 0, 1) * 255), dtype=np.int64)


def ink_on(background: str) -> str:
    """Black or white, whichever is more legible on the background; WCAG contrast is then at least 4.5."""
    return "#000000" if luminance(background) > 0.179 else "#ffffff"
