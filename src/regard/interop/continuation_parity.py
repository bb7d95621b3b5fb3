"""Parity engines for language models: prompts are continued greedily.

Both sides stop after the same number of tokens, so every continuation is compared, complete or not.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from regard.decode import in_order
from regard.interop.generation_config import GREEDY
from regard.interop.hf import import_transformers, load_folder, quietly
from regard.interop.parity import Answer
from regard.models import GPT
from regard.tasks import LanguageModel
from regard.tasks.language_model import ContinueConfig
from regard.tasks.task import padded
from regard.text.tokenizer import Tokenizer

COMPARED_TOKENS = 32
"""Tokens of each continuation that are compared."""


def prompts(task: LanguageModel, texts: Sequence[str]) -> list[str]:
    """Prefixes of the texts that leave room for a continuation in the same block."""
    return [_prefix(task.tokenizer, text, task.block // 2 - 1) for text in texts]


def _prefix(tokenizer: Tokenizer, text: str, max_tokens: int) -> str:
    """Longest prefix within `max_tokens`; a word cut in the middle may need more tokens than before."""
    encoding = tokenizer.encode(text)
    prefix = text if len(encoding.ids) <= max_tokens else text[: encoding.offsets[max_tokens - 1][1]]
    while len(tokenizer.encode(prefix).ids) > max_tokens:
        prefix = prefix[:-1]
    return prefix


class ContinuationEngine:
    """Our GPT as a parity engine."""

    name = "regard"

    def __init__(self, task: LanguageModel, model: GPT) -> None:
        greedy = ContinueConfig(sample=False, beam=1, max_length=_max_new_tokens(task))
        config = task.config.model_copy(update={"decode": greedy})
        self.task, self.model = LanguageModel(config, task.text), model

    def answer(self, texts: Sequence[str]) -> list[Answer]:
        batch = self.task.collate(self.task.encode(self.task.asked(texts)))
        with torch.inference_mode():
            device = next(self.model.parameters()).device
            continuations = in_order(self.task.predict(self.model, batch.to(device)))
        return [Answer(continuation.text, continuation.ids) for continuation in continuations]

    def score(self, texts: Sequence[str], answers: Sequence[Answer]) -> list[list[float]]:
        examples = self.task.encode(self.task.asked(texts))
        prompt_ids = [self.task.prompt(example).tolist() for example in examples]
        device = next(self.model.parameters()).device

        def logits(tokens_BT: Tensor) -> Tensor:
            logits_NV: Tensor = self.model(tokens_BT.to(device))
            return logits_NV.view(*tokens_BT.shape, -1).cpu()

        return _scores(logits, prompt_ids, answers)


class HFContinuationEngine:
    """The exported folder as transformers loads it, including its tokenizer."""

    def __init__(self, folder: Path, task: LanguageModel) -> None:
        self.name, self.model, self.tokenizer = load_folder(folder, "CausalLM")
        self.max_new_tokens, self.end = _max_new_tokens(task), task.input.end

    def answer(self, texts: Sequence[str]) -> list[Answer]:
        prompt_ids = self._prompt_ids(texts)
        inputs = self.tokenizer.pad({"input_ids": prompt_ids}, return_tensors="pt")
        with torch.inference_mode(), quietly(import_transformers()):
            sequences_BT = self.model.generate(
                inputs["input_ids"],
                attention_mask=inputs["attention_mask"],
                **GREEDY,
                max_new_tokens=self.max_new_tokens,
            )
        width = inputs["input_ids"].shape[1]
        continuations = [_until(self.end, row[width:]) for row in sequences_BT.tolist()]
        return [
            Answer(self._text(prompt, ids), ids)
            for prompt, ids in zip(prompt_ids, continuations, strict=True)
        ]

    def score(self, texts: Sequence[str], answers: Sequence[Answer]) -> list[list[float]]:
        def logits(tokens_BT: Tensor) -> Tensor:
            logits_BTV: Tensor = self.model(tokens_BT, attention_mask=torch.ones_like(tokens_BT)).logits
            return logits_BTV

        return _scores(logits, self._prompt_ids(texts), answers)

    def _prompt_ids(self, texts: Sequence[str]) -> list[list[int]]:
        encoded = self.tokenizer(list(texts))["input_ids"]
        return [ids if len(ids) > 1 or ids == [self.end] else [self.end, *ids] for ids in encoded]

    def _text(self, prompt: list[int], ids: Sequence[int]) -> str:
        prefix, whole = self.tokenizer.batch_decode([prompt, [*prompt, *ids]], skip_special_tokens=True)
        return str(whole[len(prefix) :])


def _max_new_tokens(task: LanguageModel) -> int:
    return min(COMPARED_TOKENS, task.block - task.block // 2)


def _until(end: int, ids: list[int]) -> tuple[int, ...]:
    return tuple(ids[: ids.index(end)] if end in ids else ids)


def _scores(
    logits: Callable[[Tensor], Tensor], prompt_ids: Sequence[list[int]], answers: Sequence[Answer]
) -> list[list[float]]:
    """Log-probability of each token of the answers; padding on the right is in no token's past."""
    tokens_BT = padded(
        [np.array([*prompt, *answer.ids]) for prompt, answer in zip(prompt_ids, answers, strict=True)]
    )
    with torch.inference_mode():
        logits_BTV = logits(tokens_BT[:, :-1])
    log_probs_BT = logits_BTV.gather(2, tokens_BT[:, 1:, None]).squeeze(2) - logits_BTV.logsumexp(-1)
    return [
        row[len(prompt) - 1 : len(prompt) - 1 + len(answer.ids)]
        for row, prompt, answer in zip(log_probs_BT.tolist(), prompt_ids, answers, strict=True)
    ]
