"""Explanations: labelled attention maps, a measure of how far to trust them, and pictures of both.

They hold only numpy arrays and strings, so they can be saved, compared and drawn without a model or torch.
"""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError, did_you_mean
from regard.explain import page, svg
from regard.explain.document import in_notebook, save
from regard.fields.axis import Axis

Weights = NDArray[np.float32]
Holds = Literal["weight", "share", "probability"]

NOTEBOOK_LIMIT = 1_000_000
"""Characters in the output of a notebook cell; a larger page is replaced by a static picture."""


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """Weights of one attention site: row q attends to column k; rows sum to 1, or to 0 where all is masked.

    Maps may also hold each column's share of the change it causes in q when left out, or its probability.
    """

    site: str
    title: str
    weights_HQK: Weights
    rows: Axis
    columns: Axis
    holds: Holds = "weight"

    def __post_init__(self) -> None:
        shape = self.weights_HQK.shape
        assert shape[1:] == (len(self.rows), len(self.columns)), (
            f"{self.site}: {shape} does not fit its labels"
        )
        assert min(shape) > 0, f"{self.site}: {shape} holds nothing to draw"
        assert np.isfinite(self.weights_HQK).all(), f"{self.site}: weights must be finite"

    @property
    def n_heads(self) -> int:
        return len(self.weights_HQK)

    def head(self, head: int | None) -> Weights:
        """Return weights_QK of one head, counted from 0, or the mean over heads for None."""
        if head is None:
            mean_QK: Weights = self.weights_HQK.mean(axis=0)
            return mean_QK
        if not 0 <= head < self.n_heads:
            raise RegardError(f"{self.site} has no head {head}; its heads are 0 to {self.n_heads - 1}")
        weights_QK: Weights = self.weights_HQK[head]
        return weights_QK


@dataclass(frozen=True)
class Trust:
    """Measured faithfulness of a picture: a sentence, and a score from 0 (chance) to 1 (best possible)."""

    sentence: str
    score: float | None
    in_chinese: str | None = None

    def __post_init__(self) -> None:
        assert self.score is None or abs(self.score) <= 1 + 1e-6, f"a trust score cannot be {self.score}"

    def beside(self, remark: tuple[str, str] | None) -> "Trust":
        """With a sentence more, in English and in Chinese."""
        if remark is None:
            return self
        english, chinese = remark
        return Trust(f"{self.sentence} {english}", self.score, f"{self.in_chinese or self.sentence}{chinese}")


@dataclass(frozen=True, eq=False)
class Explanation:
    """A prediction with all attention maps behind it; displays itself in a notebook."""

    task: str
    model: str
    input: str
    output: str
    maps: tuple[AttentionMap, ...]
    main: str
    trust: Trust | None

    def __post_init__(self) -> None:
        assert self.main in self.sites, f"the main site {self.main!r} is not among {self.sites}"

    @property
    def sites(self) -> Sequence[str]:
        return [attention.site for attention in self.maps]

    def map(self, site: str) -> AttentionMap:
        for attention in self.maps:
            if attention.site == site:
                return attention
        raise RegardError(f"no attention at {site!r}{did_you_mean(site, self.sites)}")

    def strongest(self, k: int) -> list[tuple[str, str, float]]:
        """Return the k largest weights of the main map, mean over heads: (row, column, weight)."""
        attention = self.map(self.main)
        weights_QK = attention.head(None)
        heaviest = np.argsort(-weights_QK, axis=None, kind="stable")[: max(0, k)]
        return [
            (attention.rows.labels[q], attention.columns.labels[key], float(weights_QK[q, key]))
            for q, key in zip(*np.unravel_index(heaviest, weights_QK.shape), strict=True)
        ]

    def to_json(self, *, packed: bool = False) -> dict[str, Any]:
        """Return plain values: weights by head, row and column, or packed as for the page."""
        return page.payload(self, packed=packed)

    def to_html(self, path: str | Path | None = None) -> str:
        """Render the interactive page as one file that needs no network; written to `path` if given."""
        return save(page.render(self), path)

    def to_svg(self, path: str | Path | None = None, site: str | None = None, head: int | None = None) -> str:
        """Draw one map as a static picture; by default the main site and the mean over heads."""
        return save(svg.draw(self, self.map(site or self.main), head), path)

    def _repr_html_(self) -> str:
        frame = in_notebook(self.to_html(), "attention")
        if len(frame) <= NOTEBOOK_LIMIT:
            return frame
        still = b64encode(self.to_svg().encode()).decode()
        return f'<img alt="attention" style="max-width:100%" src="data:image/svg+xml;base64,{still}">'
