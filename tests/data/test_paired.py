"""Pairs of sentences: what follows what, from where, how often; the same whenever they are asked for."""

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.data.cache import write
from regard.data.example import Example
from regard.data.layout import scored
from regard.data.paired import Paired
from regard.data.splits import Every, closes
from regard.errors import DataError
from regard.fields.sentences import DOES_NOT, FOLLOWS, NO_PAIR
from regard.files.documents import documents
from regard.files.row import Row
from regard.tasks import Pretrain, PretrainConfig

ROOM = 23
N_DOCUMENTS = 41


def corpus() -> list[list[str]]:
    """Every sentence names its document and its number, so that it can be found again."""
    rng = np.random.default_rng(5)
    return [
        [f"doc{d} s{s} {'go ' * int(rng.integers(0, 6))}".strip() for s in range(int(rng.integers(2, 19)))]
        for d in range(N_DOCUMENTS)
    ]


ROWS = [Row({"text": "\n".join(own)}, "a.txt", number) for number, own in enumerate(corpus(), 1)]


@pytest.fixture(scope="module")
def task() -> Pretrain:
    tokenizer = {"vocab_size": 200, "min_frequency": 1}
    config = PretrainConfig.model_validate({"tokenizer": tokenizer, "max_length": ROOM})
    return Pretrain.fit(config, ROWS)


def texts(task: Pretrain, example: Example) -> list[list[tuple[int, int]]]:
    """The sentences of each run, by document and number, as they were before anything was hidden."""
    tokens = example.arrays["ids"].copy()
    tokens[example.arrays["places"]] = example.arrays["labels"]
    found = []
    for run in np.split(tokens, example.arrays["second"]):
        words = task.tokenizer.decode(run.tolist()).split()
        names = [(int(a[3:]), int(b[1:])) for a, b in pairwise(words) if a.startswith("doc")]
        found.append(names)
    return found


def follows(example: Example) -> int:
    return int(example.arrays["follows"][0])


def test_texts_are_runs_of_sentences_and_the_answer_is_true(task: Pretrain) -> None:
    lengths = {d: len(own) for d, own in enumerate(corpus())}
    examples = Paired.of(task, ROWS)
    for epoch in range(3):
        for example in examples.in_epoch(7, epoch):
            first, second = texts(task, example)
            for run in (first, second):
                assert run, "at least one sentence"
                assert run == [(run[0][0], run[0][1] + n) for n in range(len(run))], "one after another"
                assert run[-1][1] < lengths[run[0][0]]
            is_next = second[0] == (first[-1][0], first[-1][1] + 1)
            assert follows(example) == (FOLLOWS if is_next else DOES_NOT)
            assert is_next or first[0][0] != second[0][0], "never of the same document"


def test_sizes_hold_and_long_documents_fill_them(task: Pretrain) -> None:
    examples = Paired.of(task, ROWS).in_epoch(1, 0)
    found = [len(example.arrays["ids"]) for example in examples]
    assert max(found) <= ROOM + 3
    assert all(length <= size for length, size in zip(found, examples.sizes[:, 0], strict=True))
    full = [n for n, size in zip(found, examples.sizes[:, 0], strict=True) if size == ROOM + 3]
    assert np.mean(full) > 0.75 * (ROOM + 3)


def test_half_of_the_pairs_are_true(task: Pretrain) -> None:
    examples = Paired.of(task, ROWS)
    counts = Counter(follows(e) for epoch in range(30) for e in examples.in_epoch(3, epoch))
    n = sum(counts.values())
    assert n > 2000
    assert abs(counts[FOLLOWS] / n - 0.5) < 3 * (0.25 / n) ** 0.5
    assert counts[NO_PAIR] == 0


def test_the_length_of_a_text_does_not_tell_whether_it_follows(task: Pretrain) -> None:
    """Nor does that of both: to take the longer ones for those that follow is right half of the time."""
    examples = Paired.of(task, ROWS)
    pairs = [e for epoch in range(30) for e in examples.in_epoch(3, epoch)]
    is_next = np.array([follows(e) == FOLLOWS for e in pairs])
    whole = np.array([len(e.arrays["ids"]) for e in pairs])
    second = whole - np.array([int(e.arrays["second"][0]) for e in pairs])
    for sizes in (second, whole):
        right = max(np.mean((sizes >= least) == is_next) for least in range(sizes.max()))
        assert right < 0.53


def test_every_sentence_is_read_and_every_document_lends(task: Pretrain) -> None:
    examples = Paired.of(task, ROWS)
    read: Counter[tuple[int, int]] = Counter()
    lent: Counter[int] = Counter()
    for epoch in range(40):
        for example in examples.in_epoch(2, epoch):
            first, second = texts(task, example)
            read.update(first + second)
            lent.update([second[0][0]] if follows(example) == DOES_NOT else [])
    assert set(read) == {(d, s) for d, own in enumerate(corpus()) for s in range(len(own))}
    assert set(lent) == set(range(N_DOCUMENTS))


