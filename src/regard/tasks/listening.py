"""Transcription while somebody speaks: sound comes in blocks of any size, words go out once they are certain.

All that is held of the past has a bounded size: samples that fill no chunk yet, the caches of the encoder,
and the labels that paths of the search still disagree about. So a stream may last for hours, and what is
written is what the same recording gives at once with `streamed`.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn

from regard.decode.frames import Path as Way
from regard.decode.frames import Searched, Settings, searching, settled
from regard.errors import DataError, RecipeError
from regard.fields.audio import LEAST
from regard.fields.mel import as_16_bits
from regard.files.resample import Resampler
from regard.files.sound import HIGHEST_RATE, LOWEST_RATE
from regard.tasks.prediction import Rounded
from regard.tasks.task import evaluating
from regard.tasks.transcript import Transcript, Word

Floats = NDArray[np.float32]
MOST_OPEN = 50
"""States, of 40 ms, after which a label is certain: paths that have another one there are given up."""


class Partial(BaseModel):
    """What a stream has become since the last one: words that will not change, and what may still change."""

    model_config = ConfigDict(frozen=True)

    text: str = Field(description="new since the last one, and certain; all of them make the transcript")
    rest: str = Field("", description="how it goes on as far as is known now; it may change")
    words: tuple[Word, ...] = Field((), description="those of `text`, each with its time")
    seconds: Rounded = Field(description="of sound that has been heard so far")
    is_last: bool = Field(False, description="whether the stream has ended")
    ids: tuple[int, ...] = Field((), exclude=True)
    steps: tuple[float, ...] = Field((), exclude=True)
    frames: tuple[int, ...] = Field((), exclude=True)


class Listener:
    """One stream of sound; `task` is a `Transcribe` that has been fitted."""

    def __init__(self, task: Any, model: nn.Module, rate: int, device: torch.device) -> None:
        refuse_unstreamable(task, model)
        if not LOWEST_RATE <= rate <= HIGHEST_RATE:
            raise DataError(f"rate: {rate:,} samples a second; give {LOWEST_RATE:,} to {HIGHEST_RATE:,}")
        self.task, self.model, self.device, self.rate = task, model, device, rate
        encoder: Any = model.encoder
        self.encoder = encoder
        self.mel = task.audio.mel
        self.resampler = Resampler(rate, task.audio.rate)
        self.samples: NDArray[np.int16] = np.zeros(0, np.int16)
        """Those that fill no chunk yet."""
        self.n_samples = self.n_frames = 0
        self.state = encoder.start(1)
        begin, self.search = searching(model)
        self.found: Searched = begin(1)
        self.settings: Settings = task.settings_of(task.decode, device)
        self.written_until, self.has_written, self.has_ended = 0.0, False, False

    def push(self, samples: Floats) -> Partial | None:
        """What is known after some more samples; None if they fill no chunk."""
        assert not self.has_ended
        self.n_samples += len(samples)
        self._keep(self.resampler.push(samples))
        return self._partial() if self._hear(is_last=False) else None

    def finish(self, before: Partial | None = None) -> Partial:
        """The rest of the transcript, after what the last block made known: the stream has ended."""
        self._keep(self.resampler.finish())
        self._hear(is_last=True)
        self.has_ended = True
        last = self._partial()
        if before is None:
            return last
        return last.model_copy(
            update={"text": before.text + last.text, "words": (*before.words, *last.words)}
        )

    @property
    def seconds(self) -> float:
        return self.n_samples / self.rate

    def _keep(self, samples: Floats) -> None:
        self.samples = np.concatenate([self.samples, as_16_bits(samples)])

    def _hear(self, *, is_last: bool) -> bool:
        """Reads the chunks that are there; whether there was one."""
        has_read = False
        with evaluating(self.model):
            while True:
                needed, there = self.encoder.n_frames(self.state), self.mel.n_frames(len(self.samples))
                ends = is_last and there <= needed
                if not ends and there < needed:
                    return has_read
                n = min(needed, there)
                if ends and self.n_frames + n < LEAST:
                    return has_read  # too short for anything to be heard
                frames_TM = self.mel.frames(
                    self.samples[: (n - 1) * self.mel.hop + self.mel.window if n else 0]
                )
                self.samples = self.samples[n * self.mel.hop :]
                self.n_frames += n
                frames_BTM = torch.from_numpy(frames_TM)[None].to(self.device)
                states_BTD, self.state = self.encoder.step(frames_BTM, self.state, last=ends)
                self.found = searched_in_chunks(
                    self.search, self.model, states_BTD, self.found, self.settings, self.encoder.config.chunk
                )
                has_read = True
                if ends:
                    return has_read

    def _partial(self) -> Partial:
        """What became certain, taken out of the search."""
        task, best = self.task, self.found.rows[0][0]
        n = len(best.labels) if self.has_ended else self._n_certain(best)
        gone = best.first(n)
        if not self.has_ended:
            self.found = self.found.without_first(n)
        words = task.words(gone, self.seconds if self.has_ended else np.inf, self.written_until)
        if words:
            self.written_until = words[-1].end
        text = self._spelt(gone.labels)
        self.has_written = self.has_written or bool(text)
        return Partial(
            text=text,
            rest="" if self.has_ended else self._spelt(best.labels[n:]),
            words=words,
            seconds=self.seconds,
            is_last=self.has_ended,
            ids=gone.labels,
            steps=gone.steps,
            frames=gone.frames,
        )

    def _n_certain(self, best: Way) -> int:
        """Labels before the last certain beginning of a word; all but one where words never end."""
        spellings, certain = self.task.tokenizer.spellings, self.found.certain()
        begins = [at for at, label in enumerate(certain) if at and spellings[label][:1].isspace()]
        if begins:
            return begins[-1]
        is_endless = bool(certain) and best.frames[0] < self.found.n_frames - MOST_OPEN
        return len(certain) - 1 if is_endless else 0

    def _spelt(self, labels: Iterable[int]) -> str:
        text = "".join(self.task.tokenizer.spellings[label] for label in labels)
        text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        return text if self.has_written else text.lstrip()


def searched_in_chunks(
    search: Any, model: Any, states_BTD: Tensor, before: Searched, settings: Settings, chunk: int
) -> Searched:
    """The paths after some more states, where the past is settled after every chunk."""
    found = before
    for begin in range(0, states_BTD.shape[1], chunk):
        part_BTD = states_BTD[:, begin : begin + chunk]
        found = search(model.enter(part_BTD), [part_BTD.shape[1]], found, settings)
        found = settled(found, found.n_frames - MOST_OPEN)
    return found


def refuse_unstreamable(task: Any, model: nn.Module) -> None:
    """RecipeError for a model that cannot hear in chunks."""
    encoder: Any = getattr(model, "encoder", None)
    if encoder is None or encoder.config.chunk is None:
        raise RecipeError(
            "model.encoder.chunk: is none, so the model hears whole recordings alone; set it and train"
        )
    if task.audio.config.normalise == "utterance":
        raise RecipeError(
            'fields.audio.normalise: is "utterance", which needs whole recordings; '
            'to stream, train with "corpus"'
        )
    if not task.audio.rate:
        raise RecipeError("fields.audio: the model reads files of features; a stream is sound")


def is_streamable(task: Any, model: nn.Module) -> bool:
    try:
        refuse_unstreamable(task, model)
    except RecipeError:
        return False
    return True


def transcript_of(partials: Iterable[Partial]) -> Transcript:
    """The transcript that the partial ones of a stream make."""
    parts = list(partials)
    return Transcript(
        text="".join(part.text for part in parts).strip(),
        words=tuple(word for part in parts for word in part.words),
        ids=tuple(one for part in parts for one in part.ids),
        steps=tuple(one for part in parts for one in part.steps),
        frames=tuple(one for part in parts for one in part.frames),
    )


def listen(listener: Listener, blocks: Iterable[Floats]) -> Iterator[Partial]:
    """What is known after every block that fills a chunk, and at the end."""
    for block in blocks:
        if (partial := listener.push(block)) is not None:
            yield partial
    yield listener.finish()
