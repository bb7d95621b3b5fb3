"""Made-up pictures with captions, and captioners with random weights."""

from typing import Any

import torch

from pictures import SMALL, field, noise
from regard.fields.captions import Captions
from regard.files.row import Row
from regard.models import CaptionerConfig
from regard.tasks import CaptionConfig, Captioning
from regard.text.tokenizer import Tokenizer, TokenizerConfig

TEXTS = (
    ["a dog left of a cat", "a cat and a dog", "two animals"],
    ["one bird"],
    ["a bird above a dog", "a dog below a bird"],
)
RNN: dict[str, Any] = {"kind": "rnn", "d_embed": 10, "d_hidden": 10, "dropout": 0.0}
TRANSFORMER: dict[str, Any] = {
    "kind": "transformer",
    "d_model": 12,
    "n_heads": 3,
    "d_ff": 11,
    "n_layers": 2,
    "dropout": 0.0,
}
CNN: dict[str, Any] = {"kind": "cnn", "widths": (6, 10)}
VIT: dict[str, Any] = {"kind": "vit", **SMALL, "class_tokens": 1}
CAPTIONERS: dict[str, dict[str, Any]] = {
    "cnn-rnn": {"encoder": CNN, "decoder": RNN},
    "cnn-transformer": {"encoder": CNN, "decoder": TRANSFORMER},
    "vit-rnn-luong": {"encoder": VIT, "decoder": RNN | {"order": "luong", "cell": "lstm", "n_layers": 2}},
    "vit-transformer": {"encoder": VIT, "decoder": TRANSFORMER},
    "cnn-rnn-doubly": {"encoder": CNN, "decoder": RNN | {"doubly_stochastic": 0.7}},
}


def rows(n: int = 6) -> list[Row]:
    return [
        Row({"image": png, "captions": TEXTS[number % 3], "objects": []}, "f", number)
        for number, png in enumerate(noise(n))
    ]


def captioner(name: str, **task: Any) -> tuple[Captioning, Any, CaptionerConfig]:
    torch.manual_seed(3)
    words = TokenizerConfig(kind="word")
    tokenizer = Tokenizer.train(words, [text for several in TEXTS for text in several])
    settings = CaptionConfig(tokenizer=words, **task)
    config = CaptionerConfig(dropout=0.0, **CAPTIONERS[name])
    captioning = Captioning(settings, field(), Captions(words, tokenizer))
    model = config.build(captioning.widths).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return captioning, model, config
