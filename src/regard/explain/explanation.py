"""What `explain` returns: labelled attention maps, how far they may be trusted, and the pictures of both.

Plain numpy and strings: an explanation can be kept, compared and drawn where no model and no torch is.
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
from regard.explain.document import in_notebook, written
from regard.fields.axis import Axis

Weights = NDArray[np.float32]
Holds = Literal["weight", "share", "probability"]

NOTEBOOK_LIMIT = 1_000_000
"""Characters one notebook cell may carry; a larger page is shown as its still picture."""


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """The weights of one attention site: row q looks at column k; rows sum to 1, or 0 where all is masked.

    Or what stands in for them: a measured share of what leaving out k changed in q, or the probability of k.
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
        """weights_QK of one head, counted from 0; None means the mean over heads."""
        if head is None:
            mean_QK: Weights = self.weights_HQK.mean(axis=0)
            return mean_QK
        if not 0 <= head < self.n_heads:
            raise RegardError(f"{self.site} has no head {head}; its heads are 0 to {self.n_heads - 1}")
        weights_QK: Weights = self.weights_HQK[head]
        return weights_QK


@dataclass(frozen=True)
class Trust:
    """How far to trust the picture, measured: a sentence, and a score from 0 (chance) to 1 (the best)."""

    sentence: str
    score: float | None
    in_chinese: str | None = None

    def __post_init__(self) -> None:
        assert self.score is None or abs(self.score) <= 1 + 1e-6, f"a trust score cannot be {self.score}"


@dataclass(frozen=True, eq=False)
class Explanation:
    """One prediction with every attention map that took part in it; shows itself in a notebook."""

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
        """The k heaviest links (row label, column label, weight) of the main map, mean over heads."""
        attention = self.map(self.main)
        weights_QK = attention.head(None)
        heaviest = np.argsort(-weights_QK, axis=None, kind="stable")[: max(0, k)]
        return [
            (attention.rows.labels[q], attention.columns.labels[key], float(weights_QK[q, key]))
            for q, key in zip(*np.unravel_index(heaviest, weights_QK.shape), strict=True)
        ]

    def to_json(self, *, packed: bool = False) -> dict[str, Any]:
        """Everything as plain values: weights by head, row and column, or packed as for the page."""
        return page.payload(self, packed=packed)

    def to_html(self, path: str | Path | None = None) -> str:
        """The interactive page as one file that needs no network; written to `path` if given."""
        return written(page.render(self), path)

    def to_svg(self, path: str | Path | None = None, site: str | None = None, head: int | None = None) -> str:
        """One map as a still picture: the main site unless told, the mean over heads unless told."""
        return written(svg.draw(self, self.map(site or self.main), head), path)

    def _repr_html_(self) -> str:
        frame = in_notebook(self.to_html(), "attention")
        if len(frame) <= NOTEBOOK_LIMIT:
            return frame
        still = b64encode(self.to_svg().encode()).decode()
        return f'<img alt="attention" style="max-width:100%" src="data:image/svg+xml;base64,{still}">'
