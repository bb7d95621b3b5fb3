"""Forward-backward and the best spelling against brute-force enumeration of every way to cut a word."""

from collections import Counter
from collections.abc import Iterator
from itertools import combinations, pairwise
from math import exp

import numpy as np
import pytest
from tokenizers import Tokenizer, models, trainers

from regard.text import unigram
from regard.text.unigram import learn_tokens

WORDS = {"abab": 7, "abcd": 3, "cd": 5, "bcdab": 2, "a": 11}


def ways(word: str) -> Iterator[list[str]]:
    for n_cuts in range(len(word)):
        for cuts in combinations(range(1, len(word)), n_cuts):
            edges = [0, *cuts, len(word)]
            yield [word[i:j] for i, j in pairwise(edges)]


def inventory(seed: int) -> tuple[list[str], np.ndarray]:
    """All characters and some longer pieces, with random log probabilities."""
    rng = np.random.default_rng(seed)
    longer = sorted(
        {word[i:j] for word in WORDS for i in range(len(word)) for j in range(i + 2, len(word) + 1)}
    )
    pieces = [*"abcd", *longer]
    scores = np.append(np.log(rng.random(len(pieces))), -np.inf)
    scores[4:-1][rng.random(len(longer)) < 0.4] = -np.inf
    return pieces, scores


@pytest.mark.parametrize("seed", range(5))
def test_expected_counts_are_those_of_all_ways_to_cut(seed: int) -> None:
    pieces, scores = inventory(seed)
    score = dict(zip(pieces, scores, strict=False))
    expected: Counter[str] = Counter()
    for word, count in WORDS.items():
        shares = [(way, exp(sum(score[piece] for piece in way))) for way in ways(word)]
        total = sum(share for _, share in shares)
        for way, share in shares:
            for piece in way:
                expected[piece] += count * share / total
    lattices = unigram._lattices(WORDS, {piece: i for i, piece in enumerate(pieces)})
    found = sum(lattice.expected(scores) for lattice in lattices)
    np.testing.assert_allclose(found, [*(expected[piece] for piece in pieces), 0])


@pytest.mark.parametrize("seed", range(5))
def test_the_best_split_is_the_best_of_all_ways_but_the_whole(seed: int) -> None:
    pieces, scores = inventory(seed)
    score = dict(zip(pieces, scores, strict=False))
    found = unigram._best_split(scores, list(unigram._splits(pieces, {p: i for i, p in enumerate(pieces)})))
    for i, piece in enumerate(pieces):
        if len(piece) > 1:
            best = max(sum(score[part] for part in way) for way in ways(piece) if len(way) > 1)
            assert found[i] == pytest.approx(best)


def test_frequent_words_become_pieces_and_probabilities_add_up() -> None:
    words = {" hello": 97, " help": 53, " yellow": 31, " low": 11, " z": 1}
    pieces = dict(learn_tokens(words, 17, min_frequency=2))
    assert len(pieces) <= 17
    assert set("".join(words)) <= set(pieces)
    assert {" hello", " help"} <= set(pieces)
    assert sum(map(exp, pieces.values())) == pytest.approx(1)
    assert list(pieces.values()) == sorted(pieces.values(), reverse=True)


def test_fewer_pieces_than_characters_keeps_the_characters() -> None:
    assert {piece for piece, _ in learn_tokens({"abc": 5}, 1, min_frequency=2)} == set("abc")


def test_rare_substrings_are_not_proposed() -> None:
    assert "xy" not in dict(learn_tokens({"xy": 2, "q": 9}, 50, min_frequency=3))


def test_it_cuts_more_briefly_than_the_trainer_of_the_library() -> None:
    """Words in Zipf's proportions, each a stem and an ending: frequency must decide what is worth a piece."""
    rng = np.random.default_rng(3)
    stems = ["".join(rng.choice(list("abcdefghijklmnop"), size=5)) for _ in range(89)]
    words = [f" {stem}{ending}" for stem in stems for ending in ("", "en", "er", "ing")]
    counts = {word: 1 + 1009 // rank for rank, word in enumerate(words, start=1)}
    theirs = Tokenizer(models.Unigram())
    trainer = trainers.UnigramTrainer(vocab_size=131, unk_token="<unk>", special_tokens=["<unk>"])
    trainer.show_progress = False
    theirs.train_from_iterator([word for word in words for _ in range(counts[word])], trainer)
    ours = models.Unigram([("<unk>", 0.0), *learn_tokens(counts, 130, min_frequency=2)], 0, False)

    def pieces_in_all(model: models.Model) -> int:
        return sum(count * len(model.tokenize(word)) for word, count in counts.items())

    assert pieces_in_all(ours) < 0.9 * pieces_in_all(theirs.model)


def test_time_and_memory_are_bounded_by_dropping_the_rarest_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unigram, "MAX_SPANS", 9 + 4)
    pieces = dict(learn_tokens({"abc": 5, "xyz": 2, "de": 3}, 50, min_frequency=1))
    assert set("".join(pieces)) == set("abcde")
