"""A text is generated from any kind of input: here from the toy picture, which no file of `src` knows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from regard.data.example import Example
from regard.fields.text import Text
from regard.files.row import Row
from regard.layers import heads
from regard.layers.inputs import Inputs
from regard.metrics.metric import Metric
from regard.tasks.prediction import Written
from regard.tasks.seq2seq import Seq2Seq, Seq2SeqBatch, Seq2SeqConfig
from regard.tasks.task import Fields
from regard.text.tokenizer import BOS, EOS
from tiny import TOKENIZER
from toy.image import ToyImage


class CaptionConfig(Seq2SeqConfig):
    kind: Literal["toy_caption"] = "toy_caption"
    roles: ClassVar[tuple[str, ...]] = ("toy", "caption")
    inputs: ClassVar[tuple[str, ...]] = ("toy",)

    @property
    def unfitted(self) -> Fields:
        return {"toy": ToyImage(side=2), "caption": Text(self.tokenizer)}


class Caption(Seq2Seq[CaptionConfig]):
    kind: ClassVar[str] = "toy_caption"
    prediction: ClassVar[type[Written]] = Written
    metric = Metric("loss", higher=False)

    def measure(self, model: nn.Module, batch: Seq2SeqBatch, *, thorough: bool) -> Any:
        raise NotImplementedError

    def tally(self, examples: Sequence[Example], answers: Sequence[Any]) -> Any:
        raise NotImplementedError


class Brightness(nn.Module):
    """Adds the mean of a picture to the embedding of every token that is read."""

    def __init__(self, n_tokens: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(n_tokens, 7)

    def forward(
        self,
        inputs: Inputs,
        target_BT: Tensor,
        keep_BT: Tensor | None = None,
        head: heads.Head = heads.logits,
    ) -> Tensor:
        hidden_BTD = self.embed(target_BT) + inputs["pixels"].mean((1, 2))[:, None, None]
        out = heads.HeadInput(hidden_BTD.flatten(0, 1), self.embed.weight)
        return head(out if keep_BT is None else out.at(keep_BT.flatten()))


DARK, BRIGHT = [[0.0, 1.0], [2.0, 3.0]], [[7.0, 8.0], [9.0, 5.0]]


def row(pixels: Any, caption: str | None = None) -> Row:
    return Row({"toy": pixels} | ({} if caption is None else {"caption": caption}), "x.jsonl", 1)


def fitted() -> Caption:
    config = CaptionConfig.model_validate({"tokenizer": TOKENIZER, "max_length": 5})
    return Caption.fit(config, [row(DARK, "amber birch"), row(BRIGHT, "cedar")])


def test_a_picture_and_its_caption_are_an_example(tmp_path: Path) -> None:
    task = fitted()
    assert task.source.mean == np.mean([DARK, BRIGHT])
    assert dict(task.widths.input) == {
        "side": 2,
        "mean": task.source.mean,
        "deviation": task.source.deviation,
    }
    assert list(task.tokenizers) == ["caption"]
    assert list(task.config.asked) == ["toy"]
    known, unknown = task.encode([row(DARK, "birch amber"), row(BRIGHT)])
    assert known.arrays["pixels"].tolist() == DARK
    assert known.arrays["target"].tolist() == [BOS, *task.target.tokenizer.encode("birch amber").ids, EOS]
    assert unknown.arrays["target"].tolist() == [BOS]
    assert task.size(known) == (4, 3)
    assert task.unusable(known) is None
    task.save(tmp_path)
    loaded = Caption.load(task.config, tmp_path)
    assert loaded.widths == task.widths
    assert loaded.encode([row(DARK, "cedar")])[0].arrays["target"].tolist()[1:-1] == [
        *task.target.tokenizer.encode("cedar").ids
    ]


def test_a_caption_is_learnt_replayed_and_explained_from_patches() -> None:
    task = fitted()
    model = Brightness(task.widths.target["vocab"])
    examples = task.encode([row(DARK, "amber birch"), row(BRIGHT, "cedar")])
    batch = task.collate(examples)
    assert batch.counts == {"tokens": 5}
    loss = task.loss(model, batch).parts["tokens"].sum
    loss.backward()
    assert model.embed.weight.grad is not None
    prediction = Written(text="cedar", ids=tuple(examples[1].arrays["target"][1:-1].tolist()))
    forced = task.force(examples[0], prediction)
    with torch.no_grad():
        whole_1T = task.replay(model, forced)
        without_BT = task.replay(
            model, task.leave_out(forced, task.axes(examples[0], prediction).by_name["source"], range(4))
        )
    assert whole_1T.shape == (1, 2)
    changed = (without_BT != whole_1T).any(dim=1).tolist()
    assert changed == [pixel != task.source.mean for pixel in np.array(DARK).flatten().tolist()]
    axes = task.axes(examples[0], prediction)
    assert (axes.by_name["source"].name, axes.by_name["source"].grid) == ("toy", (2, 2))
