"""Learn the tokens of a unigram language model (Kudo 2018) from counted words.

The trainer of the `tokenizers` library is not used: it counts each distinct word once when it proposes
tokens, so that frequent ones are lost (1.38 tokens a word on Multi30k; here 1.08), and it gives the tokens
other ids on every run. Here all words of one length go through forward-backward together, as arrays. Two
things are simpler than in SentencePiece: exp(digamma(c)) is approximated by c - 1/2, and expected counts
weigh the loss.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MAX_TOKEN = 16
MAX_SPANS = 5_000_000  # over the most frequent words: bounds time and memory
SPANS_AT_ONCE = 500_000
SHRINK = 0.75

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Lattice:
    """Words of one length n: spans[word, start, length - 1] is a token id; the last id is for impossible
    spans.
    """

    spans: Ints
    counts: Floats

    def expected(self, scores: Floats) -> Floats:
        """Expected count of each token, over all ways to cut every word."""
        edges = scores[self.spans]
        n_words, n, widest = edges.shape
        ahead = np.zeros((n_words, n + 1))
        for end in range(1, n + 1):
            lengths = range(1, min(end, widest) + 1)
            ahead[:, end] = _log_sum([ahead[:, end - m] + edges[:, end - m, m - 1] for m in lengths])
        behind = np.full((n_words, n + widest), -np.inf)
        behind[:, n] = 0
        for start in range(n - 1, -1, -1):
            lengths = range(1, widest + 1)
            behind[:, start] = _log_sum([edges[:, start, m - 1] + behind[:, start + m] for m in lengths])
        after = np.stack([behind[:, m : m + n] for m in range(1, widest + 1)], axis=2)
        weights = np.exp(ahead[:, :n, None] + edges + after - ahead[:, n, None, None])
        weights *= self.counts[:, None, None]
        return np.bincount(self.spans.ravel(), weights.ravel(), minlength=len(scores)).astype(np.float64)


def learn_tokens(words: Mapping[str, int], size: int, min_frequency: int) -> list[tuple[str, float]]:
    """At most `size` tokens with log probabilities, the most probable first; every character is kept."""
    words = dict(_most_frequent(words))
    counts = _count_substrings(words, min_frequency)
    tokens = sorted(counts, key=lambda token: (-counts[token], len(token), token))
    ids = {token: i for i, token in enumerate(tokens)}
    lattices = list(_lattices(words, ids))
    splits = list(_splits(tokens, ids))
    is_character = np.array([len(token) == 1 for token in tokens] + [False])
    alive = np.append(np.ones(len(tokens), dtype=bool), False)
    scores = _log_share(np.array([counts[token] for token in tokens] + [0.0]), alive)
    size = max(size, int(is_character.sum()))
    while True:
        for _ in range(2):
            usage = sum((lattice.expected(scores) for lattice in lattices), np.zeros(len(scores)))
            usage = np.where(is_character, np.maximum(usage - 0.5, 0.1), usage - 0.5)
            alive &= usage > 0
            scores = _log_share(usage, alive)
        candidates = np.flatnonzero(alive)
        if len(candidates) <= size:
            break
        loss = (usage * (scores - _best_split(scores, splits)))[candidates]
        loss[is_character[candidates]] = np.inf
        n_kept = max(size, int(SHRINK * len(candidates)))
        alive[candidates[np.argsort(-loss, kind="stable")[n_kept:]]] = False
        scores = _log_share(usage, alive)
    best = sorted((i for i in range(len(tokens)) if alive[i]), key=lambda i: (-scores[i], i))
    return [(tokens[i], float(scores[i])) for i in best]


def _log_sum(terms: list[Floats]) -> Floats:
    stacked = np.stack(terms)
    top: Floats = stacked.max(axis=0)
    top += np.log(np.exp(stacked - top).sum(axis=0))
    return top


def _log_share(usage: Floats, alive: NDArray[np.bool_]) -> Floats:
    with np.errstate(divide="ignore"):
        shares: Floats = np.log(np.where(alive, usage, 0.0)) - np.log(usage[alive].sum())
    return shares


def _most_frequent(words: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    room = MAX_SPANS
    for word, count in sorted(words.items(), key=lambda item: (-item[1], item[0])):
        room -= len(word) * min(len(word), MAX_TOKEN)
        if room < 0:
            return
        yield word, count


def _count_substrings(words: Mapping[str, int], min_frequency: int) -> Counter[str]:
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for start in range(len(word)):
            for end in range(start + 1, min(start + MAX_TOKEN, len(word)) + 1):
                counts[word[start:end]] += count
    return Counter({s: n for s, n in counts.items() if n >= min_frequency or len(s) == 1})


def _lattices(words: Mapping[str, int], ids: Mapping[str, int]) -> Iterator[Lattice]:
    impossible = len(ids)
    same_length: defaultdict[int, list[str]] = defaultdict(list)
    for word in words:
        same_length[len(word)].append(word)
    for n, group in sorted(same_length.items()):
        widest = min(n, MAX_TOKEN)
        step = max(1, SPANS_AT_ONCE // (n * widest))
        for first in range(0, len(group), step):
            chunk = group[first : first + step]
            spans = [
                ids.get(word[start : start + m], impossible) if start + m <= n else impossible
                for word in chunk
                for start in range(n)
                for m in range(1, widest + 1)
            ]
            counts = np.array([words[word] for word in chunk], dtype=np.float64)
            yield Lattice(np.array(spans, dtype=np.int32).reshape(len(chunk), n, widest), counts)


def _splits(tokens: list[str], ids: Mapping[str, int]) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Yield for each length, shortest first, the tokens and the two halves of every way to cut them."""
    for length in range(2, MAX_TOKEN + 1):
        group = [token for token in tokens if len(token) == length]
        if group:
            cuts = range(1, length)
            left = np.array([[ids[token[:cut]] for cut in cuts] for token in group], dtype=np.int32)
            right = np.array([[ids[token[cut:]] for cut in cuts] for token in group], dtype=np.int32)
            yield np.array([ids[token] for token in group], dtype=np.int32), left, right


def _best_split(scores: Floats, splits: list[tuple[Ints, Ints, Ints]]) -> Floats:
    """Score of the best way to spell each token with shorter ones: the cost of dropping it."""
    best, split = scores.copy(), np.zeros(len(scores))
    for whole, left, right in splits:
        split[whole] = (best[left] + best[right]).max(axis=1)
        best[whole] = np.maximum(best[whole], split[whole])
    return split
