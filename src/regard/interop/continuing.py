"""Both sides of a comparison of language models: prompts are continued greedily.

Both stop after as many pieces, so every continuation is compared, whether it has ended by itself or not.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from regard.files.row import rows_of
from regard.interop.hf import library, loaded, quietly
from regard.interop.parity import Answer
from regard.interop.searching import PLAINLY
from regard.models import GPT
from regard.tasks import LanguageModel
from regard.tasks.language_model import ContinueConfig
from regard.tasks.task import padded
from regard.text.tokenizer import Tokenizer

CONTINUED = 32
"""Pieces of a continuation that is compared."""


def prompts(task: LanguageModel, texts: Sequence[str]) -> list[str]:
    """The beginnings of texts, with room for a continuation in the same block."""
    return [_beginning(task.tokenizer, text, task.block // 2 - 1) for text in texts]


def _beginning(tokenizer: Tokenizer, text: str, room: int) -> str:
    """As much as so many pieces spell; a word that is cut may need more of them than it had."""
    found = tokenizer.encode(text)
    cut = text if len(found.ids) <= room else text[: found.offsets[room - 1][1]]
    while len(tokenizer.encode(cut).ids) > room:
        cut = cut[:-1]
    return cut


class Here:
    name = "regard"

    def __init__(self, task: LanguageModel, model: GPT) -> None:
        greedy = ContinueConfig(sample=False, beam=1, max_length=_most(task))
        config = task.config.model_copy(update={"decode": greedy})
        self.task, self.model = LanguageModel(config, task.tokenizer), model

    def answer(self, texts: Sequence[str]) -> list[Answer]:
        batch = self.task.collate(self.task.encode(rows_of(texts, *self.task.inputs)))
        with torch.inference_mode():
            found = self.task.predict(self.model, batch.to(next(self.model.parameters()).device))
        return [Answer(one.text, one.ids) for one in found]

    def score(self, texts: Sequence[str], answers: Sequence[Answer]) -> list[list[float]]:
        examples = self.task.encode(rows_of(texts, *self.task.inputs))
        begun = [self.task.begun(example).tolist() for example in examples]
        device = next(self.model.parameters()).device

        def logits(tokens_BT: Tensor) -> Tensor:
            told_NV: Tensor = self.model(tokens_BT.to(device))
            return told_NV.view(*tokens_BT.shape, -1).cpu()

        return _scores(logits, begun, answers)


class There:
    """The folder as transformers loads it, its own tokenizer included."""

    def __init__(self, folder: Path, task: LanguageModel) -> None:
        self.name, self.model, self.tokenizer = loaded(folder, "CausalLM")
        self.most, self.end = _most(task), task.end

    def answer(self, texts: Sequence[str]) -> list[Answer]:
        begun = self._begun(texts)
        given = self.tokenizer.pad({"input_ids": begun}, return_tensors="pt")
        with torch.inference_mode(), quietly(library()):
            found = self.model.generate(
                given["input_ids"],
                attention_mask=given["attention_mask"],
                **PLAINLY,
                max_new_tokens=self.most,
            )
        width = given["input_ids"].shape[1]
        written = [_until(self.end, row[width:]) for row in found.tolist()]
        return [Answer(self._text(own, ids), ids) for own, ids in zip(begun, written, strict=True)]

    def score(self, texts: Sequence[str], answers: Sequence[Answer]) -> list[list[float]]:
        def logits(tokens_BT: Tensor) -> Tensor:
            told_BTV: Tensor = self.model(tokens_BT, attention_mask=torch.ones_like(tokens_BT)).logits
            return told_BTV

        return _scores(logits, self._begun(texts), answers)

    def _begun(self, texts: Sequence[str]) -> list[list[int]]:
        read = self.tokenizer(list(texts))["input_ids"]
        return [ids if len(ids) > 1 or ids == [self.end] else [self.end, *ids] for ids in read]

    def _text(self, begun: list[int], ids: Sequence[int]) -> str:
        given, whole = self.tokenizer.batch_decode([begun, [*begun, *ids]], skip_special_tokens=True)
        return str(whole[len(given) :])


def _most(task: LanguageModel) -> int:
    return min(CONTINUED, task.block - task.block // 2)


def _until(end: int, ids: list[int]) -> tuple[int, ...]:
    return tuple(ids[: ids.index(end)] if end in ids else ids)


def _scores(
    logits: Callable[[Tensor], Tensor], begun: Sequence[list[int]], answers: Sequence[Answer]
) -> list[list[float]]:
    """The log-probability of each piece of the answers; what fills up on the right is in nobody's past."""
    tokens_BT = padded([np.array([*own, *answer.ids]) for own, answer in zip(begun, answers, strict=True)])
    with torch.inference_mode():
        logits_BTV = logits(tokens_BT[:, :-1])
    told_BT = logits_BTV.gather(2, tokens_BT[:, 1:, None]).squeeze(2) - logits_BTV.logsumexp(-1)
    return [
        row[len(own) - 1 : len(own) - 1 + len(answer.ids)]
        for row, own, answer in zip(told_BT.tolist(), begun, answers, strict=True)
    ]
