"""Baselines that write: the nearest neighbour against all cosines, replies against the definition."""

import math
import random
from typing import Any

import numpy as np
import pytest
from sklearn.metrics.pairwise import cosine_similarity

from regard.baselines import generation
from regard.baselines.generation import Copy, Lead, Nearest, NearestReply, NgramReply
from regard.baselines.kneser_ney import KneserNey
from regard.baselines.scikit import Ngrams
from regard.files.row import Row
from regard.tasks import Dialogue, DialogueConfig, Summarize, SummarizeConfig, Translate, TranslateConfig
from tiny import WORDS

RNG = random.Random(13)


def pairs(n: int, given: str, wanted: str, **more: str) -> list[Row]:
    rows = []
    for number in range(1, n + 1):
        words = RNG.choices(WORDS, k=RNG.randint(2, 6))
        cells = {given: " ".join(words), wanted: f"{words[0].upper()} {number}", **more}
        rows.append(Row(cells, "f", number))
    return rows


def test_a_copy_is_the_input() -> None:
    rows = pairs(7, "source", "target")
    task = Translate.fit(TranslateConfig(), rows)
    examples = task.encode(rows)
    answers = Copy.fit(task, rows).answers(examples)
    assert list(answers) == [row.cells["source"] for row in rows]
    mirrored = [Row({"source": "a b c d e", "target": "a b c d e"}, "f", 1)]
    examples = task.encode(mirrored)
    assert task.tally(examples, Copy.fit(task, rows).answers(examples)).metrics()["bleu"] == pytest.approx(
        100
    )


def test_a_beginning_is_as_long_as_summaries_are() -> None:
    rows = [Row({"document": "a b c d e f", "summary": "x " * n}, "f", n) for n in (1, 2, 2, 3, 4)]
    task = Summarize.fit(SummarizeConfig(), rows)
    assert list(Lead.fit(task, rows).answers(task.encode(rows[:1]))) == ["a b"]


@pytest.mark.parametrize("together", [3, 256])
def test_the_neighbour_is_the_nearest_of_all(together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generation, "TOGETHER", together)
    train, asked = pairs(31, "source", "target"), pairs(11, "source", "target")
    task = Translate.fit(TranslateConfig(), train)
    answers = Nearest.fit(task, train).answers(task.encode(asked))
    inputs = [row.cells["source"] for row in train]
    ngrams = Ngrams(inputs)
    similar = cosine_similarity(
        ngrams.weights([row.cells["source"] for row in asked]), ngrams.weights(inputs)
    )
    assert list(answers) == [train[place].cells["target"] for place in similar.argmax(1)]
    assert list(Nearest.fit(task, train).answers(task.encode(train[:5]))) == [
        r.cells["target"] for r in train[:5]
    ]


def test_replies_of_neighbours_and_of_ngrams() -> None:
    rows = pairs(17, "context", "reply", references="x")
    task = Dialogue.fit(DialogueConfig(), rows)
    examples = task.encode(rows)
    said = NearestReply.fit(task, rows).answers(examples)
    assert [text for text, _ in said] == [row.cells["reply"] for row in rows]
    metrics = task.tally(examples, said).metrics()
    assert metrics["probability"] == 0
    assert metrics["perplexity"] == math.inf

    spoken = NgramReply.fit(task, rows).answers(examples)
    model = KneserNey(np.concatenate([one.arrays["target"] for one in examples]), len(task.target.tokenizer))
    nats = [-float(model.log_probs(one.arrays["target"]).sum()) for one in examples]
    assert [cost for _, cost in spoken] == nats
    tokens = sum(len(one.arrays["target"]) - 1 for one in examples)
    found: dict[str, Any] = task.tally(examples, spoken).metrics()
    assert found["loss"] == pytest.approx(sum(nats) / tokens)
    assert found["perplexity"] < len(task.target.tokenizer)
