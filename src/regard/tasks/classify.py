"""classify: one label per text."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from regard.config import Config
from regard.data.examples import Ints, Kept
from regard.data.lines import UNDECODED
from regard.data.sample import sampled
from regard.data.source import Row
from regard.data.tokenizer import PAD, Tokenizer, TokenizerConfig
from regard.decode import untold
from regard.errors import CheckpointError, DataError, RecipeError, did_you_mean
from regard.metrics.classify import Weigh, one_label
from regard.metrics.resample import plainly
from regard.models.dims import Dims
from regard.tasks.task import ROWS_TOGETHER, Ground, Loss, Part, Picture, Tell, padded, without_each

MOST_LABELS = 10_000


class LabelConfig(Config):
    """Of tasks that answer with one label."""

    tokenizer: TokenizerConfig = TokenizerConfig()
    max_length: int = Field(256, ge=4, description="pieces; longer texts are cut (regard check counts them)")
    label_smoothing: float = Field(0.0, ge=0, lt=1)


class ClassifyConfig(LabelConfig):
    kind: Literal["classify"] = "classify"


@dataclass(frozen=True, slots=True)
class Text:
    """`tokens` are framed by the tokeniser's marks, so no text is empty; `label` is −1 when unknown."""

    row: Row
    tokens: Ints
    label: int
    cut: bool = False


@dataclass(frozen=True)
class Texts:
    tokens_BT: Tensor
    lengths_B: Tensor
    labels_B: Tensor
    examples: tuple[Text, ...]

    @property
    def counts(self) -> dict[str, int]:
        return {"texts": len(self.examples)}

    def to(self, device: torch.device) -> Self:
        return replace(
            self,
            tokens_BT=self.tokens_BT.to(device),
            lengths_B=self.lengths_B.to(device),
            labels_B=self.labels_B.to(device),
        )


@dataclass(frozen=True)
class Label:
    text: str
    probability: float
    probabilities: dict[str, float]
    index: int
    cut: bool = False
    """The text was longer than max_length; not all of it was read."""

    def to_json(self) -> dict[str, Any]:
        shown = {label: round(p, 4) for label, p in self.probabilities.items()}
        answer = {"text": self.text, "probability": round(self.probability, 4), "probabilities": shown}
        return answer | ({"input_cut": True} if self.cut else {})


@dataclass(frozen=True)
class LabelTally:
    predicted: list[str] = field(default_factory=list)
    gold: list[str] = field(default_factory=list)

    def __add__(self, other: "LabelTally") -> "LabelTally":
        return LabelTally(self.predicted + other.predicted, self.gold + other.gold)

    @property
    def truth(self) -> list[str]:
        return self.gold

    def taken(self, places: Sequence[int]) -> "LabelTally":
        return LabelTally([self.predicted[place] for place in places], [self.gold[place] for place in places])

    @cached_property
    def weighed(self) -> Weigh:
        return one_label(self.predicted, self.gold)

    def metrics(self) -> dict[str, float]:
        return plainly(self)

    def signatures(self) -> dict[str, str]:
        return {}

    def by_kind(self) -> dict[str, dict[str, float]]:
        return {}


