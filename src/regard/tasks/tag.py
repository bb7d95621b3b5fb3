"""tag: a tag for every word. Where tags mark spans (BIO, BIOES, BMES), the spans are the answer."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import BaseModel, Field
from torch import Tensor, nn

from regard.baselines import Baseline
from regard.baselines.tags import Dictionary, FeatureCRF
from regard.data.example import Example
from regard.data.sample import sampled
from regard.decode import in_order
from regard.errors import DataError, RecipeError, did_you_mean, shown
from regard.fields.axis import Axis
from regard.fields.field import Coded
from regard.fields.label import refuse_texts
from regard.fields.padding import NOWHERE, padded
from regard.fields.tags import CUTS, Illegal, Sentence, Split, Tags, Words, words_of
from regard.files.read import word_where
from regard.files.row import Row, text_of
from regard.layers.inputs import NO_TAG, Inputs
from regard.metrics.metric import Metric
from regard.metrics.resample import Floats, Scores, unweighted
from regard.metrics.spans import by_kind, span_counts, span_scores
from regard.metrics.tally import Columns
from regard.models.tagger import Tagger
from regard.models.widths import Widths
from regard.tasks.prediction import Prediction, Rounded
from regard.tasks.shared import moved, tensors
from regard.tasks.tag_data import TAG
from regard.tasks.task import Axes, Fields, Loss, Part, Picture, Task, TaskSettings, word_to_word
from regard.tasks.task_data import TaskData
from regard.text import tags
from regard.text.tokenizer import Tokenizer, TokenizerConfig

MOST_TAGS = 1000


class TagConfig(TaskSettings):
    """A text in, a tag for every word out."""

    kind: Literal["tag"] = "tag"
    roles: ClassVar[tuple[str, ...]] = ("text", "tags")
    inputs: ClassVar[tuple[str, ...]] = ("text",)
    tokenizer: TokenizerConfig = TokenizerConfig()
    split: Split = Field(
        "auto",
        description="how a text without tags becomes words: characters; words, with every sign by itself but "
        "apostrophes and hyphens inside them (signs); at spaces only; auto: characters if all words of the "
        "training data are, else signs",
    )
    illegal: Illegal = Field(
        "refuse",
        description="sentences whose tags their scheme forbids; skip leaves them out of training; mend "
        "begins a span where its first word stands, as conlleval reads it: IOB1 becomes BIO",
    )
    max_length: int = Field(256, ge=4, description="tokens; longer sentences are read in overlapping windows")

    @property
    def given(self) -> dict[str, Any]:
        """The unfitted field that is read, by role."""
        return {"text": Words(self.tokenizer, split=self.split)}

    @property
    def tags(self) -> Tags:
        return Tags(illegal=self.illegal)

    @property
    def unfitted(self) -> Fields:
        return self.given | {"tags": self.tags}


@dataclass(frozen=True)
class TagBatch:
    inputs: Inputs
    tags_BN: Tensor
    """NO_TAG where there is no word, and where tags are unknown or illegal and so have no loss."""
    examples: tuple[Example, ...]

    @property
    def keep_BN(self) -> Tensor:
        return self.inputs["places"] != NOWHERE

    @property
    def counts(self) -> dict[str, int]:
        return {"words": int((self.tags_BN != NO_TAG).sum())}

    def to(self, device: torch.device) -> Self:
        return replace(self, inputs=moved(self.inputs, device), tags_BN=self.tags_BN.to(device))


class Span(BaseModel):
    text: str
    kind: str
    start: int = Field(description="character of the text it begins with, counted from 0")
    end: int = Field(description="character before which it ends")


class Tagged(Prediction):
    """`text` is the words with their tags; `input_cut` tells that of a word only the beginning was read."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    probabilities: tuple[Rounded, ...] = Field(description="of each word's tag, whatever the others are")
    spans: tuple[Span, ...] | None = Field(
        None, description="what the tags mark; absent where they mark nothing"
    )
    places: tuple[tuple[int, int], ...] = Field(exclude=True)
    """The characters of each word."""

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in super().to_json().items() if value is not None}


