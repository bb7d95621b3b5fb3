"""Embeddings: the mean of an encoder's states, scaled to length 1, as sentence-transformers does with texts.

Two texts, or two pictures, are alike as far as the product of their vectors is near 1. An encoder that was
not trained for that (any BERT, before it is) gives vectors all the same, and they mean less.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from regard.data.batching import sorted_batches
from regard.errors import DataError
from regard.fields.field import Arrays
from regard.fields.text import Text
from regard.files.row import Row, rows_of, several
from regard.interop.encoder import PretrainedEncoder, read_encoder
from regard.layers.pooling import Mean
from regard.runs.prepare import pick_device
from regard.tasks.shared import moved, tensors

READ_AHEAD = 2048
"""Texts that are sorted by length together."""
BATCH_SIZE, BATCH_ROWS = 2048, 128

Vectors = NDArray[np.float32]


class Embedder:
    """An encoder that turns texts into vectors, or whatever else it reads."""

    def __init__(self, encoder: PretrainedEncoder, device: torch.device) -> None:
        self.field, self.name = encoder.field, encoder.name
        self.max_length, self.device = encoder.max_length, device
        self.d_out = encoder.config.d_out
        self._input = encoder.field.alone(encoder.max_length)
        self._model = encoder.build().to(device)
        self._mean = Mean(self.d_out)
        self._ahead = READ_AHEAD if isinstance(self.field, Text) else BATCH_ROWS
        self.n_cut = 0
        """Inputs so far that were longer, so that only a part of them was read."""

    @classmethod
    def load(cls, folder: str | Path, device: str = "auto") -> Self:
        """Load the encoder of a run, of a BERT of Hugging Face, or of what `regard import` made of one."""
        return cls(read_encoder(Path(folder)), pick_device(device))

    def __call__(self, values: Sequence[Any]) -> Vectors:
        """A row for each input, in their order."""
        if isinstance(values, str):
            raise DataError("texts: give a list of texts, not one")
        rows = list(self.stream(values))
        return np.stack(rows) if rows else np.zeros((0, self.d_out), np.float32)

    def stream(self, values: Iterable[Any]) -> Iterator[Vectors]:
        """The vectors one by one, in bounded memory."""
        pending = several(values)
        first, fields = 1, {self.name: self.field}
        while chunk := list(islice(pending, self._ahead)):
            yield from self._vectors(rows_of(chunk, self.name, first=first, fields=fields))
            first += len(chunk)

    def _vectors(self, rows: Sequence[Row]) -> Vectors:
        values = [self.field.parse(row.cells[self.name], row.where) for row in rows]
        coded = [self._input.assemble([part]) for part in self.field.encode(values)]
        self.n_cut += sum(bool(one.notes.get("cut")) for one in coded)
        arrays = [one.arrays for one in coded]
        found = np.empty((len(rows), self.d_out), np.float32)
        sizes = [(self._input.size(one),) for one in arrays]
        for places in sorted_batches(sizes, BATCH_SIZE, BATCH_ROWS):
            found[places] = self._batch([arrays[place] for place in places])
        return found

    @torch.inference_mode()
    def _batch(self, many: Sequence[Arrays]) -> Vectors:
        inputs = moved(tensors(self._input.collate(many)), self.device)
        encoded = self._model(inputs)
        pooled_BD = self._mean(encoded.states_RTD, encoded.lengths_R)
        vectors: Vectors = F.normalize(pooled_BD, dim=-1).cpu().numpy()
        return vectors
