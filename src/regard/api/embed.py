"""Sentence embeddings: the mean of an encoder's states, scaled to length 1, as sentence-transformers does.

Two texts are alike as far as the product of their vectors is near 1. An encoder that was not trained for that
(any BERT, before it is) gives vectors all the same, and they mean less.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from regard.data.batching import sorted_batches
from regard.errors import DataError
from regard.files.row import rows_of, several
from regard.interop.encoder import PretrainedEncoder, read_encoder
from regard.layers.inputs import tokens
from regard.layers.pooling import Mean
from regard.runs.prepare import pick_device
from regard.tasks.task import padded

READ_AHEAD = 2048
"""Texts that are sorted by length together."""
BATCH_TOKENS, BATCH_ROWS = 2048, 128

Vectors = NDArray[np.float32]


class Embedder:
    """An encoder that turns texts into vectors."""

    def __init__(self, encoder: PretrainedEncoder, device: torch.device) -> None:
        self.tokenizer, self.max_length, self.device = encoder.tokenizer, encoder.max_length, device
        self.d_out = encoder.config.d_out
        self._model = encoder.build().to(device)
        self._mean = Mean(self.d_out)
        self.n_cut = 0
        """Texts so far that were longer, so that only their beginning was read."""

    @classmethod
    def load(cls, folder: str | Path, device: str = "auto") -> Self:
        """Of a run, a BERT of Hugging Face, or what `regard import` made of one."""
        return cls(read_encoder(Path(folder)), pick_device(device))

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """A row for each text, in their order."""
        if isinstance(texts, str):
            raise DataError("texts: give a list of texts, not one")
        rows = list(self.stream(texts))
        return np.stack(rows) if rows else np.zeros((0, self.d_out), np.float32)

    def stream(self, texts: Iterable[str]) -> Iterator[Vectors]:
        """The vectors one by one, in bounded memory."""
        pending = several(texts)
        first = 1
        while chunk := list(islice(pending, READ_AHEAD)):
            yield from self._vectors([row.cells["text"] for row in rows_of(chunk, "text", first=first)])
            first += len(chunk)

    def _vectors(self, texts: Sequence[str]) -> Vectors:
        whole = self.tokenizer.ids(texts)
        self.n_cut += sum(len(ids) > self.max_length for ids in whole)
        framed = [np.array(self.tokenizer.framed(ids[: self.max_length])) for ids in whole]
        found = np.empty((len(texts), self.d_out), np.float32)
        for places in sorted_batches([(len(ids),) for ids in framed], BATCH_TOKENS, BATCH_ROWS):
            found[places] = self._batch([framed[place] for place in places])
        return found

    @torch.inference_mode()
    def _batch(self, framed: Sequence[NDArray[np.int64]]) -> Vectors:
        tokens_BT = padded(framed).to(self.device)
        lengths_B = torch.tensor([len(ids) for ids in framed], device=self.device)
        pooled_BD = self._mean(*self._model(tokens(tokens_BT, lengths_B)))
        vectors: Vectors = F.normalize(pooled_BD, dim=-1).cpu().numpy()
        return vectors