class Classify:
    kind: ClassVar[str] = "classify"
    roles: ClassVar[tuple[str, ...]] = ("text", "label")
    inputs: ClassVar[tuple[str, ...]] = ("text",)
    models: ClassVar[tuple[str, ...]] = ("classifier",)
    called: ClassVar[str] = "a classifier"
    metric = "accuracy"
    input_ground: ClassVar[str] = "text"
    answer_ground: ClassVar[str] = "label"

    def __init__(self, config: LabelConfig, tokenizer: Tokenizer, labels: Sequence[str]) -> None:
        self.config, self.tokenizer, self.labels = config, tokenizer, tuple(labels)
        self.dims = Dims(source_vocab=len(tokenizer), classes=len(self.labels))

    @classmethod
    def fit(cls, config: LabelConfig, rows: Iterable[Row], tokenizer: Tokenizer | None = None) -> Self:
        labels: set[str] = set()
        file = "the training data"

        def texts() -> Iterator[str]:
            nonlocal file
            for row in rows:
                if not row.fields["label"]:
                    raise DataError(f"{row.where}: the label is empty; give every training text one")
                file = row.file
                labels.add(row.fields["label"])
                if len(labels) > MOST_LABELS:
                    raise DataError(
                        f"{file}: more than {MOST_LABELS:,} different labels look like text, not classes; "
                        "choose the right column with data.columns.label"
                    )
                yield cls.spoken(row)

        learnt_from = sampled(texts())
        if len(labels) < 2:
            raise DataError(
                f"{file}: only one label ({', '.join(labels)}) in the training data; "
                f"{cls.called} needs at least two"
            )
        return cls(config, tokenizer or Tokenizer.train(config.tokenizer, learnt_from), sorted(labels))

    @classmethod
    def spoken(cls, row: Row) -> str:
        """What the vocabulary is learnt from."""
        return row.fields["text"]

    @property
    def rows_together(self) -> int:
        return ROWS_TOGETHER

    @property
    def tokenizers(self) -> dict[str, Tokenizer]:
        return {"text": self.tokenizer}

    def searching(self, **changes: Any) -> Self:
        raise RecipeError(f"{next(iter(changes))}: {self.called} does not search, so it has no such setting")

    def save(self, folder: Path) -> None:
        self.tokenizer.save(folder / "tokenizer.json")
        (folder / "labels.json").write_text(json.dumps(self.labels, ensure_ascii=False, indent=1), "utf-8")

    @classmethod
    def load(cls, config: LabelConfig, folder: Path) -> Self:
        path = folder / "labels.json"
        try:
            labels = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise CheckpointError(f"{path}: the labels cannot be read ({error})") from error
        if not (
            isinstance(labels, list)
            and all(isinstance(label, str) and not UNDECODED.search(label) for label in labels)
            and len(set(labels)) == len(labels) > 1
        ):
            raise CheckpointError(f"{path}: should hold a list of at least two labels, all different")
        return cls(config, Tokenizer.load(folder / "tokenizer.json"), labels)

    def encode(self, rows: Sequence[Row]) -> list[Text]:
        found = self.tokenizer.ids([row.fields["text"] for row in rows])
        return [self._text(row, ids) for row, ids in zip(rows, found, strict=True)]

    def _text(self, row: Row, ids: list[int]) -> Text:
        limit = self.config.max_length
        framed = np.array(self.tokenizer.framed(ids[:limit]))
        return Text(row, framed, self.index(row), cut=len(ids) > limit)

    def index(self, row: Row) -> int:
        """Of its label."""
        label = row.fields.get("label")
        if label is None:
            return -1
        if label not in self.labels:
            near = did_you_mean(label, self.labels)
            raise DataError(f"{row.where}: label {label!r} does not occur in the training data{near}")
        return self.labels.index(label)

    def usable(self, example: Text) -> bool:
        return len(example.tokens) > len(self.tokenizer.framed(()))

    def usable_input(self, example: Text) -> bool:
        return self.usable(example)

    def size(self, example: Text) -> tuple[int]:
        return (len(example.tokens),)

    def keep(self, example: Text) -> Kept:
        return example.tokens, np.array([example.label])

    def revive(self, row: Row, kept: Kept) -> Text:
        tokens, label = kept
        return Text(row, tokens, int(label[0]))

    def collate(self, examples: Sequence[Text]) -> Texts:
        return Texts(
            padded([example.tokens for example in examples]),
            torch.tensor([len(example.tokens) for example in examples]),
            torch.tensor([example.label for example in examples]),
            tuple(examples),
        )

    def loss(self, model: nn.Module, batch: Texts) -> Loss:
        logits_BC = model(batch.tokens_BT, batch.lengths_B)
        smoothing = self.config.label_smoothing
        smoothed = F.cross_entropy(logits_BC, batch.labels_B, reduction="sum", label_smoothing=smoothing)
        plain = F.cross_entropy(logits_BC.detach(), batch.labels_B, reduction="sum")
        return Loss({"texts": Part(smoothed)}, shown={"texts": plain})

    def measure(self, model: nn.Module, batch: Texts, *, thorough: bool) -> LabelTally:
        predicted = [label.text for label in self.predict(model, batch)]
        return LabelTally(predicted, [self.labels[index] for index in batch.labels_B.tolist()])

    def predict(self, model: nn.Module, batch: Texts, tell: Tell[Label] = untold) -> list[Label]:
        with torch.inference_mode():
            probabilities = torch.softmax(model(batch.tokens_BT, batch.lengths_B), dim=-1).tolist()
        labels = [
            self._label(row, example.cut) for row, example in zip(probabilities, batch.examples, strict=True)
        ]
        for place, label in enumerate(labels):
            tell(place, label)
        return labels

    def _label(self, probabilities: list[float], cut: bool) -> Label:
        index = max(range(len(probabilities)), key=probabilities.__getitem__)
        by_label = dict(zip(self.labels, probabilities, strict=True))
        return Label(self.labels[index], probabilities[index], by_label, index, cut)

    def force(self, example: Text, prediction: Label) -> Texts:
        return self.collate([Text(example.row, example.tokens, prediction.index)])

    def replay(self, model: nn.Module, batch: Texts) -> Tensor:
        log_probs_BC = torch.log_softmax(model(batch.tokens_BT, batch.lengths_B), dim=-1)
        return log_probs_BC.gather(1, batch.labels_B[:, None])

    def leave_out(self, batch: Texts, pieces: range) -> Texts:
        """A mark at the beginning is no piece of the text: without it nothing is left out."""
        n_begin, n = len(self.tokenizer.marks.begin), len(pieces)
        words = range(max(pieces.start, n_begin), pieces.stop)
        n_whole = n - len(words)
        shorter_BT = F.pad(without_each(batch.tokens_BT, words), (0, 1), value=PAD)
        return Texts(
            torch.cat([batch.tokens_BT.expand(n_whole, -1), shorter_BT]),
            torch.cat([batch.lengths_B.expand(n_whole), (batch.lengths_B - 1).expand(len(words))]),
            batch.labels_B.expand(n),
            batch.examples * n,
        )

    def grounds(self, example: Text, prediction: Label) -> dict[str, Ground]:
        words = self.tokenizer.words(example.row.fields["text"], self.config.max_length)
        marks = self.tokenizer.pieces(self.tokenizer.framed(()))
        labels = (*marks[:-1], *words, marks[-1])
        return {"text": Ground("text", labels), "label": Ground("label", (prediction.text,))}

    def site_grounds(self, site: str) -> tuple[str, str, str]:
        if site.startswith("pooling"):
            return "pooling: label → words", "label", "text"
        layer = next((int(part) + 1 for part in site.split(".") if part.isdigit()), None)
        return f"encoder layer {layer}: word → word", "text", "text"

    def pictures(self, model: nn.Module, batch: Texts) -> list[Picture]:
        return []
