"""tag: a tag for every word. Where tags mark spans (BIO, BIOES, BMES), the spans are the answer."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from regard import tags
from regard.config import Config
from regard.data.examples import Ints, Kept
from regard.data.lines import UNDECODED
from regard.data.sample import sampled
from regard.data.source import Row
from regard.data.tokenizer import EOS, UNK, Tokenizer, TokenizerConfig
from regard.errors import CheckpointError, DataError, RecipeError, did_you_mean
from regard.metrics.spans import span_f1
from regard.models.dims import Dims
from regard.models.tagger import Tagger
from regard.tasks.task import ROWS_TOGETHER, Ground, Loss, Part, padded, without_each

Units = Literal["words", "characters"]
WORDS = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")
"""What a text without marked words is cut into: words, and every sign by itself."""
CHARACTERS = re.compile(r"\S")
MOST_TAGS = 1000


class TagConfig(Config):
    kind: Literal["tag"] = "tag"
    tokenizer: TokenizerConfig = TokenizerConfig()
    units: Units | Literal["auto"] = Field(
        "auto", description="what carries a tag; auto: characters if all of the training data's words are"
    )
    max_length: int = Field(256, ge=4, description="pieces; longer sentences are cut at a word")


@dataclass(frozen=True, slots=True)
class Sentence:
    """`tokens` end with EOS; the tag of a word belongs to its first piece, whose place is in `heads`."""

    row: Row
    tokens: Ints
    heads: Ints
    tags: Ints
    """Of every word; none when unknown."""
    cut: bool = False


@dataclass(frozen=True)
class Sentences:
    tokens_BT: Tensor
    lengths_B: Tensor
    keep_BT: Tensor
    """The first pieces of words."""
    tags_BT: Tensor
    examples: tuple[Sentence, ...]

    @property
    def counts(self) -> dict[str, int]:
        return {"words": int(self.keep_BT.sum())}

    def to(self, device: torch.device) -> Self:
        return replace(
            self,
            tokens_BT=self.tokens_BT.to(device),
            lengths_B=self.lengths_B.to(device),
            keep_BT=self.keep_BT.to(device),
            tags_BT=self.tags_BT.to(device),
        )


@dataclass(frozen=True)
class Tagged:
    """Words in their order; `spans` is empty where tags mark none."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    places: tuple[tuple[int, int], ...]
    """Of each word in the text."""
    probabilities: tuple[float, ...]
    """Of each word's tag, whatever the others are."""
    input: str
    cut: bool = False

    @property
    def spans(self) -> list[dict[str, Any]]:
        if tags.scheme(self.tags) is None:
            return []
        return [
            {
                "text": self.input[self.places[start][0] : self.places[end - 1][1]],
                "kind": kind,
                "start": self.places[start][0],
                "end": self.places[end - 1][1],
            }
            for start, end, kind in tags.spans(self.tags)
        ]

    @property
    def text(self) -> str:
        return " ".join(f"{word}/{tag}" for word, tag in zip(self.words, self.tags, strict=True))

    def to_json(self) -> dict[str, Any]:
        answer: dict[str, Any] = {
            "words": list(self.words),
            "tags": list(self.tags),
            "probabilities": [round(p, 4) for p in self.probabilities],
        }
        if self.spans:
            answer["spans"] = self.spans
        return answer | ({"input_cut": True} if self.cut else {})


@dataclass(frozen=True)
class TagTally:
    predicted: list[tuple[str, ...]] = field(default_factory=list)
    gold: list[tuple[str, ...]] = field(default_factory=list)

    def __add__(self, other: "TagTally") -> "TagTally":
        return TagTally(self.predicted + other.predicted, self.gold + other.gold)

    def metrics(self) -> dict[str, float]:
        pairs = [
            pair for both in zip(self.predicted, self.gold, strict=True) for pair in zip(*both, strict=True)
        ]
        found = {"accuracy": 100 * sum(said == right for said, right in pairs) / max(1, len(pairs))}
        if tags.scheme({tag for sentence in self.gold for tag in sentence} | {"B"}) is None:
            return found
        return {name: 100 * value for name, value in span_f1(self.predicted, self.gold).items()} | found

    def signatures(self) -> dict[str, str]:
        return {}


