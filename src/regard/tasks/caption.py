"""caption: a picture in, a sentence about it out, by a decoder that looks at regions of the picture.

A picture may have several captions, all of them right: it is encoded once, and each of them is learnt from.
Where data say what is where, it is measured whether attention points there when a word names it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self
from zlib import crc32

import numpy as np
from pydantic import Field
from torch import Tensor, nn

from regard.baselines import Baseline
from regard.baselines.captions import CommonestCaption, NearestPicture
from regard.config import Config
from regard.data.example import Example
from regard.data.sample import sampled
from regard.decode import DecodeConfig, hypotheses
from regard.errors import DataError
from regard.fields.captions import Captions
from regard.fields.field import Augmented
from regard.fields.image import Image, ImageSettings
from regard.fields.objects import Objects
from regard.files.row import Row
from regard.metrics.metric import Metric
from regard.models import Captioner
from regard.tasks.caption_data import CAPTION
from regard.tasks.caption_tally import CaptionTally
from regard.tasks.pointing import pointed
from regard.tasks.prediction import OTHERS, Written
from regard.tasks.seq2seq import QUICK_SEARCH, Seq2Seq, Seq2SeqBatch, Seq2SeqConfig
from regard.tasks.task import Fields, Loss
from regard.tasks.task_data import TaskData
from regard.text.tokenizer import BOS, EOS, Tokenizer

WORD = re.compile(r"\w+")


class CaptionSearch(DecodeConfig):
    """A caption is as long as it has to be, however large its picture is."""

    min_length: int = Field(1, ge=0, description="tokens at least")
    max_length: int | None = Field(40, ge=1, description="tokens at most; max_ratio is not used")

    def limit(self, n_source: int) -> int:
        return super().limit(n_source) if self.max_length is None else self.max_length + 1


class ImageFields(Config):
    image: ImageSettings = ImageSettings()


class CaptionConfig(Seq2SeqConfig):
    """A picture in, a sentence about it out."""

    kind: Literal["caption"] = "caption"
    roles: ClassVar[tuple[str, ...]] = ("image", "captions", "objects")
    inputs: ClassVar[tuple[str, ...]] = ("image",)
    gathered: ClassVar[tuple[str, str]] = ("image", "captions")
    fields: ImageFields = Field(ImageFields(), description="what pictures are: a table `[fields.image]`")
    joint: Literal[False] = Field(False, description="a picture has no vocabulary to share")
    max_length: int = Field(64, ge=4, description="tokens; longer captions are left out of training")
    label_smoothing: float = Field(0.0, ge=0, lt=1)
    references: int = Field(
        0, ge=0, description="captions of a picture that are learnt from in an epoch, drawn anew; 0: all"
    )
    names: dict[str, str] = Field(
        {}, description="other words for objects, for the pointing score: { car = 'automobile' }"
    )
    decode: CaptionSearch = CaptionSearch()

    @property
    def unfitted(self) -> Fields:
        image = Image(self.fields.image)
        return {"image": image, "captions": Captions(self.tokenizer), "objects": Objects()}


class Caption(Written):
    others: tuple["Caption", ...] = OTHERS


class Captioning(Seq2Seq[CaptionConfig]):
    """The array `target` of an example holds all of its captions, each between a begin and an end mark."""

    kind: ClassVar[str] = "caption"
    data: ClassVar[TaskData] = CAPTION
    says: ClassVar[str] = "Pictures in, captions out; with `stream`, events as for /v1/translate."
    called: ClassVar[str] = "a captioner"
    prediction: ClassVar[type[Written]] = Caption
    settings: ClassVar[type[Any]] = CaptionConfig
    models: ClassVar[tuple[str, ...]] = ("captioner",)
    metric = Metric("cider")
    baselines: ClassVar[tuple[type[Baseline], ...]] = (CommonestCaption, NearestPicture)

    def __init__(self, config: CaptionConfig, source: Image, target: Captions) -> None:
        super().__init__(config, source, target)
        self.augmented = source if isinstance(source, Augmented) and source.draws else None

    @classmethod
    def fit(cls, config: CaptionConfig, rows: Iterable[Row], tokenizer: Tokenizer | None = None) -> Self:
        image, captions = cls._unfitted(config)
        pairs = sampled(
            (image.parse(row.cells["image"], row.where), text)
            for row in rows
            for text in row.cells["captions"]
        )
        if not pairs:
            raise DataError("the training data hold no captions; give every picture at least one")
        pictures = {str(source.cell): source for source, _ in pairs}
        texts = (text for _, text in pairs)
        return cls(config, image.fit(pictures.values()), captions.fit(texts, tokenizer)).checked()

    @property
    def given(self) -> dict[str, Image]:
        """The fields of what is read."""
        return {"image": self.source}

    def encode(self, rows: Sequence[Row]) -> list[Example]:
        sources = self.source.encode([self.value(row) for row in rows])
        texts = [text for row in rows for text in row.cells.get("captions", ())]
        ids = iter(self.target.tokenizer.ids(texts))
        examples = []
        for row, coded in zip(rows, sources, strict=True):
            every = [next(ids) for _ in row.cells.get("captions", ())]
            short = [one for one in every if 0 < len(one) <= self.config.max_length]
            framed = [token for one in short for token in (BOS, *one, EOS)]
            notes = {**coded.notes, "target_cut": bool(every) and not short}
            target = np.array(framed or [BOS], np.int64)
            examples.append(Example(row, {**coded.arrays, "target": target}, notes))
        return examples

    def targets(self, example: Example) -> Sequence[Any]:
        target = np.asarray(example.arrays["target"])
        return np.split(target, np.flatnonzero(target == BOS)[1:])

    def unusable(self, example: Example) -> str | None:
        """Why nothing can be learnt: there is no caption, or none that is short enough."""
        if example.notes.get("target_cut"):
            return "too long"
        return None if len(example.arrays["target"]) > 2 else "without a caption"

    @property
    def draws(self) -> bool:  # type: ignore[override]
        return self.augmented is not None or self.config.references > 0

    def draw(self, example: Example, rng: np.random.Generator, others: Sequence[Example]) -> Example:
        arrays = dict(example.arrays)
        if self.augmented is not None:
            arrays |= self.augmented.draw(arrays, rng)
        targets = self.targets(example)
        if 0 < self.config.references < len(targets):
            chosen = sorted(rng.choice(len(targets), self.config.references, replace=False))
            arrays["target"] = np.concatenate([targets[at] for at in chosen])
        return replace(example, arrays=arrays)

    def loss(self, model: nn.Module, batch: Seq2SeqBatch) -> Loss:
        """The loss, in training with the penalty of Xu et al.: per caption −log p + weight · penalty."""
        weight = model.config.decoder.doubly_stochastic if isinstance(model, Captioner) else 0
        if not (weight and model.training):
            return super().loss(model, batch)
        penalties: list[Tensor] = []

        def penalised(*args: Any, **settings: Any) -> Any:
            out, penalty_B = model(*args, penalised=True, **settings)
            penalties.append(penalty_B)
            return out

        plain = self.loss_of(penalised, batch)
        tokens = plain.parts["tokens"]
        return replace(plain, parts={"tokens": replace(tokens, sum=tokens.sum + weight * penalties[0].sum())})

    def start(self, model: nn.Module, batch: Seq2SeqBatch) -> Any:
        """The state of one search for each picture, however many captions it has."""
        once = {name: tensor for name, tensor in batch.inputs.items() if name != "rows"}
        return super().start(model, replace(batch, inputs=once))

    def source_ids(self, example: Example) -> list[int]:
        return [crc32(np.ascontiguousarray(example.arrays["pixels"]).tobytes())]

    def expected(self, example: Example) -> str:
        return next(iter(example.row.cells["captions"]), "")

    def measure(self, model: nn.Module, batch: Seq2SeqBatch, *, thorough: bool) -> CaptionTally:
        """Where attention points is measured only in a thorough evaluation, of a single model."""
        decode = self.decode if thorough else self.decode.model_copy(update=QUICK_SEARCH)
        ranked = hypotheses(self.search(model, batch, decode, extends=True))
        answers = [self.told(*answer) for answer in zip(batch.examples, ranked, strict=True)]
        tally = self.tally(batch.examples, [answer.text for answer in answers])
        if not thorough or not isinstance(model, Captioner):
            return tally
        return replace(tally, pointed=pointed(self, model, batch, answers))

    def tally(self, examples: Sequence[Example], answers: Sequence[Any]) -> CaptionTally:
        """The tally of texts."""
        references = [example.row.cells["captions"] or [""] for example in examples]
        return CaptionTally([*answers], references, [(0, 0)] * len(examples))

    def forced(self, batch: Seq2SeqBatch, answers: Sequence[Written]) -> Seq2SeqBatch:
        """The batch that replays an answer to each of its examples."""
        targets = ({"target": np.array((BOS, *answer.ids, EOS))} for answer in answers)
        pairs = zip(batch.examples, targets, strict=True)
        examples = [replace(one, arrays={**one.arrays, **target}) for one, target in pairs]
        return self.collate(examples).to(batch.target_BT.device)

    def words(self, ids: Sequence[int]) -> Iterator[tuple[str, list[int]]]:
        """The words of a caption in lower case, each with the places of its tokens."""
        ends = [len(self.target.tokenizer.decode(ids[:n])) for n in range(len(ids) + 1)]
        for word in WORD.finditer(self.target.tokenizer.decode(ids)):
            begin, end = word.span()
            places = [at for at in range(len(ids)) if ends[at] < end and ends[at + 1] > begin]
            if places:
                yield word[0].lower(), places

    def named(self, word: str, objects: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """The objects that a word names."""
        name = self.config.names.get(word, word).lower()
        return [one for one in objects if one["name"].lower() in (word, name)]