@dataclass(frozen=True)
class TagTally(Columns):
    marks_spans: bool
    predicted: list[tuple[str, ...]] = field(default_factory=list)
    gold: list[tuple[str, ...]] = field(default_factory=list)

    @property
    def truth(self) -> list[tuple[str, ...]]:
        return self.gold

    @cached_property
    def _words_N2(self) -> Floats:
        """Words with the right tag, and words, of every sentence."""
        pairs = zip(self.predicted, self.gold, strict=True)
        right = [sum(map(str.__eq__, tags, wanted)) for tags, wanted in pairs]
        return np.array([right, list(map(len, self.gold))], np.float64).T

    @cached_property
    def _spans_N3(self) -> Floats:
        return span_counts(self.predicted, self.gold)

    def weighed(self, weights_RN: Floats) -> Scores:
        right_R, words_R = (weights_RN @ self._words_N2).T
        scores = span_scores(weights_RN @ self._spans_N3) if self.marks_spans else {}
        scores |= {"accuracy": right_R / np.maximum(words_R, 1)}
        return {name: 100 * value for name, value in scores.items()}

    def metrics(self) -> dict[str, float]:
        return unweighted(self)

    def signatures(self) -> dict[str, str]:
        return {"f1": "spans right in place and kind, over all sentences"} if self.marks_spans else {}

    def by_kind(self) -> dict[str, dict[str, float]]:
        """Precision, recall and F1 of every kind of span, or of every tag where tags mark none."""
        kinds = by_kind(self.predicted, self.gold, marks_spans=self.marks_spans)
        return {
            kind: {name: value if name == "n" else 100 * value for name, value in scores.items()}
            for kind, scores in kinds.items()
        }


