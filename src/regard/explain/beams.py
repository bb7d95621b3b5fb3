"""A beam search to look at: every beginning it considered, what it cost and what became of it."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from regard.decode.tree import Tree
from regard.explain.assets import BEAM_STRINGS
from regard.explain.document import document, in_notebook, written
from regard.explain.legible import visible
from regard.text.plain import finite
from regard.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Beginning:
    """One node of the tree; `parent` is the number of the one it continues."""

    parent: int
    piece: str
    text: str
    probability: float
    """Of the piece, after what was written before."""
    log_prob: float
    """Of all of it."""
    score: float
    """By which it would rank if it ended here."""
    step: int
    group: int
    fate: str
    """went on, answer, beaten, outranked, left behind, too late (decode/tree.py says what they mean)"""
    rank: int | None
    """Of an answer, from 1."""


@dataclass(frozen=True)
class BeamTree:
    """The search for one text's answer; shows itself in a notebook. Number 0 has written nothing."""

    model: str
    input: str
    settings: str
    beginnings: tuple[Beginning, ...]

    @property
    def answers(self) -> Sequence[Beginning]:
        """Best first."""
        found = {one.rank: one for one in reversed(self.beginnings) if one.rank is not None}
        return [found[rank] for rank in sorted(found)]

    @classmethod
    def of(cls, tree: Tree, tokenizer: Tokenizer, model: str, text: str, settings: str) -> "BeamTree":
        """A recorded search, with the words of its tokens."""
        return cls(
            model,
            text,
            settings,
            tuple(
                Beginning(
                    node.parent,
                    tokenizer.pieces([node.token])[0] if node.token >= 0 else "",
                    tokenizer.decode(tree.ids(number)),
                    math.exp(node.log_prob),
                    node.total,
                    node.score,
                    node.step,
                    node.group,
                    node.fate,
                    node.rank,
                )
                for number, node in enumerate(tree.nodes)
            ),
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "input": self.input,
            "settings": self.settings,
            "beginnings": [asdict(one) for one in self.beginnings],
        }

    def to_html(self, path: str | Path | None = None) -> str:
        """The tree as one file that needs no network; written to `path` if given."""
        shown = [
            asdict(one) | {"piece": visible(one.piece), "text": visible(one.text)} for one in self.beginnings
        ]
        data = {
            "model": visible(self.model),
            "input": visible(self.input),
            "settings": visible(self.settings),
            "nodes": shown,
            "strings": BEAM_STRINGS,
        }
        page = document("beams.html", ["page.css", "beams.css"], ["beams.js"], self.input, finite(data))
        return written(page, path)

    def _repr_html_(self) -> str:
        return in_notebook(self.to_html(), "beam search")
