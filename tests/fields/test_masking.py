"""How much is hidden, and behind what: the proportions of the paper."""

from typing import Any

import numpy as np
import pytest
import torch

from regard.data.paired import Paired
from regard.fields.masking import Masking
from regard.files.row import Row
from regard.tasks import Pretrain, PretrainConfig
from regard.tasks.pretrain import MaskedTally
from regard.text.tokenizer import Tokenizer
from regard.training.evaluate import evaluate
from tiny import to_pretrain

WORDS = "unbelievable walking walked talking talked the a of under over believable walk talk able"
N = 2000


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    config = PretrainConfig.model_validate({"tokenizer": {"vocab_size": 60, "min_frequency": 1}})
    return Pretrain.fit(config, [Row({"text": f"{WORDS} {WORDS}"}, "a", 1)]).tokenizer


@pytest.fixture(scope="module")
def tokens(tokenizer: Tokenizer) -> np.ndarray:
    (first, second) = tokenizer.ids([WORDS, "the unbelievable €"])
    assert tokenizer.special.unknown in second
    return np.array(tokenizer.with_special_tokens(first, second))


def test_fifteen_of_a_hundred_pieces_are_hidden(tokenizer: Tokenizer, tokens: np.ndarray) -> None:
    masking, rng = Masking(tokenizer, 0.15, whole_words=False), np.random.default_rng(3)
    n_pieces = sum(
        name not in tokenizer.tokens([*tokenizer.with_special_tokens([], []), 1])
        for name in tokenizer.tokens(tokens)
    )
    hidden = np.zeros(len(tokens))
    fates = {"mask": 0, "same": 0, "other": 0}
    for _ in range(N):
        seen, places = masking(tokens, rng)
        assert len(places) == round(0.15 * n_pieces)
        assert np.array_equal(np.delete(seen, places), np.delete(tokens, places))
        hidden[places] += 1
        for place in places:
            is_mask = seen[place] == tokenizer.special.mask
            fates["mask" if is_mask else "same" if seen[place] == tokens[place] else "other"] += 1
    marks = [*tokenizer.special.skipped, tokenizer.special.unknown]
    assert not hidden[np.isin(tokens, marks)].any(), "marks and what is unknown are never hidden"
    each = hidden[~np.isin(tokens, marks)]
    expected = N * round(0.15 * n_pieces) / n_pieces
    assert np.abs(each - expected).max() < 5 * expected**0.5, "all pieces alike"
    total = sum(fates.values())
    by_chance = 0.1 / (len(tokenizer) - len(marks))  # any other piece may be the same
    for fate, share in {"mask": 0.8, "other": 0.1 - by_chance, "same": 0.1 + by_chance}.items():
        assert abs(fates[fate] / total - share) < 4 * (share * (1 - share) / total) ** 0.5, fate


def test_other_pieces_are_any_but_marks(tokenizer: Tokenizer, tokens: np.ndarray) -> None:
    masking, rng = Masking(tokenizer, 0.5, whole_words=False), np.random.default_rng(3)
    found = set()
    for _ in range(N):
        seen, places = masking(tokens, rng)
        found |= set(seen[places][(seen != tokens)[places]].tolist())
    marks = {*tokenizer.special.skipped, tokenizer.special.unknown} - {tokenizer.special.mask}
    assert found == set(range(len(tokenizer))) - marks


def test_whole_words_are_hidden_or_none(tokenizer: Tokenizer, tokens: np.ndarray) -> None:
    names = [tokenizer.names[i] for i in tokens]
    assert sum(name.startswith("##") for name in names) > 5
    masking, rng = Masking(tokenizer, 0.3, whole_words=True), np.random.default_rng(3)
    counts = []
    for _ in range(N):
        _, places = masking(tokens, rng)
        hidden = set(places.tolist())
        for place, name in enumerate(names):
            if name.startswith("##"):
                assert (place in hidden) == (place - 1 in hidden), "as the piece before it"
        counts.append(len(places))
    n_pieces = int(
        np.isin(tokens, [*tokenizer.special.skipped, tokenizer.special.unknown], invert=True).sum()
    )
    assert 0.9 * 0.3 < np.mean(counts) / n_pieces < 1.1 * 0.3


def test_at_least_one_piece_is_hidden(tokenizer: Tokenizer) -> None:
    for whole_words in (True, False):
        masking = Masking(tokenizer, 0.15, whole_words=whole_words)
        short = np.array(tokenizer.with_special_tokens(tokenizer.ids(["a"])[0]))
        assert len(masking(short, np.random.default_rng(1))[1]) == 1
        nothing = np.array(tokenizer.with_special_tokens([tokenizer.special.unknown]))
        seen, places = masking(nothing, np.random.default_rng(1))
        assert not len(places)
        assert np.array_equal(seen, nothing)


def tally(learnt_from: str, **task: Any) -> MaskedTally:
    """Of documents whose words are the same two pieces in every vocabulary here."""
    tokenizer = {"vocab_size": 100, "min_frequency": 2}
    config = PretrainConfig.model_validate({"tokenizer": tokenizer, "max_length": 20} | task)
    own = Pretrain.fit(config, [Row({"text": learnt_from}, "a", 1)])
    examples = Paired.of(own, [Row({"text": "ab cd ad cb ab cd"}, "b", number) for number in range(5)])
    model = to_pretrain().build(own.widths)
    found = evaluate(own, model, examples, torch.device("cpu"), thorough=True)[1]
    assert isinstance(found, MaskedTally)
    assert [one.masked for one in found.counts] == [2] * 5
    return found


def test_what_is_hidden_elsewhere_or_in_another_vocabulary_is_something_else() -> None:
    one = tally("ab ad cd cb")
    assert one.truth == tally("ab ad cd cb").truth
    assert one.truth != tally("ab ad cd cb xy xz wy wz").truth
    assert one.truth != tally("ab ad cd cb", whole_words=True).truth
