"""tag: a tag for every word. Where tags mark spans (BIO, BIOES, BMES), the spans are the answer."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import BaseModel, Field
from torch import Tensor, nn

from regard.data.cache import Arrays
from regard.data.sample import sampled
from regard.decode import untold
from regard.errors import CheckpointError, DataError, RecipeError, did_you_mean, quoted, shown
from regard.fields.axis import Axis, ended
from regard.fields.label import refuse_texts
from regard.fields.tags import Tags, Words, words_of
from regard.files.conll import INSIDE_A_WORD
from regard.files.lines import UNDECODED
from regard.files.read import word_where
from regard.files.row import Row, text_of
from regard.metrics.metric import Metric
from regard.models.tagger import Tagger
from regard.models.widths import Widths
from regard.tasks.sentences import Sentence, Sentences
from regard.tasks.tag_data import TAG
from regard.tasks.tag_data import Tagged as TaggedAnswer
from regard.tasks.tagged import Tagged, TagTally
from regard.tasks.task import Axes, Fields, Loss, Part, Picture, Task, TaskSettings, Tell, word_to_word
from regard.tasks.task_data import TaskData
from regard.text import tags
from regard.text.tokenizer import Tokenizer, TokenizerConfig
from regard.text.unicode import JOINERS, MARK, outline

Split = Literal["auto", "characters", "signs", "spaces"]
CUTS = {
    "characters": re.compile(r"\S"),
    "signs": re.compile(rf"[^\w\s{MARK}{JOINERS}]{MARK}*|[\w{MARK}]+(?:['’{JOINERS}-][\w{MARK}]+)*"),
    "spaces": re.compile(rf"[\S{INSIDE_A_WORD}]+"),
}
MOST_TAGS = 1000


class TagConfig(TaskSettings):
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
    illegal: Literal["refuse", "skip", "mend"] = Field(
        "refuse",
        description="sentences whose tags their scheme forbids; skip leaves them out of training; mend "
        "begins a span where its first word stands, as conlleval reads it: IOB1 becomes BIO",
    )
    max_length: int = Field(256, ge=4, description="pieces; longer sentences are read in overlapping windows")

    @property
    def unfitted(self) -> Fields:
        return {"text": Words(), "tags": Tags()}


class Tag(Task):
    kind: ClassVar[str] = "tag"
    data: ClassVar[TaskData] = TAG
    says: ClassVar[str] = "Texts in, words with their tags and the spans these mark out."
    prediction: ClassVar[type[BaseModel]] = TaggedAnswer
    cut: ClassVar[str] = "of a word only the beginning was read"
    settings: ClassVar[type[Any]] = TagConfig
    models: ClassVar[tuple[str, ...]] = ("tagger", "hmm")
    called: ClassVar[str] = "a tagger"
    unusable: ClassVar[str] = "empty or illegally tagged"

    def __init__(self, config: TagConfig, tokenizer: Tokenizer, names: Sequence[str], split: Split) -> None:
        self.config, self.tokenizer, self.names, self.split = config, tokenizer, tuple(names), split
        self.index = {name: n for n, name in enumerate(self.names)}
        self.scheme = tags.scheme(self.names)
        self.widths = Widths({"vocab": len(tokenizer)}, {"tags": [*self.names]})

    @property
    def metric(self) -> Metric:
        return Metric("accuracy" if self.scheme is None else "f1")

    @property
    def labels(self) -> tuple[str, ...]:
        return self.names

    @classmethod
    def fit(cls, config: TagConfig, rows: Iterable[Row], tokenizer: Tokenizer | None = None) -> Self:
        names: set[str] = set()
        characters = True

        def texts() -> Iterator[str]:
            nonlocal characters
            for row in rows:
                words, own = words_and_tags(row)
                refuse_texts(own, row.where, "tags")
                names.update(own)
                characters = characters and all(len(word) == 1 for word in words)
                if len(names) > MOST_TAGS:
                    raise DataError(
                        f"{row.where}: more than {MOST_TAGS:,} different tags look like words; "
                        "choose the right column with data.columns.tags"
                    )
                yield text_of(row.cells["text"])

        learnt_from = sampled(texts())
        names = tags.completed(names) if config.illegal == "mend" else names
        if len(names) < 2:
            found = f"only one tag ({', '.join(names)})" if names else "no tags"
            raise DataError(f"the training data have {found}; a tagger needs at least two")
        split = config.split if config.split != "auto" else "characters" if characters else "signs"
        return cls(config, tokenizer or Tokenizer.train(config.tokenizer, learnt_from), sorted(names), split)

    @property
    def tokenizers(self) -> dict[str, Tokenizer]:
        return {"text": self.tokenizer}

    def searching(self, *, split: str | None = None, **changes: Any) -> Self:
        """A tagger does not search, but it may be told how to cut texts into words."""
        if changes:
            raise RecipeError(f"{next(iter(changes))}: a tagger has no such setting; it has split")
        if not isinstance(split, str) or split not in CUTS:
            raise RecipeError(f"split: unknown {shown(split)}{did_you_mean(shown(split), CUTS)}")
        return type(self)(self.config, self.tokenizer, self.names, split)  # type: ignore[arg-type]

    def save(self, folder: Path) -> None:
        self.tokenizer.save(folder / "tokenizer.json")
        known = {"split": self.split, "tags": [*self.names]}
        (folder / "tags.json").write_text(json.dumps(known, ensure_ascii=False, indent=1), "utf-8")

    @classmethod
    def load(cls, config: TagConfig, folder: Path) -> Self:
        path = folder / "tags.json"
        try:
            known = json.loads(path.read_text("utf-8"))
            names, split = known["tags"], known["split"]
        except (OSError, ValueError, RecursionError, KeyError, TypeError) as error:
            raise CheckpointError(f"{path}: the tags cannot be read ({error})") from error
        if not (
            isinstance(names, list)
            and all(isinstance(name, str) and name and not UNDECODED.search(name) for name in names)
            and len(set(names)) == len(names) > 1
            and split in list(CUTS)
        ):
            raise CheckpointError(
                f"{path}: should hold at least two tags, all different, and how texts are split"
            )
        return cls(config, Tokenizer.load(folder / "tokenizer.json"), names, split)

    def encode(self, rows: Sequence[Row]) -> list[Sentence]:
        sentences = [self._words(row) for row in rows]
        pieces = iter(self.tokenizer.ids([word for words, _ in sentences for word in words]))
        return [
            self._sentence(row, [next(pieces) or [self.tokenizer.marks.unknown] for _ in words], own)
            for row, (words, own) in zip(rows, sentences, strict=True)
        ]

    def _words(self, row: Row) -> tuple[list[str], list[str]]:
        text = row.cells["text"]
        if "tags" not in row.cells:
            return (text if isinstance(text, list) else self.words(text)), []
        words, own = words_and_tags(row)
        for place, tag in enumerate(own):
            if tag not in self.index:
                where, near = word_where(row, place), did_you_mean(tag, self.names)
                raise DataError(f"{where}: tag {quoted(tag)} does not occur in the training data{near}")
        if self.config.illegal == "refuse" and (fault := self._fault(own)) is not None:
            raise _illegal(str(self.scheme), row, own, fault)
        mends = self.config.illegal == "mend" and self.scheme is not None
        return words, tags.mended(str(self.scheme), own) if mends else own

    def words(self, text: str) -> list[str]:
        """Of a text without tags."""
        return [text[start:end] for start, end in self._places(text)]

    def _fault(self, own: Sequence[str]) -> int | None:
        return None if self.scheme is None else tags.first_fault(self.scheme, own)

    def _places(self, text: str) -> list[tuple[int, int]]:
        shown = outline(text) if self.split == "signs" else text
        return [match.span() for match in CUTS[self.split].finditer(shown)]

    def _sentence(self, row: Row, pieces: list[list[int]], own: Sequence[str]) -> Sentence:
        most = self.config.max_length // 2
        kept = [word[:most] for word in pieces]
        return Sentence(
            row,
            np.array([piece for word in kept for piece in word], np.int64),
            np.array([len(word) for word in kept], np.int64),
            np.array([self.index[tag] for tag in own], np.int64),
            cut=any(len(word) > most for word in pieces),
            illegal=self._fault(own) is not None,
        )

    def usable(self, example: Sentence) -> bool:
        return self.usable_input(example) and not example.illegal

    def usable_input(self, example: Sentence) -> bool:
        return len(example.tokens) > 0

    def size(self, example: Sentence) -> tuple[int]:
        return (len(example.tokens) + len(self.tokenizer.framed(())),)

    def keep(self, example: Sentence) -> Arrays:
        return {"tokens": example.tokens, "n_pieces": example.n_pieces, "tags": example.tags}

    def revive(self, row: Row, kept: Arrays) -> Sentence:
        tokens, n_pieces, own = (kept[name].astype(np.int64) for name in ("tokens", "n_pieces", "tags"))
        return Sentence(row, tokens, n_pieces, own)

    def collate(self, examples: Sequence[Sentence]) -> Sentences:
        return Sentences.of(examples, self.config.max_length, self.tokenizer.marks)

    def loss(self, model: nn.Module, batch: Sentences) -> Loss:
        cost = model(batch.tokens_RT, batch.lengths_R, batch.at_BN, batch.legal_BN, batch.tags_BN)
        return Loss({"words": Part(cost)}, shown={"words": cost.detach()})

    def measure(self, model: nn.Module, batch: Sentences, *, thorough: bool) -> TagTally:
        return self.tally(batch.examples, [answer.tags for answer in self.predict(model, batch)])

    def tally(self, examples: Sequence[Sentence], answers: Sequence[Any]) -> TagTally:
        """The tally of tuples of tags, one for each word."""
        gold = [tuple(self.names[tag] for tag in example.tags) for example in examples]
        return TagTally(self.scheme is not None, [*answers], gold)

    def predict(self, model: nn.Module, batch: Sentences, tell: Tell = untold) -> list[Tagged]:
        assert isinstance(model, Tagger)
        with torch.inference_mode():
            scores_BNC = model.scores(batch.tokens_RT, batch.lengths_R, batch.at_BN)
            best_BN = model.best(scores_BNC, batch.keep_BN)
            likely_BNC = model.marginals(scores_BNC, batch.keep_BN)
        answers = []
        for row, (example, keep_N) in enumerate(zip(batch.examples, batch.keep_BN, strict=True)):
            best_N = best_BN[row, keep_N]
            likely_N = likely_BNC[row, keep_N].gather(1, best_N[:, None]).squeeze(1)
            answers.append(self._tagged(example, best_N.tolist(), likely_N.tolist()))
            tell(row, answers[-1])
        return answers

    def _tagged(self, example: Sentence, best: list[int], likely: list[float]) -> Tagged:
        cell = example.row.cells["text"]
        text, is_cut = text_of(cell), isinstance(cell, list) or "tags" in example.row.cells
        cut = _between_spaces(text) if is_cut else self._places(text)
        names = tuple(self.names[tag] for tag in best)
        return Tagged(text, tuple(cut), names, tuple(likely), self.scheme is not None, example.cut)

    def force(self, example: Sentence, prediction: Tagged) -> Sentences:
        """Of a long sentence its first window, as that is what a picture shows."""
        own = np.array([self.index[tag] for tag in prediction.tags], np.int64)
        return self.collate([replace(example, tags=own).first_window(self.config.max_length)])

    def replay(self, model: nn.Module, batch: Sentences) -> Tensor:
        """The log-probability of each word's tag, whatever the others are."""
        told_BN = self._marginals(model, batch).gather(2, batch.tags_BN[..., None]).squeeze(2)
        return told_BN.clamp(min=torch.finfo(told_BN.dtype).tiny).log()

    def _marginals(self, model: nn.Module, batch: Sentences) -> Tensor:
        assert isinstance(model, Tagger)
        scores_BNC = model.scores(batch.tokens_RT, batch.lengths_R, batch.at_BN)
        return model.marginals(scores_BNC, batch.keep_BN)

    def leave_out(self, batch: Sentences, axis: Axis, pieces: Sequence[int]) -> Sentences:
        return batch.unknowing(pieces, self.tokenizer.marks)

    def axes(self, example: Sentence, prediction: Tagged) -> Axes:
        shown = example.first_window(self.config.max_length)
        read = list(zip(prediction.words, prediction.tags, shown.n_pieces, strict=False))
        pieces = [piece for word, _, n in read for piece in self.tokenizer.words(word, n) or (word,)]
        marks = self.tokenizer.pieces(self.tokenizer.framed(()))
        by_name = {
            "text": ended("text", (*marks[:-1], *pieces, marks[-1])),
            "answer": Axis("words", tuple(f"{word}/{tag}" for word, tag, _ in read), unit="word"),
            "tags": Axis("tags", self.names, unit="tag"),
            "before": Axis("tag before", self.names, unit="tag"),
        }
        return Axes(by_name, left_out="text", answer="answer", site=word_to_word)

    def pictures(self, model: nn.Module, batch: Sentences) -> list[Picture]:
        assert isinstance(model, Tagger)
        marginals = "probability: word → each tag"
        found = [Picture("marginals", marginals, self._marginals(model, batch)[0], "answer", "tags")]
        steps_CC = model.transitions()
        if steps_CC is not None:
            found.append(Picture("transitions", "learnt: tag before → tag", steps_CC, "before", "tags"))
        return found


def words_and_tags(row: Row) -> tuple[list[str], list[str]]:
    """Of a row with tags; an empty one has neither."""
    words, own = (words_of(row.cells[role]) for role in ("text", "tags"))
    if len(words) != len(own):
        raise DataError(
            f"{row.where}: {len(words)} words but {len(own)} tags; every word needs one, "
            "with one space between words and between tags"
        )
    if not all(words) or not all(own):
        raise DataError(f"{row.where}: a word or a tag is missing between two spaces; leave one of these out")
    return words, own


def _illegal(scheme: str, row: Row, own: Sequence[str], fault: int) -> DataError:
    before = own[fault - 1] if fault else "the beginning"
    after = own[fault] if fault < len(own) else "the end of the sentence"
    return DataError(
        f"{word_where(row, min(fault, len(own) - 1))}: {after} cannot stand after {before} in {scheme} tags; "
        "mend them (task.illegal=mend reads them as conlleval does), or leave the sentence out "
        "(task.illegal=skip)"
    )


def _between_spaces(text: str) -> list[tuple[int, int]]:
    """The words of a row that has tags."""
    return [match.span() for match in re.finditer("[^ ]+", text)]
