"""dialogue: the turns of a conversation in, the next one out.

A conversation is a text with a turn a line. Every turn ends with the end mark, which no text can spell. Of a
long one the last turns are read, and of those the end. A GPT reads turns and reply as one text, and learns
from the reply alone.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.baselines import Baseline
from regard.baselines.generation import NearestReply, NgramReply
from regard.data.example import Example
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
from regard.tasks.prediction import OTHERS, Written
from regard.tasks.reply import ReplyTally
from regard.tasks.seq2seq import Seq2Seq, Seq2SeqBatch, Seq2SeqConfig
from regard.tasks.task import Axes, Fields, layer_of
from regard.tasks.task_data import TaskData
from regard.text.tokenizer import OWN, Tokenizer


class ReplyConfig(DecodeConfig):
    """A reply says something, and may be long to a short question."""

    min_length: int = Field(1, ge=0, description="tokens at least")
    max_length: int | None = Field(60, ge=1, description="tokens at most; max_ratio is not used")

    def limit(self, n_source: int) -> int:
        return super().limit(n_source) if self.max_length is None else self.max_length + 1


class DialogueConfig(Seq2SeqConfig):
    """The turns of a conversation in, a reply out."""

    kind: Literal["dialogue"] = "dialogue"
    roles: ClassVar[tuple[str, ...]] = ("context", "reply")
    inputs: ClassVar[tuple[str, ...]] = ("context",)
    joint: Literal[True] = Field(True, description="turns and replies have one vocabulary")
    max_length: int = Field(
        128, ge=4, description="tokens; of longer contexts the end is read, longer replies are left out"
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
        return {
            "context": Turns(self.tokenizer, separator=self.separator, n_read=self.turns),
            "reply": Replies(self.tokenizer, separator=self.separator),
        }

    @property
    def hold_out(self) -> HoldOut:
        return Every("conversations", together="context")

    def longest(self, model: Any) -> int:
        """A GPT reads context and reply as one text."""
        return stream.reach(self.max_length) - 1 if isinstance(model, GPTConfig) else self.max_length


class Reply(Written):
    others: tuple["Reply", ...] = OTHERS


class Dialogue(Seq2Seq[DialogueConfig]):
    kind: ClassVar[str] = "dialogue"
    data: ClassVar[TaskData] = DIALOGUE
    says: ClassVar[str] = (
        "The turns of a conversation in, the next one out; with `stream`, events as for /v1/translate."
    )
    prediction: ClassVar[type[Written]] = Reply
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
            if tokenizer.special != OWN:
                raise RecipeError(
                    "model.init_from: a dialogue needs a vocabulary with the marks of regard's own; begin "
                    "with a language model that was trained here, or without init_from"
                )
            return cls.of_vocabularies(config, tokenizer, tokenizer).checked()
        pairs = sampled((row.cells["context"], row.cells["reply"]) for row in rows)
        turns = dict.fromkeys(
            turn for context, reply in pairs for turn in (*split(context, config.separator), reply)
        )
        tokenizer = Tokenizer.train(config.tokenizer, turns)
        return cls.of_vocabularies(config, tokenizer, tokenizer).checked()

    @classmethod
    def rows(cls, record: Row) -> Iterator[Row]:
        return exchanges(record)

    def measure(self, model: nn.Module, batch: Seq2SeqBatch, *, thorough: bool) -> ReplyTally:
        """Compare replies; of several replies to a context, the first has the model's reply beside it."""
        with_references = [example for example in batch.examples if example.row.cells["references"]]
        replies = iter(self._replies(model, with_references, batch.target_BT.device, thorough))
        tokens = batch.keep_BT.sum(dim=1).tolist()
        log_probs = torch.split(self.log_probs(model, batch).double(), tokens)
        texts = [next(replies) if example.row.cells["references"] else "" for example in batch.examples]
        return self.tally(
            batch.examples, [*zip(texts, [-float(each.sum()) for each in log_probs], strict=True)]
        )

    def tally(self, examples: Sequence[Example], answers: Sequence[Any]) -> ReplyTally:
        """The tally of pairs: the model's reply, and −log of the probability of the right one."""
        cells = [example.row.cells for example in examples]
        return ReplyTally.of(
            self.config.bleu_tokenize,
            self.target.tokenizer.digest,
            [row["reply"] for row in cells],
            [nats for _, nats in answers],
            [len(example.arrays["target"]) - 1 for example in examples],
            [text if row["references"] else "" for row, (text, _) in zip(cells, answers, strict=True)],
            [row["references"].split("\n") if row["references"] else [] for row in cells],
        )

    def _replies(
        self, model: nn.Module, examples: Sequence[Example], device: torch.device, thorough: bool
    ) -> list[str]:
        return self.texts(model, self.collate(examples).to(device), thorough=thorough) if examples else []

    def forward(
        self,
        model: nn.Module,
        batch: Seq2SeqBatch,
        keep_BT: Tensor | None = None,
        head: heads.Head | None = None,
    ) -> Tensor:
        if isinstance(model, GPT):
            return stream.forward(model, batch, keep_BT, head or heads.logits)
        return super().forward(model, batch, keep_BT, head)

    def start(self, model: nn.Module, batch: Seq2SeqBatch) -> Any:
        if isinstance(model, GPT):
            return stream.start(model, batch, self.config.max_length)
        return super().start(model, batch)

    def axes(self, example: Example, prediction: Written) -> Axes:
        axes = super().axes(example, prediction)
        so_far = (*axes.by_name["source"].labels, *axes.by_name["target"].labels[:-1])
        return replace(axes, by_name=axes.by_name | {"stream": Axis("what was said so far", so_far)})

    def site_axes(self, site: str) -> tuple[str, str, str]:
        if site.startswith("stack."):
            return f"layer {layer_of(site)}: reply → what was said so far", "target", "stream"
        return super().site_axes(site)
