"""The settings that a sweep tries: `model.d_model=64,128`, `train.lr=1e-4..1e-2`, every mixture or some."""

import math
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from regard.errors import RecipeError

MOST_TRIALS = 10_000
_RANGE = re.compile(r"\s*([-+0-9.e]+?)\s*\.\.\s*([-+0-9.e]+)\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Range:
    """All numbers between two; between positive ones their orders of magnitude are drawn evenly."""

    low: float
    high: float
    whole: bool

    def draw(self, rng: random.Random) -> str:
        if self.low > 0:
            value = math.exp(rng.uniform(math.log(self.low), math.log(self.high)))
        else:
            value = rng.uniform(self.low, self.high)
        return str(round(value)) if self.whole else f"{value:.4g}"


@dataclass(frozen=True)
class Axis:
    """A setting and the values to try."""

    key: str
    values: tuple[str, ...] | Range

    def draw(self, rng: random.Random) -> str:
        return self.values.draw(rng) if isinstance(self.values, Range) else rng.choice(self.values)


def axis(text: str) -> Axis:
    """Parse `key=value,value` or `key=low..high`; commas in brackets and quotes separate nothing."""
    key, equals, values = (part.strip() for part in text.partition("="))
    if not equals or not key or not values:
        raise RecipeError(f"{text!r}: write a setting as key=value,value, for example train.lr=1e-3,3e-3")
    if match := _RANGE.fullmatch(values):
        return Axis(key, _range(text, match[1], match[2]))
    parts = tuple(dict.fromkeys(part.strip() for part in _separated(values)))
    if not all(parts):
        raise RecipeError(f"{text!r}: there is nothing between two commas; write key=value,value")
    return Axis(key, parts)


def _range(text: str, first: str, last: str) -> Range:
    try:
        low, high = float(first), float(last)
    except ValueError:
        raise RecipeError(f"{text!r}: a range is between two numbers, such as 1e-4..1e-2") from None
    if not low < high or not math.isfinite(high - low):
        raise RecipeError(f"{text!r}: the range is empty; write the smaller number first")
    return Range(low, high, whole=re.fullmatch(r"[-+]?\d+", first + last.lstrip("+-")) is not None)


def _separated(values: str) -> list[str]:
    parts, depth, quote = [""], 0, ""
    for character in values:
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        else:
            depth += (character in "[{") - (character in "]}")
        if character == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def mixtures(axes: Sequence[Axis], n_random: int | None, seed: int) -> list[tuple[str, ...]]:
    """Every mixture of the values, in order; or so many that are drawn, none of them twice."""
    if n_random is None:
        values = [one.values for one in axes]
        if any(isinstance(one, Range) for one in values):
            raise RecipeError("a range has no end of values; say how many are drawn: --random 20")
        lists = [one for one in values if not isinstance(one, Range)]
        if math.prod(map(len, lists)) > MOST_TRIALS:
            raise RecipeError(
                f"these are {math.prod(map(len, lists)):,} mixtures; draw some of them: --random 20"
            )
        return list(product(*lists))
    rng = random.Random(seed)
    drawn: dict[tuple[str, ...], None] = {}
    for _ in range(20 * n_random):
        drawn[tuple(one.draw(rng) for one in axes)] = None
        if len(drawn) == n_random:
            break
    return list(drawn)
