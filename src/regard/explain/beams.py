"""Pictures of a beam search: every partial hypothesis it considered, its score and its fate."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from regard.decode.tree import Tree
from regard.explain.assets import BEAM_STRINGS
from regard.explain.document import document, in_notebook, save
from regard.explain.legible import visible
from regard.text.sanitize import finite
from regard.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class BeamNode:
    """A hypothesis in the tree; `parent` is the number of the node it continues."""

    parent: int
    token: str
    text: str
    probability: float
    """Probability of the token, given those before it."""
    log_prob: float
    """Log-probability of the whole hypothesis."""
    score: float
    """Score by which it would rank if it ended here."""
    step: int
    group: int
    fate: str
    """One of: went on, answer, beaten, outranked, left behind, too late (explained in decode/tree.py)."""
    rank: int | None
    """Rank of an answer, from 1."""


@dataclass(frozen=True)
class BeamTree:
    """Beam search for one text's answer; displays itself in a notebook. Node 0 is the empty hypothesis."""

    model: str
    input: str
    settings: str
    nodes: tuple[BeamNode, ...]

    @property
    def answers(self) -> Sequence[BeamNode]:
        """Answers, best first."""
        by_rank = {node.rank: node for node in reversed(self.nodes) if node.rank is not None}
        return [by_rank[rank] for rank in sorted(by_rank)]

    @classmethod
    def of(cls, tree: Tree, tokenizer: Tokenizer, model: str, text: str, settings: str) -> "BeamTree":
        """Build the tree from a recorded search and the tokenizer of its outputs."""
        return cls(
            model,
            text,
            settings,
            tuple(
                BeamNode(
                    node.parent,
                    tokenizer.tokens([node.token])[0] if node.token >= 0 else "",
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
            "nodes": [asdict(node) for node in self.nodes],
        }

    def to_html(self, path: str | Path | None = None) -> str:
        """Render the tree as one HTML file that needs no network; written to `path` if given."""
        nodes = [
            asdict(node) | {"token": visible(node.token), "text": visible(node.text)} for node in self.nodes
        ]
        data = {
            "model": visible(self.model),
            "input": visible(self.input),
            "settings": visible(self.settings),
            "nodes": nodes,
            "strings": BEAM_STRINGS,
        }
        page = document("beams.html", ["page.css", "beams.css"], ["beams.js"], self.input, finite(data))
        return save(page, path)

    def _repr_html_(self) -> str:
        return in_notebook(self.to_html(), "beam search")
