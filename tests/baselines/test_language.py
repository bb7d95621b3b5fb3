"""N-grams and frequencies as the tasks tally them: against their definitions, token by token."""

import math
import random
from collections import Counter

import numpy as np
import pytest

from regard.baselines.kneser_ney import KneserNey
from regard.baselines.language import NgramModel, Unigram
from regard.files.row import Row
from regard.tasks import LanguageModel, LanguageModelConfig, Pretrain, PretrainConfig
from tiny import WORDS


def texts(n: int, seed: int) -> list[Row]:
    rng = random.Random(seed)
    return [Row({"text": " ".join(rng.choices(WORDS, k=rng.randint(3, 9)))}, "f", i) for i in range(1, n + 1)]


def test_the_perplexity_is_that_of_all_tokens_after_the_first_of_each_block() -> None:
    config = LanguageModelConfig.model_validate(
        {
            "documents": "lines",
            "max_length": 7,
            "tokenizer": {"kind": "char", "vocab_size": 40, "min_frequency": 1},
        }
    )
    train = texts(23, 1)
    task = LanguageModel.fit(config, train)
    blocks = task.layout.of(task, texts(5, 2))
    examples = [blocks[i] for i in range(len(blocks))]
    metrics = task.tally(examples, NgramModel.fit(task, train).answers(examples)).metrics()

    stream = [
        token for row in train for token in [*task.tokenizer.ids([row.cells["text"]])[0], task.input.end]
    ]
    model = KneserNey(np.array(stream), len(task.tokenizer))
    logs = np.concatenate([model.log_probs(one.arrays["ids"]) for one in examples])
    assert len(logs) == blocks.sizes.sum()
    assert metrics["perplexity"] == pytest.approx(math.exp(-logs.mean()))
    assert metrics["perplexity"] < len(task.tokenizer) / 2


def test_the_commonest_token_is_told_everywhere() -> None:
    config = PretrainConfig(documents="lines", sentences="marks", max_length=16)
    rows = [
        Row({"text": f"{row.cells['text']}. {row.cells['text']}."}, "f", row.line) for row in texts(31, 3)
    ]
    task = Pretrain.fit(config, rows)
    drawn = task.layout.of(task, rows).in_epoch(1, 0)
    examples = [drawn[i] for i in range(len(drawn))]
    metrics = task.tally(examples, Unigram.fit(task, rows).answers(examples)).metrics()

    counts = Counter(
        token for ids in task.tokenizer.ids([row.cells["text"] for row in rows]) for token in ids
    )
    total = counts.total() + len(task.tokenizer)
    hidden = [int(token) for one in examples for token in one.arrays["labels"]]
    common = counts.most_common(1)[0][0]
    assert metrics["mlm_accuracy"] == pytest.approx(100 * hidden.count(common) / len(hidden))
    nats = -sum(math.log((counts[token] + 1) / total) for token in hidden) / len(hidden)
    assert metrics["mlm_perplexity"] == pytest.approx(math.exp(nats))
    pairs = [follows for one in examples if (follows := int(one.arrays["follows"][0])) >= 0]
    assert metrics["nsp_accuracy"] == pytest.approx(100 * pairs.count(0) / len(pairs))
    assert metrics["loss"] == pytest.approx(nats + math.log(2))