def test_an_example_is_a_function_of_seed_epoch_and_number(task: Pretrain, tmp_path: Path) -> None:
    write(task, ROWS, tmp_path / "cache", name="text")
    opened: Any = task.layout.open(task, tmp_path / "cache")
    assert isinstance(opened, Paired)
    made = Paired.of(task, ROWS)
    for i in (31, 0, 17, 31):
        one, other = opened.in_epoch(3, 4)[i], made.in_epoch(3, 4)[i]
        assert one.arrays.keys() == other.arrays.keys() == {"ids", "second", "places", "labels", "follows"}
        for name, array in one.arrays.items():
            np.testing.assert_array_equal(array, other.arrays[name])
    again = [made.in_epoch(*at)[5].arrays["ids"].tolist() for at in ((3, 4), (3, 5), (4, 4))]
    assert again[0] != again[1]
    assert again[0] != again[2]


def test_a_document_in_parts_is_one(task: Pretrain, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sentences of the next part follow; those of another part are never those of another document."""
    monkeypatch.setattr("regard.files.documents.PART", 50)
    lines = [line for own in corpus() for line in (*own, "")]
    rows = [Row({"text": part}, "a.txt", line) for line, part in documents(lines, "paragraphs")]
    assert len(rows) > 2 * N_DOCUMENTS
    assert sum(map(closes, rows)) == N_DOCUMENTS
    whole, parts = Paired.of(task, ROWS).in_epoch(1, 2), Paired.of(task, rows).in_epoch(1, 2)
    assert parts.n_documents == N_DOCUMENTS
    np.testing.assert_array_equal(parts.sizes, whole.sizes)
    for example in parts:
        first, second = texts(task, example)
        assert (first[0][0] == second[0][0]) == (follows(example) == FOLLOWS)
    true = [n for n in range(len(whole)) if follows(whole[n]) == FOLLOWS]
    assert all(np.array_equal(whole[n].arrays["ids"], parts[n].arrays["ids"]) for n in true)


def test_parts_are_held_out_together() -> None:
    rows = [Row({"text": text}, "a", 1) for text in ("a\n", "a", "b", "c\n", "c\n", "c", "d", "e", "f")]
    kept: list[Row] = []
    left = list(Every().split(3, rows, kept))
    assert [row.cells["text"] for row in kept] == ["c\n", "c\n", "c", "f"]
    assert len(left) == 5


def test_a_document_of_one_sentence_has_no_pair(task: Pretrain) -> None:
    alone = Row({"text": "doc0 s0 go"}, "a.txt", 1)
    examples = Paired.of(task, [alone, *ROWS])
    example = examples.in_epoch(1, 1)[0]
    assert follows(example) == NO_PAIR
    assert example.arrays["second"].tolist() == [len(example.arrays["ids"])], "there is no second run"
    assert len(example.arrays["places"]) == 1
    assert examples.n_with_next == N_DOCUMENTS


def test_one_document_has_no_pairs_at_all(task: Pretrain) -> None:
    found = scored(task, ROWS[:1], "valid")
    assert {follows(example) for example in found} == {NO_PAIR}


def test_a_long_sentence_becomes_several(task: Pretrain) -> None:
    (document,) = task.encode([Row({"text": "go " * 50 + "\ngo"}, "a.txt", 1)])
    assert document.arrays["sentence_lengths"].tolist() == [11, 11, 11, 11, 6, 1]
    assert len(document.arrays["ids"]) == 51


def test_sentences_of_another_document_that_never_fit_are_cut(task: Pretrain) -> None:
    short, long = Row({"text": "go\ngo"}, "a.txt", 1), Row({"text": "go go go go go\n" * 3}, "a.txt", 2)
    examples = Paired.of(task, [short, long])
    found = [examples.in_epoch(1, epoch)[0] for epoch in range(20)]
    assert {follows(example) for example in found} == {FOLLOWS, DOES_NOT}
    assert {len(example.arrays["ids"]) for example in found} == {5}


def test_what_has_no_next_or_no_other_is_refused(task: Pretrain) -> None:
    with pytest.raises(
        DataError, match=r"a\.txt: holds only one document, so no " r"sentence can come from another"
    ):
        Paired.of(task, ROWS[:1]).refuse_unfit("a.txt")
    alone = [Row({"text": "go go"}, "a.txt", n) for n in range(5)]
    with pytest.raises(
        DataError, match=r"every document has only one sentence, .*task\.sentences = \"marks\""
    ):
        Paired.of(task, alone).refuse_unfit("a.txt")
    with pytest.raises(DataError, match="valid: holds no text"):
        scored(task, [Row({"text": ""}, "a.txt", 1)], "valid")
    Paired.of(task, ROWS).refuse_unfit("a.txt")
