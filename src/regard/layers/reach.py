"""How far a Transformer's self-attention sees: the setting `reach` of every model that is made of blocks."""

from typing import Annotated, Literal

from pydantic import Field

from regard.attention.mask import Chunk, Window
from regard.attention.reach import Blocks, FeatureMap, Landmarks, Linear, Reach
from regard.config import Config

ADDED = ("relative", "alibi")
"""Positions that are added to scores, one for each pair."""


class _Settings(Config):
    def build(self, *, causal: bool) -> Reach:
        raise NotImplementedError

    @property
    def width(self) -> int | None:
        """Positions that a query sees before itself at most, if there is such a number."""
        return None

    def fault(self, position: str) -> str | None:
        """Why attention with these positions cannot have this reach."""
        return None


class WindowReach(_Settings):
    """Every query sees its neighbours (Longformer's window, dilated or not, with global positions)."""

    kind: Literal["window"] = "window"
    left: int = Field(256, ge=1, description="positions before a query that it sees")
    right: int | None = Field(
        None, ge=0, description="positions after it that it sees, in an encoder; as many as left unless given"
    )
    dilation: int = Field(1, ge=1, description="every how many positions: 2 sees twice as far, with gaps")
    n_global: int = Field(0, ge=0, description="first positions that see everything and that all see")

    def build(self, *, causal: bool) -> Reach:
        right = 0 if causal else self.left if self.right is None else self.right
        return Blocks(Window(self.left, right, self.dilation, self.n_global))

    @property
    def width(self) -> int:
        return self.left * self.dilation

    def __str__(self) -> str:
        return f"windows of {self.left}"


class ChunkReach(_Settings):
    """Every query sees its own chunk and whole chunks beside it, which overlap with those of the next."""

    kind: Literal["chunks"] = "chunks"
    size: int = Field(128, ge=1, description="positions of a chunk")
    left_chunks: int = Field(1, ge=0, description="chunks before its own that a query sees")
    right_chunks: int = Field(0, ge=0, description="chunks after its own, in an encoder")

    def build(self, *, causal: bool) -> Reach:
        return Blocks(Chunk(self.size, self.left_chunks, 0 if causal else self.right_chunks))

    @property
    def width(self) -> int:
        return self.size * (self.left_chunks + 1) - 1

    def __str__(self) -> str:
        return f"chunks of {self.size}"


class SegmentReach(_Settings):
    """Chunks that remember the ones before them, but learn nothing through that memory (Transformer-XL)."""

    kind: Literal["segments"] = "segments"
    size: int = Field(128, ge=1, description="positions of a segment")
    memory: int = Field(1, ge=1, description="segments before its own that a query sees")

    def build(self, *, causal: bool) -> Reach:
        return Blocks(Chunk(self.size, self.memory), cuts_gradients=True)

    @property
    def width(self) -> int:
        return self.size * (self.memory + 1) - 1

    def fault(self, position: str) -> str | None:
        if position in ("learned", "sinusoidal"):
            return "a memory of segments needs positions that know distances: rotary, relative, alibi or none"
        return None

    def __str__(self) -> str:
        return f"segments of {self.size}"


class LinearReach(_Settings):
    """Every query sees everything, through sums over a feature map in the place of a softmax."""

    kind: Literal["linear"] = "linear"
    feature: FeatureMap = Field(
        "elu", description="of queries and keys: elu (the paper's) or softmax (sharper weights)"
    )
    size: int = Field(64, ge=1, description="positions that are computed at once where only the past is seen")

    def build(self, *, causal: bool) -> Reach:
        return Linear(self.feature, self.size)

    def fault(self, position: str) -> str | None:
        if position in ADDED:
            return (
                "linear attention has no score for each pair to which positions could be added: "
                "sinusoidal, learned, rotary or none"
            )
        return None

    def __str__(self) -> str:
        return "linear attention"


class LandmarkReach(_Settings):
    """Every query sees its own chunk, and of those before it the ones whose mean key fits it best."""

    kind: Literal["landmarks"] = "landmarks"
    size: int = Field(64, ge=1, description="positions of a chunk, which have one landmark")
    n_chunks: int = Field(4, ge=1, description="chunks that a query picks beside its own")

    def build(self, *, causal: bool) -> Reach:
        return Landmarks(self.size, self.n_chunks)

    def fault(self, position: str) -> str | None:
        if position in ADDED:
            return (
                "landmarks know no distances, so nothing can be added to scores: "
                "sinusoidal, learned, rotary or none"
            )
        return None

    def __str__(self) -> str:
        return f"landmarks of {self.size}"


REACHES = {
    "window": WindowReach,
    "chunks": ChunkReach,
    "segments": SegmentReach,
    "linear": LinearReach,
    "landmarks": LandmarkReach,
}
ReachConfig = Annotated[
    WindowReach | ChunkReach | SegmentReach | LinearReach | LandmarkReach, Field(discriminator="kind")
]
