"""Summaries: what becomes of long documents, and what is scored."""

import pytest
import torch

from regard.decode import in_order
from regard.files.row import Row
from regard.metrics.resample import intervals
from regard.metrics.rouge import rouge
from regard.tasks import Summarize, SummarizeConfig
from regard.tasks.summarize import SummaryTally
from regard.text.tokenizer import EOS
from tiny import TOKENIZER, WORDS, rnn, stirred


def row(document: str, summary: str | None = None) -> Row:
    return Row({"document": document} | ({} if summary is None else {"summary": summary}), "x.tsv", 1)


@pytest.fixture
def task() -> Summarize:
    config = SummarizeConfig.model_validate({"tokenizer": TOKENIZER, "max_length": 5})
    return Summarize.fit(config, [row(" ".join(WORDS), "amber cedar")])


def test_both_sides_have_one_vocabulary(task: Summarize) -> None:
    assert task.source.tokenizer is task.target.tokenizer
    assert task.widths.shared
    assert task.tokenizers == {"document": task.source.tokenizer, "summary": task.source.tokenizer}


def test_a_long_document_is_cut_and_learnt_from(task: Summarize) -> None:
    long, short, wordy, empty = task.encode(
        [
            row("amber birch cedar delta ember fjord", "amber"),
            row("amber birch cedar delta ember", "amber"),
            row("amber", "amber birch cedar delta ember fjord"),
            row("", "amber"),
        ]
    )
    assert task.source_ids(long) == [
        *task.source.tokenizer.encode("amber birch cedar delta ember").ids,
        EOS,
    ]
    assert (long.notes["cut"], short.notes["cut"]) == (True, False)
    assert [task.unusable(one) for one in (long, short, wordy, empty)] == [None, None, "too long", "empty"]


def test_a_cut_document_is_told(task: Summarize) -> None:
    model = stirred(rnn().build(task.widths))
    texts = ["amber birch cedar delta ember fjord", "amber birch", ""]
    answers = in_order(task.predict(model, task.collate(task.encode([row(text) for text in texts]))))
    assert [answer.cut for answer in answers] == [True, False, False]
    assert answers[0].to_json()["input_cut"] is True
    assert answers[2].text == ""


def test_it_is_scored_beside_the_first_words(task: Summarize) -> None:
    model = stirred(rnn().build(task.widths))
    document = " ".join(WORDS)
    batch = task.collate(task.encode([row(document, "amber cedar"), row("birch", "birch")]))
    with torch.no_grad():
        tally = task.measure(model, batch, thorough=True)
    written = task.texts(model, batch, thorough=True)
    assert tally.scores == [rouge(written[0], "amber cedar"), rouge(written[1], "birch")]
    beside = tally.by_kind()
    assert beside["summaries"] == tally.metrics()
    assert beside["first 10 words"]["rouge1"] == pytest.approx(100 * (2 * 2 / 12 + 1) / 2)
    assert (tally + tally).taken([2, 1]) == tally
    assert tally.truth == ["amber cedar", "birch"]


def test_scores_are_means_over_texts() -> None:
    right, wrong = (100.0, 100.0, 100.0), (0.0, 0.0, 0.0)
    tally = SummaryTally(["a b"], [right], [wrong]) + SummaryTally(["d"], [wrong], [right])
    assert tally.metrics() == {"rouge1": 50, "rouge2": 50, "rougeL": 50}
    assert intervals(tally)["rougeL"] == (0, 100)
