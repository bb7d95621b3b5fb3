"""dialogue: the turns of a conversation in, the next one out.

A conversation is a text with a turn a line. Every turn ends with the end mark, which no text can spell. Of a
long one the last turns are read, and of those the end. A GPT reads turns and reply as one text, and learns
from the reply alone.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import torch
from pydantic import BaseModel, Field
from torch import Tensor, nn

from regard.baselines import Baseline
from regard.baselines.generation import NearestReply, NgramReply
from regard.data.sample import sampled
from regard.data.splits import Every, HoldOut
from regard.decode import DecodeConfig
from regard.errors import RecipeError
from regard.fields.axis import Axis
from regard.fields.turns import Replies, Turns, exchanges, split
from regard.files.row import Row
from regard.layers import heads
from regard.metrics.metric import Metric
from regard.metrics.text import BleuTokenizer
from regard.models import GPT, GPTConfig
from regard.tasks import stream
from regard.tasks.dialogue_data import DIALOGUE
from regard.tasks.dialogue_data import Reply as ReplyAnswer
from regard.tasks.pair import Pair, Pairs, Written
from regard.tasks.reply import ReplyTally
from regard.tasks.seq2seq import Seq2Seq, Seq2SeqConfig
from regard.tasks.task import Axes, Fields, layer_of
from regard.tasks.task_data import TaskData
from regard.text.tokenizer import EOS, OWN, Tokenizer


class ReplyConfig(DecodeConfig):
    """A reply says something, and may be long to a short question."""

    min_length: int = Field(1, ge=0, description="pieces at least")
    max_length: int | None = Field(60, ge=1, description="pieces at most; max_ratio is not used")

    def limit(self, n_source: int) -> int:
        return super().limit(n_source) if self.max_length is None else self.max_length + 1


class DialogueConfig(Seq2SeqConfig):
    kind: Literal["dialogue"] = "dialogue"
    roles: ClassVar[tuple[str, ...]] = ("context", "reply")
    inputs: ClassVar[tuple[str, ...]] = ("context",)
    joint: Literal[True] = Field(True, description="turns and replies have one vocabulary")
    max_length: int = Field(
        128, ge=4, description="pieces; of longer contexts the end is read, longer replies are left out"
    )
    turns: int = Field(3, ge=1, le=64, description="last turns of a conversation that are read")
    separator: str = Field(
        "__eou__",
        min_length=1,
        max_length=40,
        description="stands between turns in a cell or a line of text, as a line end does",
    )
    bleu_tokenize: BleuTokenizer = Field("13a", description="sacrebleu's; 'zh' for Chinese replies")
    decode: ReplyConfig = ReplyConfig()

    @property
    def unfitted(self) -> Fields:
        return {"context": Turns(separator=self.separator), "reply": Replies(self.separator)}

    @property
    def hold_out(self) -> HoldOut:
        return Every("conversations", together="context")

    def longest(self, model: Any) -> int:
        """A GPT reads context and reply as one text."""
        return stream.reach(self.max_length) - 1 if isinstance(model, GPTConfig) else self.max_length


class Dialogue(Seq2Seq[DialogueConfig]):
    kind: ClassVar[str] = "dialogue"
    data: ClassVar[TaskData] = DIALOGUE
    says: ClassVar[str] = (
        "The turns of a conversation in, the next one out; with `stream`, events as for /v1/translate."
    )
    prediction: ClassVar[type[BaseModel]] = ReplyAnswer
    route: ClassVar[str] = "reply"
    cut: ClassVar[str] = "only the end was read"
    converses: ClassVar[bool] = True
    settings: ClassVar[type[Any]] = DialogueConfig
    models: ClassVar[tuple[str, ...]] = ("transformer", "rnn_seq2seq", "gpt")
    metric = Metric("probability")
    baselines: ClassVar[tuple[type[Baseline], ...]] = (NgramReply, NearestReply)
    learns_from_cut: ClassVar[bool] = True

    @classmethod
    def fit(cls, config: DialogueConfig, rows: Iterable[Row], tokenizer: Tokenizer | None = None) -> Self:
        """Each turn counts once, though it stands in many contexts."""
        if tokenizer is not None:
            if tokenizer.marks != OWN:
                raise RecipeError(
                    "model.init_from: a dialogue needs a vocabulary with the marks of regard's own; begin "
                    "with a language model that was trained here, or without init_from"
                )
            return cls(config, tokenizer, tokenizer).checked()
        pairs = sampled((row.cells["context"], row.cells["reply"]) for row in rows)
        turns = dict.fromkeys(
            turn for context, reply in pairs for turn in (*split(context, config.separator), reply)
        )
        tokenizer = Tokenizer.train(config.tokenizer, turns)
        return cls(config, tokenizer, tokenizer).checked()

    @classmethod
    def rows(cls, record: Row) -> Iterator[Row]:
        return exchanges(record)

    def turns(self, row: Row) -> list[str]:
        """The turns that are read."""
        return split(row.cells["context"], self.config.separator)[-self.config.turns :]

    def read(self, rows: Sequence[Row]) -> list[list[int]]:
        contexts = [self.turns(row) for row in rows]
        found = iter(self.source.ids([turn for turns in contexts for turn in turns]))
        return [[piece for _ in turns for piece in (*next(found), EOS)] or [EOS] for turns in contexts]

    def part(self, source: list[int]) -> list[int]:
        """The end, which is answered."""
        return source[-self.config.max_length - 1 :]

    def source_labels(self, example: Pair) -> tuple[str, ...]:
        labels = [
            label
            for turn in self.turns(example.row)
            for label in (*self.source.words(turn, 4 * len(turn) + 1), "</s>")
        ]
        return tuple(labels[-len(example.source) :])

    def measure(self, model: nn.Module, batch: Pairs, *, thorough: bool) -> ReplyTally:
        """Only the first of several replies to a context has it answered."""
        asked = [example for example in batch.examples if example.row.cells["references"]]
        answers = iter(self._answers(model, asked, batch.source_BK.device, thorough))
        tokens = batch.keep_BT.sum(dim=1).tolist()
        log_probs = torch.split(self.log_probs(model, batch).double(), tokens)
        said = [next(answers) if example.row.cells["references"] else "" for example in batch.examples]
        return self.tally(
            batch.examples, [*zip(said, [-float(each.sum()) for each in log_probs], strict=True)]
        )

    def tally(self, examples: Sequence[Pair], answers: Sequence[Any]) -> ReplyTally:
        """The tally of pairs: what is said, and −log of the probability of the right reply."""
        cells = [example.row.cells for example in examples]
        return ReplyTally.of(
            self.config.bleu_tokenize,
            self.target.digest,
            [row["reply"] for row in cells],
            [nats for _, nats in answers],
            [len(example.target) - 1 for example in examples],
            [said if row["references"] else "" for row, (said, _) in zip(cells, answers, strict=True)],
            [row["references"].split("\n") if row["references"] else [] for row in cells],
        )

    def _answers(
        self, model: nn.Module, asked: Sequence[Pair], device: torch.device, thorough: bool
    ) -> list[str]:
        return self.written(model, self.collate(asked).to(device), thorough=thorough) if asked else []

    def forward(
        self, model: nn.Module, batch: Pairs, keep_BT: Tensor | None = None, read: heads.Head | None = None
    ) -> Tensor:
        if isinstance(model, GPT):
            return stream.forward(model, batch, keep_BT, read or heads.logits)
        return super().forward(model, batch, keep_BT, read)

    def start(self, model: nn.Module, batch: Pairs) -> Any:
        if isinstance(model, GPT):
            return stream.start(model, batch, self.config.max_length)
        return super().start(model, batch)

    def axes(self, example: Pair, prediction: Written) -> Axes:
        axes = super().axes(example, prediction)
        so_far = (*axes.by_name["source"].labels, *axes.by_name["target"].labels[:-1])
        return replace(axes, by_name=axes.by_name | {"stream": Axis("what was said so far", so_far)})

    def site_axes(self, site: str) -> tuple[str, str, str]:
        if site.startswith("stack."):
            return f"layer {layer_of(site)}: reply → what was said so far", "target", "stream"
        return super().site_axes(site)