class Tag(Task):
    kind: ClassVar[str] = "tag"
    data: ClassVar[TaskData] = TAG
    says: ClassVar[str] = "Texts in, words with their tags and the spans these mark out."
    prediction: ClassVar[type[BaseModel]] = Tagged
    cut: ClassVar[str] = "of a word only the beginning was read"
    settings: ClassVar[type[Any]] = TagConfig
    models: ClassVar[tuple[str, ...]] = ("tagger", "hmm")
    called: ClassVar[str] = "a tagger"
    finds_entities: ClassVar[bool] = True
    baselines: ClassVar[tuple[type[Baseline], ...]] = (Dictionary, FeatureCRF)
    config: TagConfig

    def __init__(self, config: TagConfig, words: Words, tags: Tags) -> None:
        """Takes the fitted fields."""
        self.config, self.words, self.tags = config, words, tags
        self.given = {"text": words}
        self.input = words.alone(config.max_length)
        self.widths = Widths(self.input.width, tags.width)

    @property
    def metric(self) -> Metric:
        return Metric("accuracy" if self.tags.scheme is None else "f1")

    @property
    def marks_spans(self) -> bool:
        return self.tags.scheme is not None

    @property
    def labels(self) -> tuple[str, ...]:
        return self.tags.names

    @property
    def tokenizer(self) -> Tokenizer:
        return self.words.tokenizer

    @property
    def tokenizers(self) -> dict[str, Tokenizer]:
        return {"text": self.tokenizer}

    @classmethod
    def fit(cls, config: TagConfig, rows: Iterable[Row], tokenizer: Tokenizer | None = None) -> Self:
        names: set[str] = set()
        characters = True

        def texts() -> Iterator[str]:
            nonlocal characters
            for row in rows:
                words, row_tags = words_and_tags(row)
                refuse_texts(row_tags, row.where, "tags")
                names.update(row_tags)
                characters = characters and all(len(word) == 1 for word in words)
                if len(names) > MOST_TAGS:
                    raise DataError(
                        f"{row.where}: more than {MOST_TAGS:,} different tags look like words; "
                        "choose the right column with data.columns.tags"
                    )
                yield text_of(row.cells["text"])

        learnt_from = sampled(texts())
        fitted = config.tags.fit(names)
        if len(fitted.names) < 2:
            held = f"only one tag ({', '.join(names)})" if names else "no tags"
            raise DataError(f"the training data have {held}; a tagger needs at least two")
        split: Split = config.split if config.split != "auto" else "characters" if characters else "signs"
        words = replace(config.given["text"], split=split).fit(learnt_from, tokenizer)
        return cls(config, words, fitted)

    @classmethod
    def of_vocabulary(cls, config: TagConfig, tokenizer: Tokenizer, labels: Sequence[str]) -> Self:
        """The task with a vocabulary and tags that were learnt elsewhere."""
        split: Split = "signs" if config.split == "auto" else config.split
        words = replace(config.given["text"], learnt=tokenizer, split=split)
        return cls(config, words, replace(config.tags, names=tuple(labels)))

    def with_settings(self, *, split: str | None = None, **changes: Any) -> Self:
        """A tagger does not search, but it may be told how to cut texts into words."""
        if changes:
            raise RecipeError(f"{next(iter(changes))}: a tagger has no such setting; it has split")
        if not isinstance(split, str) or split not in CUTS:
            raise RecipeError(f"split: unknown {shown(split)}{did_you_mean(shown(split), CUTS)}")
        return type(self)(self.config, replace(self.words, split=split), self.tags)  # type: ignore[arg-type]

    def save(self, folder: Path) -> None:
        self.words.save(folder)
        self.tags.save(folder)

    @classmethod
    def load(cls, config: TagConfig, folder: Path) -> Self:
        return cls(config, config.given["text"].load(folder), config.tags.load(folder))

    def sentence(self, row: Row) -> Sentence:
        """The words of a row; where it has tags too, they are those that it was cut into for these."""
        cell = row.cells["text"]
        value: Sentence = self.words.parse(words_of(cell) if "tags" in row.cells else cell, row.where)
        return value

    def encode(self, rows: Sequence[Row]) -> list[Example]:
        targets = list(map(self._target, rows))  # first, as it refuses rows whose words and tags differ
        parts = self.words.encode(list(map(self.sentence, rows)))
        read = [self.input.assemble([part]) for part in parts]
        return [
            Example(row, {**coded.arrays, **target}, coded.notes)
            for row, coded, target in zip(rows, read, targets, strict=True)
        ]

    def _target(self, row: Row) -> dict[str, Any]:
        """The arrays of the row's tags; none when they are unknown."""
        if "tags" not in row.cells:
            return {}
        _, names = words_and_tags(row)
        if (fault := self.tags.fault(names)) is not None:
            place, message = fault
            raise DataError(f"{word_where(row, place)}: {message}")
        (coded,) = self.tags.encode([names])
        return dict(coded.arrays)

    def unusable(self, example: Example) -> str | None:
        return super().unusable(example) or (None if example.arrays["legal"][0] else "illegally tagged")

    def is_answerable(self, example: Example) -> bool:
        return not self.input.is_empty(example.arrays)

    def size(self, example: Example) -> tuple[int]:
        return (self.input.size(example.arrays),)

    def collate(self, examples: Sequence[Example]) -> TagBatch:
        inputs = tensors(self.input.collate([example.arrays for example in examples]))
        tags_BN = padded([_learnt(example) for example in examples], NO_TAG, least=inputs["places"].shape[1])
        return TagBatch(inputs, torch.from_numpy(tags_BN), tuple(examples))

    def loss(self, model: nn.Module, batch: TagBatch) -> Loss:
        cost = model(batch.inputs, batch.tags_BN)
        return Loss({"words": Part(cost)}, shown={"words": cost.detach()})

    def measure(self, model: nn.Module, batch: TagBatch, *, thorough: bool) -> TagTally:
        return self.tally(batch.examples, [answer.tags for answer in in_order(self.predict(model, batch))])

    def tally(self, examples: Sequence[Example], answers: Sequence[Any]) -> TagTally:
        """The tally of tuples of tags, one for each word."""
        gold = [tuple(self.labels[tag] for tag in example.arrays["tags"]) for example in examples]
        return TagTally(self.tags.scheme is not None, [*answers], gold)

    def predict(self, model: nn.Module, batch: TagBatch) -> Iterator[tuple[int, Tagged]]:
        assert isinstance(model, Tagger)
        keep_BN = batch.keep_BN
        with torch.inference_mode():
            scores_BNC = model.scores(batch.inputs)
            best_BN = model.best(scores_BNC, keep_BN)
            likely_BNC = model.marginals(scores_BNC, keep_BN)
        for row, (example, keep_N) in enumerate(zip(batch.examples, keep_BN, strict=True)):
            best_N = best_BN[row, keep_N]
            likely_N = likely_BNC[row, keep_N].gather(1, best_N[:, None]).squeeze(1)
            yield row, self._tagged(example, best_N.tolist(), likely_N.tolist())

    def _tagged(self, example: Example, best: list[int], likely: list[float]) -> Tagged:
        sentence = self.sentence(example.row)
        names = [self.labels[tag] for tag in best]
        return Tagged(
            text=" ".join(f"{word}/{tag}" for word, tag in zip(sentence.words, names, strict=True)),
            words=sentence.words,
            tags=names,
            probabilities=likely,
            spans=None if self.tags.scheme is None else tuple(_marked_spans(sentence, names)),
            places=sentence.places,
            input_cut=bool(example.notes.get("cut", False)),
        )

    def force(self, example: Example, prediction: Tagged) -> TagBatch:
        """Force the tags of a sentence; of a long one those of its first window, which a picture shows."""
        arrays = self.input.first_window(example.arrays)
        names = prediction.tags[: len(arrays["word_lengths"])]
        target = {"tags": np.array([self.tags.index[name] for name in names]), "legal": np.array([True])}
        return self.collate([replace(example, arrays={**arrays, **target})])

    def replay(self, model: nn.Module, batch: TagBatch) -> Tensor:
        """The log-probability of each word's tag, whatever the others are."""
        likely_BN = self._marginals(model, batch).gather(2, batch.tags_BN[..., None]).squeeze(2)
        return likely_BN.clamp(min=torch.finfo(likely_BN.dtype).tiny).log()

    def _marginals(self, model: nn.Module, batch: TagBatch) -> Tensor:
        assert isinstance(model, Tagger)
        return model.marginals(model.scores(batch.inputs), batch.keep_BN)

    def leave_out(self, batch: TagBatch, axis: Axis, units: Sequence[int]) -> TagBatch:
        n, device = len(units), batch.tags_BN.device
        arrays = {name: tensor.cpu().numpy() for name, tensor in batch.inputs.items()}
        blanked = tensors(self.input.without(arrays, axis, units, "blank"))
        return TagBatch(moved(blanked, device), batch.tags_BN.expand(n, -1), batch.examples * n)

    def axes(self, example: Example, prediction: Tagged) -> Axes:
        arrays = self.input.first_window(example.arrays)
        read = list(zip(prediction.words, prediction.tags, arrays["word_lengths"], strict=False))
        by_name = {
            "text": self.input.axis([self.sentence(example.row)], Coded(arrays)),
            "answer": Axis("words", tuple(f"{word}/{tag}" for word, tag, _ in read), unit="word"),
            "tags": Axis("tags", self.labels, unit="tag"),
            "before": Axis("tag before", self.labels, unit="tag"),
        }
        return Axes(by_name, left_out="text", answer="answer", site=word_to_word)

    def pictures(self, model: nn.Module, batch: TagBatch) -> list[Picture]:
        assert isinstance(model, Tagger)
        marginals = "probability: word → each tag"
        pictures = [Picture("marginals", marginals, self._marginals(model, batch)[0], "answer", "tags")]
        steps_CC = model.transitions()
        if steps_CC is not None:
            pictures.append(Picture("transitions", "learnt: tag before → tag", steps_CC, "before", "tags"))
        return pictures


def words_and_tags(row: Row) -> tuple[list[str], list[str]]:
    """The words of a row and a tag for each; an empty one has neither."""
    words, names = (words_of(row.cells[role]) for role in ("text", "tags"))
    if len(words) != len(names):
        raise DataError(
            f"{row.where}: {len(words)} words but {len(names)} tags; every word needs one, "
            "with one space between words and between tags"
        )
    if not all(words) or not all(names):
        raise DataError(f"{row.where}: a word or a tag is missing between two spaces; leave one of these out")
    return words, names


def _learnt(example: Example) -> Any:
    """The tags that are learnt from an example: none where they are unknown or illegal."""
    tags_N = example.arrays.get("tags", ())
    return tags_N if len(tags_N) and example.arrays["legal"][0] else np.zeros(0, np.int64)


def _marked_spans(sentence: Sentence, names: Sequence[str]) -> Iterator[Span]:
    for first, end, kind in tags.spans(names):
        start, stop = sentence.places[first][0], sentence.places[end - 1][1]
        yield Span(text=sentence.text[start:stop], kind=kind, start=start, end=stop)
