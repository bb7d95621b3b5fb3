"""transcribe: what is said in a recording, in words with their times.

A transducer or CTC hears frames and writes labels: characters, learnt tokens or words. Where a word was is
learnt from validation data that say so: how long before and after the moment a label is written its word
begins and ends.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import BaseModel, BeforeValidator, Field, model_validator
from torch import Tensor, nn

from regard.baselines import Baseline
from regard.baselines.transcripts import CommonestTranscript, Silence
from regard.config import Config
from regard.data.example import Example
from regard.data.sample import sampled
from regard.decode.config import Phrase, listed, settings_changed
from regard.decode.frames import Path as Way
from regard.decode.frames import Searched, Settings, searching
from regard.decode.hot_words import HotWords
from regard.errors import DataError, RecipeError
from regard.fields.audio import Audio, AudioSettings
from regard.fields.axis import Axis
from regard.fields.field import Augmented, Coded
from regard.fields.field import Field as AnyField
from regard.fields.text import Text
from regard.fields.word_borders import WordBorders
from regard.fields.word_times import WordTimes
from regard.files.row import Row
from regard.layers.inputs import Inputs
from regard.metrics.metric import Metric
from regard.models.encoders.speech import STATE_MS
from regard.models.widths import Widths
from regard.tasks.listening import Listener, Partial, is_streamable, listen, searched_in_chunks, transcript_of
from regard.tasks.shared import moved, tensors
from regard.tasks.speech_tally import SpeechTally
from regard.tasks.task import Axes, Fields, Loss, Part, Picture, Task, TaskSettings, layer_of
from regard.tasks.task_data import TaskData
from regard.tasks.transcribe_data import TRANSCRIBE
from regard.tasks.transcript import Transcript, Word, borders_of, spelling_of, to_words
from regard.text.tokenizer import EOS, PAD, Tokenizer, TokenizerConfig
from regard.text.tokenizer import UNK as UNKNOWN

QUICK_SEARCH = {"beam": 1, "n_best": 1}
"""Settings of the search in validation while a model learns."""
CALIBRATED_ON = 200
"""Validation recordings that the borders of words are learnt from."""


class AudioFields(Config):
    audio: AudioSettings = AudioSettings()


class HearConfig(Config):
    """Settings of the search; the same names in recipe, command line and Python."""

    beam: int = Field(4, ge=1, le=64, description="transcripts kept at each frame; 1 is greedy")
    n_best: int = Field(1, ge=1, le=64, description="transcripts per recording; at most `beam`")
    max_symbols: int = Field(5, ge=1, le=100, description="labels written at one frame at most")
    streamed: bool = Field(False, description="hear in chunks, as when it is spoken; false: all at once")
    hot_words: Annotated[tuple[Phrase, ...], BeforeValidator(listed)] = Field(
        (), max_length=1000, description="words and phrases that are written more easily"
    )
    hot_bonus: float = Field(1.5, ge=0, le=100, description="log-probability that each of their labels gets")

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.n_best > self.beam:
            raise ValueError(f"n_best ({self.n_best}) cannot exceed beam ({self.beam})")
        return self

    def changed(self, **changes: Any) -> Self:
        """This search with other settings, checked."""
        return settings_changed(self, changes)


class TranscribeConfig(TaskSettings):
    """A recording in, what is said in it out."""

    kind: Literal["transcribe"] = "transcribe"
    roles: ClassVar[tuple[str, ...]] = ("audio", "text", "words")
    inputs: ClassVar[tuple[str, ...]] = ("audio",)
    fields: AudioFields = Field(AudioFields(), description="what recordings are: a table `[fields.audio]`")
    tokenizer: TokenizerConfig = TokenizerConfig(kind="char", lowercase=True)
    decode: HearConfig = HearConfig()

    @property
    def audio(self) -> Audio:
        """The unfitted field."""
        return Audio(self.fields.audio)

    @property
    def unfitted(self) -> Fields:
        return {"audio": self.audio, "text": Text(self.tokenizer), "words": WordTimes()}

    @property
    def asked(self) -> Mapping[str, AnyField]:
        return {"audio": self.audio}

    @property
    def max_length(self) -> int:
        """States of 40 ms of the longest recording."""
        return self.audio.most

    def longest(self, model: Any) -> int:
        return 0


@dataclass(frozen=True)
class SpeechBatch:
    inputs: Inputs
    labels_BU: Tensor
    n_labels_B: Tensor
    examples: tuple[Example, ...]
    frames_BU: Tensor | None = None
    """Of a replay: the state at which each label was written."""

    @property
    def counts(self) -> dict[str, int]:
        return {"labels": int(self.n_labels_B.sum())}

    def to(self, device: torch.device) -> Self:
        return replace(
            self,
            inputs=moved(self.inputs, device),
            labels_BU=self.labels_BU.to(device),
            n_labels_B=self.n_labels_B.to(device),
            frames_BU=None if self.frames_BU is None else self.frames_BU.to(device),
        )


class Transcribe(Task):
    kind: ClassVar[str] = "transcribe"
    data: ClassVar[TaskData] = TRANSCRIBE
    says: ClassVar[str] = "Recordings in, what is said in them out, word by word with times."
    settings: ClassVar[type[Any]] = TranscribeConfig
    prediction: ClassVar[type[BaseModel]] = Transcript
    models: ClassVar[tuple[str, ...]] = ("transducer", "ctc")
    called: ClassVar[str] = "a transcriber"
    searches: ClassVar[bool] = True
    best: ClassVar[str] = "n_best"
    cut: ClassVar[str] = "only the beginning was heard"
    forms: ClassVar[tuple[str, ...]] = ("srt", "vtt", "ctm")
    single_forms: ClassVar[tuple[str, ...]] = ("srt", "vtt")
    listens: ClassVar[bool] = True
    baselines: ClassVar[tuple[type[Baseline], ...]] = (CommonestTranscript, Silence)
    metric = Metric("wer", higher=False)

    def __init__(
        self, config: TranscribeConfig, audio: Audio, text: Text, borders: WordBorders | None = None
    ) -> None:
        """Takes the fitted fields, and where words begin and end around their labels."""
        self.config, self.audio, self.text = config, audio, text
        self.borders = borders or WordBorders()
        self.widths = Widths(audio.width, text.width)
        self.augmented = audio if isinstance(audio, Augmented) and audio.draws else None

    @property
    def decode(self) -> HearConfig:
        return self.config.decode

    @property
    def given(self) -> dict[str, Audio]:
        """The fitted field of its input."""
        return {"audio": self.audio}

    @property
    def tokenizer(self) -> Tokenizer:
        return self.text.tokenizer

    @property
    def tokenizers(self) -> dict[str, Tokenizer]:
        return {"text": self.tokenizer}

    @classmethod
    def fit(cls, config: TranscribeConfig, rows: Iterable[Row], tokenizer: Tokenizer | None = None) -> Self:
        audio, text = config.audio, Text(config.tokenizer)
        pairs = sampled((audio.parse(row.cells["audio"], row.where), row.cells["text"]) for row in rows)
        if not pairs:
            raise DataError("the training data hold no recordings")
        sounds, texts = zip(*pairs, strict=True)
        return cls(config, audio.fit(sounds), text.fit(texts, tokenizer))

    def save(self, folder: Path) -> None:
        self.audio.save(folder)
        self.text.save(folder)
        self.borders.save(folder)

    @classmethod
    def load(cls, config: TranscribeConfig, folder: Path) -> Self:
        text = Text(config.tokenizer).load(folder)
        return cls(config, config.audio.load(folder), text, WordBorders.load(folder))

    def with_settings(self, **changes: Any) -> Self:
        decode = self.decode.changed(**changes)
        config = self.config.model_copy(update={"decode": decode})
        return type(self)(config, self.audio, self.text, self.borders)

    def asked(self, values: Iterable[Any], first: int = 1) -> list[Row]:
        return super().asked(values, first)

    def encode(self, rows: Sequence[Row]) -> list[Example]:
        """Arrays of an example: those of the recording, and the `labels` of its transcript."""
        sounds = self.audio.encode([self.audio.parse(row.cells["audio"], row.where) for row in rows])
        ids = self.tokenizer.ids([row.cells.get("text", "") for row in rows])
        return [
            Example(row, {**sound.arrays, "labels": np.array(labels, np.int64)}, sound.notes)
            for row, sound, labels in zip(rows, sounds, ids, strict=True)
        ]

    def unusable(self, example: Example) -> str | None:
        """Why nothing can be learnt: nothing is heard or said, or only its beginning would be heard."""
        if not self.is_answerable(example):
            return "empty"
        if not len(example.arrays["labels"]):
            return "without a transcript"
        return "too long" if example.notes.get("cut") else None

    def is_answerable(self, example: Example) -> bool:
        return not self.audio.is_empty(example.arrays)

    def size(self, example: Example) -> tuple[int, int]:
        return self.audio.size(example.arrays), max(1, len(example.arrays["labels"]))

    @property
    def draws(self) -> bool:  # type: ignore[override]
        return self.augmented is not None

    def draw(self, example: Example, rng: np.random.Generator, others: Sequence[Example]) -> Example:
        assert self.augmented is not None
        return replace(example, arrays=self.augmented.draw(example.arrays, rng))

    def collate(self, examples: Sequence[Example]) -> SpeechBatch:
        labels = [np.asarray(example.arrays["labels"], np.int64) for example in examples]
        n_labels_B = np.array([len(one) for one in labels], np.int64)
        labels_BU = np.full((len(labels), max(1, int(n_labels_B.max()))), PAD, np.int64)
        for row_U, one in zip(labels_BU, labels, strict=True):
            row_U[: len(one)] = one
        inputs = tensors(self.audio.collate([example.arrays for example in examples]))
        if self.decode.streamed:
            inputs["streamed"] = torch.ones(())
        return SpeechBatch(inputs, torch.from_numpy(labels_BU), torch.from_numpy(n_labels_B), tuple(examples))

    def loss(self, model: nn.Module, batch: SpeechBatch) -> Loss:
        """What is shown is the loss of the model's kind, without what is learnt beside it."""
        losses = model(batch.inputs, batch.labels_BU, batch.n_labels_B)
        objective = torch.stack([weight * loss_B.sum() for loss_B, weight in losses.values()]).sum()
        main_B, _ = next(iter(losses.values()))
        return Loss({"labels": Part(objective)}, shown={"labels": main_B.sum().detach()})

    # the search

    @property
    def never(self) -> list[int]:
        """Labels that are never written."""
        return [UNKNOWN, EOS - 1, EOS]

    def settings_of(self, decode: HearConfig, device: torch.device) -> Settings:
        never = torch.tensor(self.never, device=device)
        hot = None
        if decode.hot_words:
            spelt = [self.tokenizer.encode(phrase).ids for phrase in decode.hot_words]
            for phrase, ids in zip(decode.hot_words, spelt, strict=True):
                if UNKNOWN in ids or not ids:
                    raise RecipeError(
                        f"decode.hot_words: {phrase!r} has what the vocabulary does not know; leave it out"
                    )
            hot = HotWords(spelt, decode.hot_bonus)
        return Settings(decode.beam, decode.max_symbols, never, hot)

    def searched(self, model: Any, batch: SpeechBatch, decode: HearConfig) -> Searched:
        encoded = model.encoder(batch.inputs)
        begin, search = searching(model)
        settings = self.settings_of(decode, encoded.states_RTD.device)
        n_frames = encoded.lengths_R.tolist()
        if decode.streamed and decode.beam > 1 and (chunk := model.encoder.config.chunk):
            alone = (
                searched_in_chunks(search, model, states_TD[None, :n], begin(1), settings, chunk)
                for states_TD, n in zip(encoded.states_RTD, n_frames, strict=True)
            )
            return Searched(tuple(one.rows[0] for one in alone))
        return search(model.enter(encoded.states_RTD), n_frames, begin(len(n_frames)), settings)

    def predict(self, model: nn.Module, batch: SpeechBatch) -> Iterator[tuple[int, Transcript]]:
        heard = [place for place, example in enumerate(batch.examples) if self.is_answerable(example)]
        yield from (
            (place, Transcript(text="")) for place in range(len(batch.examples)) if place not in heard
        )
        if not heard:
            return
        if len(heard) < len(batch.examples):
            batch = self.collate([batch.examples[place] for place in heard]).to(batch.labels_BU.device)
        with torch.inference_mode():
            found = self.searched(model, batch, self.decode)
        for place, example, paths in zip(heard, batch.examples, found.rows, strict=True):
            if example.notes.get("cut") and is_streamable(self, model):
                yield place, self.heard_through(model, example.row, batch.labels_BU.device)
            else:
                yield place, self.transcript(paths, example.notes)

    def listener(self, model: nn.Module, rate: int, device: torch.device) -> Listener:
        return Listener(self, model, rate, device)

    def of_partials(self, partials: Iterable[Partial]) -> Transcript:
        """The transcript that the partial ones of a stream make."""
        return transcript_of(partials)

    def heard_through(self, model: nn.Module, row: Row, device: torch.device) -> Transcript:
        """The transcript of a recording longer than `seconds`, heard as a stream: its sound is never held."""
        with self.audio.opened(self.audio.parse(row.cells["audio"], row.where)) as opened:
            listener = self.listener(model, opened.head.rate, device)
            return transcript_of(listen(listener, opened.blocks()))

    def transcript(self, paths: Sequence[Way], notes: Mapping[str, Any]) -> Transcript:
        """The prediction of the paths of a search, the best first."""
        best, *rest = paths[: self.decode.n_best]
        cut, seconds = bool(notes.get("cut")), float(notes.get("seconds", np.inf))
        others = tuple(self._written(other, seconds) for other in rest)
        return self._written(best, seconds, others=others, input_cut=cut)

    def _written(self, path: Way, seconds: float, **others: Any) -> Transcript:
        return Transcript(
            text=spelling_of(self.tokenizer, path.labels),
            score=path.log_prob,
            words=self.words(path, seconds),
            ids=path.labels,
            steps=path.steps,
            frames=path.frames,
            **others,
        )

    def words(self, path: Way, seconds: float = np.inf, after: float = 0.0) -> tuple[Word, ...]:
        """Words in time, none of which overlap, all of them after a moment."""
        spelt = [self.tokenizer.spellings[label] for label in path.labels]
        words: list[Word] = []
        for places in to_words(spelt):
            written = spelling_of(self.tokenizer, [path.labels[place] for place in places])
            first, last = (path.frames[place] * STATE_MS / 1000 for place in (places[0], places[-1]))
            start, end = self.borders.around(written, first, last)
            start = max(start, words[-1].end if words else after)
            probability = float(np.exp(sum(path.steps[place] for place in places)))
            end = min(max(end, start), seconds)
            words.append(
                Word(word=written, start=min(start, end), end=end, probability=min(1.0, probability))
            )
        return tuple(words)

    def measure(self, model: nn.Module, batch: SpeechBatch, *, thorough: bool) -> SpeechTally:
        quick = self if thorough else self.with_settings(**QUICK_SEARCH)
        answers: dict[int, Transcript] = dict(quick.predict(model, batch))
        found = [answers[place] for place in range(len(batch.examples))]
        words = [[(word.start, word.end) for word in answer.words] for answer in found]
        return SpeechTally.of([answer.text for answer in found], batch.examples, self.reference, words)

    def reference(self, example: Example) -> str:
        """The right transcript, as it can be written."""
        text: str = example.row.cells["text"]
        return text

    def tally(self, examples: Sequence[Example], answers: Sequence[Any]) -> SpeechTally:
        """The tally of texts."""
        return SpeechTally.of([*answers], examples, self.reference)

    def samples(
        self, model: nn.Module, examples: Sequence[Example], device: torch.device
    ) -> list[dict[str, str]]:
        answers = dict(self.predict(model, self.collate(examples).to(device)))
        return [
            {"input": example.row.where, "expected": self.reference(example), "answer": answers[place].text}
            for place, example in enumerate(examples)
        ]

    def calibrated(self, model: nn.Module, valid: Sequence[Any], device: torch.device) -> Self:
        """With borders of words as validation data have them, where they say when words are spoken."""
        timed = [example for example in valid if example.row.cells.get("words")][:CALIBRATED_ON]
        pairs: list[tuple[list[Any], Sequence[Word]]] = []
        plain = type(self)(self.config, self.audio, self.text)
        for begin in range(0, len(timed), 16):
            part = timed[begin : begin + 16]
            answers = dict(plain.predict(model, self.collate(part).to(device)))
            pairs += [(one.row.cells["words"], answers[place].words) for place, one in enumerate(part)]
        return type(self)(self.config, self.audio, self.text, borders_of(pairs)) if pairs else self

    # explanation

    def force(self, example: Example, prediction: Transcript) -> SpeechBatch:
        labels = np.array(prediction.ids, np.int64)
        batch = self.collate([replace(example, arrays={**example.arrays, "labels": labels})])
        return replace(batch, frames_BU=torch.tensor([prediction.frames or (0,)]))

    def replay(self, model: Any, batch: SpeechBatch) -> Tensor:
        """The log-probability of each label at the moment when it was written."""
        assert batch.frames_BU is not None
        at_BU: Tensor = model.log_probs_at(batch.inputs, batch.labels_BU, batch.frames_BU)
        return at_BU[:, : int(batch.n_labels_B[0])]

    def leave_out(self, batch: SpeechBatch, axis: Axis, units: Sequence[int]) -> SpeechBatch:
        n, device = len(units), batch.labels_BU.device
        arrays = {name: tensor.cpu().numpy() for name, tensor in batch.inputs.items() if name != "streamed"}
        left = moved(tensors(self.audio.without(arrays, axis, units, "blank")), device)
        streamed = {name: batch.inputs[name] for name in batch.inputs.keys() & {"streamed"}}
        assert batch.frames_BU is not None
        return SpeechBatch(
            left | streamed,
            batch.labels_BU.expand(n, -1),
            batch.n_labels_B.expand(n),
            batch.examples * n,
            batch.frames_BU.expand(n, -1),
        )

    def axes(self, example: Example, prediction: Transcript) -> Axes:
        read = self.audio.axis([], Coded(example.arrays, example.notes))
        labels = tuple(self.tokenizer.tokens(prediction.ids))
        if not labels:
            raise DataError("there is nothing to explain: nothing was heard in the recording")
        return Axes(
            {"input": read, "text": Axis("text", labels)}, left_out="input", answer="text", site=_site
        )

    def pictures(self, model: Any, batch: SpeechBatch) -> list[Picture]:
        """The lattice: the probability that a label is written at a moment, over all ways to write them."""
        taken_UT: Tensor = model.occupied(batch.inputs, batch.labels_BU, batch.n_labels_B)[0]
        n = int(batch.n_labels_B[0])
        return [Picture("lattice", "lattice: label → moment", taken_UT[:n], "text", "input", rated=True)]


def _site(site: str) -> tuple[str, str, str]:
    return f"encoder layer {layer_of(site)}: {{unit}} → {{unit}}", "input", "input"