class Tag:
    kind: ClassVar[str] = "tag"
    roles: ClassVar[tuple[str, ...]] = ("text", "tags")
    input_ground: ClassVar[str] = "text"

    def __init__(self, config: TagConfig, tokenizer: Tokenizer, names: Sequence[str], units: Units) -> None:
        self.config, self.tokenizer, self.names, self.units = config, tokenizer, tuple(names), units
        self.scheme = tags.scheme(self.names)
        self.dims = Dims(source_vocab=len(tokenizer), tags=self.names)

    @property
    def metric(self) -> str:
        return "accuracy" if self.scheme is None else "f1"

    @classmethod
    def fit(cls, config: TagConfig, rows: Iterable[Row]) -> Self:
        names: set[str] = set()
        characters = True

        def texts() -> Iterator[str]:
            nonlocal characters
            for row in rows:
                words, own = _words_and_tags(row)
                names.update(own)
                characters = characters and all(len(word) == 1 for word in words)
                if len(names) > MOST_TAGS:
                    raise DataError(
                        f"{row.where}: more than {MOST_TAGS:,} different tags look like words; "
                        "choose the right column with data.columns.tags"
                    )
                yield row.fields["text"]

        learnt_from = sampled(texts())
        if len(names) < 2:
            raise DataError(f"the training data have only one tag ({', '.join(names)}); nothing can be learnt")
        units: Units = config.units if config.units != "auto" else "characters" if characters else "words"
        return cls(config, Tokenizer.train(config.tokenizer, learnt_from), sorted(names), units)

    @property
    def rows_together(self) -> int:
        return ROWS_TOGETHER

    @property
    def tokenizers(self) -> dict[str, Tokenizer]:
        return {"text": self.tokenizer}

    def searching(self, **changes: Any) -> Self:
        raise RecipeError(f"{next(iter(changes))}: a tagger does not search, so it has no such setting")

    def save(self, folder: Path) -> None:
        self.tokenizer.save(folder / "tokenizer.json")
        known = {"units": self.units, "tags": self.names}
        (folder / "tags.json").write_text(json.dumps(known, ensure_ascii=False, indent=1), "utf-8")

    @classmethod
    def load(cls, config: TagConfig, folder: Path) -> Self:
        path = folder / "tags.json"
        try:
            known = json.loads(path.read_text("utf-8"))
            names, units = known["tags"], known["units"]
        except (OSError, ValueError, RecursionError, KeyError, TypeError) as error:
            raise CheckpointError(f"{path}: the tags cannot be read ({error})") from error
        if not (
            isinstance(names, list)
            and all(isinstance(name, str) and name and not UNDECODED.search(name) for name in names)
            and len(set(names)) == len(names) > 1
            and units in ("words", "characters")
        ):
            raise CheckpointError(f"{path}: should hold at least two tags, all different, and their units")
        return cls(config, Tokenizer.load(folder / "tokenizer.json"), names, units)

    def encode(self, rows: Sequence[Row]) -> list[Sentence]:
        sentences = [self._words(row) for row in rows]
        pieces = iter(self.tokenizer.ids([word for words, _ in sentences for word in words]))
        return [
            self._sentence(row, [next(pieces) or [UNK] for _ in words], own)
            for row, (words, own) in zip(rows, sentences, strict=True)
        ]

    def _words(self, row: Row) -> tuple[list[str], list[str]]:
        if "tags" in row.fields:
            words, own = _words_and_tags(row)
            self._check(row, own)
            return words, own
        return [word for word, _ in self._found(row.fields["text"])], []

    def _found(self, text: str) -> list[tuple[str, tuple[int, int]]]:
        """The words of a text that has no tags, and their places."""
        pattern = CHARACTERS if self.units == "characters" else WORDS
        return [(match[0], match.span()) for match in pattern.finditer(text)]

    def _check(self, row: Row, own: Sequence[str]) -> None:
        for tag in own:
            if tag not in self.names:
                near = did_you_mean(tag, self.names)
                raise DataError(f"{row.where}: tag {tag!r} does not occur in the training data{near}")
        if self.scheme is not None and (place := tags.first_fault(self.scheme, own)) is not None:
            before = own[place - 1] if place else "the beginning"
            after = own[place] if place < len(own) else "the end of the sentence"
            raise DataError(
                f"{row.where}: word {place + 1} of the sentence: {after} cannot stand after {before} in "
                f"{self.scheme} tags; mend the tags"
            )

    def _sentence(self, row: Row, pieces: list[list[int]], own: Sequence[str]) -> Sentence:
        ends = np.cumsum([0, *map(len, pieces)])
        n_words = int((ends[1:] <= self.config.max_length).sum())
        tokens = [piece for word in pieces[:n_words] for piece in word]
        ids = [self.names.index(tag) for tag in own[:n_words]]
        cut = n_words < len(pieces)
        return Sentence(row, np.array((*tokens, EOS)), ends[:n_words], np.array(ids, np.int64), cut)

    def usable(self, example: Sentence) -> bool:
        return len(example.heads) > 0

    def usable_input(self, example: Sentence) -> bool:
        return self.usable(example)

    def size(self, example: Sentence) -> tuple[int]:
        return (len(example.tokens),)

    def keep(self, example: Sentence) -> Kept:
        return example.tokens, example.heads, example.tags

    def revive(self, row: Row, kept: Kept) -> Sentence:
        return Sentence(row, *kept)

    def collate(self, examples: Sequence[Sentence]) -> Sentences:
        tokens_BT = padded([example.tokens for example in examples])
        keep_BT = torch.zeros(tokens_BT.shape, dtype=torch.bool)
        tags_BT = torch.zeros_like(tokens_BT)
        for row, example in enumerate(examples):
            keep_BT[row, example.heads] = True
            if len(example.tags):
                tags_BT[row, example.heads] = torch.as_tensor(np.asarray(example.tags, np.int64))
        lengths = [len(example.tokens) for example in examples]
        return Sentences(tokens_BT, torch.tensor(lengths), keep_BT, tags_BT, tuple(examples))

    def loss(self, model: nn.Module, batch: Sentences) -> Loss:
        cost = model(batch.tokens_BT, batch.lengths_B, batch.keep_BT, batch.tags_BT)
        return Loss({"words": Part(cost)}, shown={"words": cost.detach()})

    def measure(self, model: nn.Module, batch: Sentences, *, thorough: bool) -> TagTally:
        """A word that was cut off was not tagged right."""
        predicted, gold = [], []
        for example, said in zip(batch.examples, self._best(model, batch), strict=True):
            right = example.row.fields["tags"].split(" ")
            predicted.append((*said, *("" for _ in right[len(said) :])))
            gold.append(tuple(right))
        return TagTally(predicted, gold)

    def _best(self, model: nn.Module, batch: Sentences) -> list[tuple[str, ...]]:
        assert isinstance(model, Tagger)
        tags_B1T, _ = model.best(model.scores(batch.tokens_BT, batch.lengths_B), batch.keep_BT)
        return [
            tuple(self.names[tag] for tag in tags_B1T[row, 0, keep_T].tolist())
            for row, keep_T in enumerate(batch.keep_BT)
        ]

    def predict(self, model: nn.Module, batch: Sentences) -> list[Tagged]:
        assert isinstance(model, Tagger)
        with torch.inference_mode():
            scores_BTC = model.scores(batch.tokens_BT, batch.lengths_B)
            tags_B1T, _ = model.best(scores_BTC, batch.keep_BT)
            likely_BTC = model.marginals(scores_BTC, batch.keep_BT)
        answers = []
        for row, (example, keep_T) in enumerate(zip(batch.examples, batch.keep_BT, strict=True)):
            chosen_W = tags_B1T[row, 0, keep_T]
            likely_W = likely_BTC[row, keep_T].gather(1, chosen_W[:, None]).squeeze(1)
            answers.append(self._tagged(example, chosen_W.tolist(), likely_W.tolist()))
        return answers

    def _tagged(self, example: Sentence, chosen: list[int], likely: list[float]) -> Tagged:
        text = example.row.fields["text"]
        found = self._found(text)[: len(chosen)]
        return Tagged(
            tuple(word for word, _ in found),
            tuple(self.names[tag] for tag in chosen),
            tuple(place for _, place in found),
            tuple(likely),
            text,
            example.cut,
        )

    def force(self, example: Sentence, prediction: Tagged) -> Sentences:
        own = np.array([self.names.index(tag) for tag in prediction.tags])
        return self.collate([replace(example, tags=own)])

    def replay(self, model: nn.Module, batch: Sentences) -> Tensor:
        """The log-probability of each word's tag, whatever the others are."""
        assert isinstance(model, Tagger)
        likely_BTC = model.marginals(model.scores(batch.tokens_BT, batch.lengths_B), batch.keep_BT)
        told_BT = likely_BTC.gather(2, batch.tags_BT[..., None]).squeeze(2)
        return told_BT[batch.keep_BT].view(len(batch.examples), -1).log()

    def leave_out(self, batch: Sentences, pieces: range) -> Sentences:
        raise NotImplementedError

    def grounds(self, example: Sentence, prediction: Tagged) -> dict[str, Ground]:
        raise NotImplementedError

    def site_grounds(self, site: str) -> tuple[str, str, str]:
        layer = next((int(part) + 1 for part in site.split(".") if part.isdigit()), None)
        return f"encoder layer {layer}: word → word", "text", "text"


def _words_and_tags(row: Row) -> tuple[list[str], list[str]]:
    words, own = row.fields["text"].split(" "), row.fields["tags"].split(" ")
    if len(words) != len(own):
        raise DataError(
            f"{row.where}: {len(words)} words but {len(own)} tags; every word needs one, "
            "with one space between words and between tags"
        )
    return words, own
