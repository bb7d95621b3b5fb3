"""Answers in a vocabulary: the settings of a search become rules over its pieces, and the search is made.

What cannot be kept together is refused before anything is searched.
"""

from collections.abc import Sequence
from typing import Any

import torch

from regard.data.tokenizer import BOS, EOS, PAD, UNK, Tokenizer
from regard.decode import (
    DecodeConfig,
    Draw,
    Hypothesis,
    Phrases,
    Required,
    Rules,
    Stepper,
    Tell,
    Tree,
    beam,
    contains,
    is_of_a_word,
    untold,
    walk,
)
from regard.errors import RecipeError

Wishes = tuple[str, ...]
NEVER_WRITTEN = (PAD, UNK, BOS)


class Writer:
    def __init__(self, tokenizer: Tokenizer, max_length: int) -> None:
        self.tokenizer, self.max_length = tokenizer, max_length
        self._excluded: tuple[Wishes, Phrases | None] = (), None
        self._required: tuple[Wishes, Required | None] = (), None
        """The last ones, as making their tables takes a moment."""

    def __call__(
        self,
        stepper: Stepper[Any],
        state: Any,
        sources: Sequence[Sequence[int]],
        decode: DecodeConfig,
        device: torch.device,
        tell: Tell = untold,
        tree: Tree | None = None,
    ) -> list[list[Hypothesis]]:
        """The answers to each source, best first. `state` stands before the first piece."""
        limits = [self.limit(len(source), decode) for source in sources]
        shared: dict[str, Any] = {
            "begin": BOS,
            "length_penalty": decode.length_penalty,
            "device": device,
            "tell": tell,
        }
        if decode.sample:
            return self._drawn(stepper, state, sources, limits, decode, shared)
        rules = self.rules(decode, limits)
        if decode.beam == 1:
            found = [[hypothesis] for hypothesis in walk(stepper, state, rules, **shared)]
        else:
            found = beam(
                stepper,
                state,
                rules,
                width=decode.beam,
                groups=decode.groups,
                diversity=decode.diversity,
                n_best=decode.n_best,
                tree=tree,
                **shared,
            )
        return self._kept(found, decode)

    def limit(self, n_source: int, decode: DecodeConfig) -> int:
        """Pieces of an answer at most, the end counted."""
        if decode.min_length >= self.max_length:
            raise RecipeError(
                f"decode.min_length: {decode.min_length} pieces are more than this model can write "
                f"({self.max_length - 1}, one less than task.max_length); ask for fewer"
            )
        return min(self.max_length, max(decode.limit(n_source), decode.min_length + 1))

    def _drawn(
        self,
        stepper: Stepper[Any],
        state: Any,
        sources: Sequence[Sequence[int]],
        limits: Sequence[int],
        decode: DecodeConfig,
        shared: dict[str, Any],
    ) -> list[list[Hypothesis]]:
        """`n_best` draws of each source, the likeliest first; each draw is a source of its own."""
        n = decode.n_best
        draw = Draw(
            [(decode.seed, number, *source) for source in sources for number in range(n)],
            temperature=decode.temperature,
            top_k=decode.top_k,
            top_p=decode.top_p,
            min_p=decode.min_p,
        )
        rules = self.rules(decode, [limit for limit in limits for _ in range(n)])
        rows_N = torch.arange(len(sources), device=shared["device"]).repeat_interleave(n)
        drawn = walk(stepper, stepper.select(state, rows_N, rows_N), rules, choose=draw, **shared)
        found = [drawn[first : first + n] for first in range(0, len(drawn), n)]
        return self._kept([sorted(each, key=lambda one: -one.score) for each in found], decode)

    def rules(self, decode: DecodeConfig, limits: Sequence[int]) -> Rules:
        prefix, least_room = self.tokenizer.encode(decode.prefix).ids, min(limits) - 1
        if prefix and len(prefix) > least_room:
            raise RecipeError(
                f"decode.prefix: has {len(prefix)} pieces, an output may have {least_room} here; "
                "shorten it, or raise max_ratio"
            )
        if hit := _first_in(decode.prefix, decode.must_not):
            raise RecipeError(f"decode.prefix: contains {hit!r}, which must_not excludes")
        return Rules(
            EOS,
            limits,
            forbidden=NEVER_WRITTEN,
            least=decode.min_length,
            prefixes=[prefix] * len(limits) if prefix else (),
            no_repeat=decode.no_repeat,
            repetition_penalty=decode.repetition_penalty,
            must_not=self._excluding(decode.must_not),
            must_include=self._requiring(decode, least_room - len(prefix)),
        )

    def _excluding(self, phrases: Wishes) -> Phrases | None:
        known, excluded = self._excluded
        if phrases != known:
            writable = [phrase for phrase in phrases if UNK not in self.tokenizer.encode(phrase).ids]
            spelt = [self.tokenizer.spelt(phrase) for phrase in writable]
            excluded = Phrases(spelt, self.tokenizer.spellings, EOS) if spelt else None
            self._excluded = phrases, excluded
        return excluded

    def _requiring(self, decode: DecodeConfig, room: int) -> Required | None:
        phrases = decode.must_include
        for phrase in phrases:
            if hit := _first_in(phrase, decode.must_not):
                raise RecipeError(
                    f"decode.must_include: {phrase!r} contains {hit!r}, which must_not excludes"
                )
            if UNK in self.tokenizer.encode(phrase).ids:
                raise RecipeError(
                    f"decode.must_include: {phrase!r} has characters the vocabulary does not know"
                )
        pieces = [self._within(phrase) for phrase in phrases]
        if sum(map(len, pieces)) > room:
            raise RecipeError(
                f"decode.must_include: needs {sum(map(len, pieces))} pieces where {room} are left; "
                "ask for less, or raise max_ratio"
            )
        known, required = self._required
        if phrases != known:
            spelt = [self.tokenizer.spelt(phrase) for phrase in phrases]
            required = Required(spelt, pieces, self.tokenizer.spellings, EOS) if phrases else None
            self._required = phrases, required
        return required

    def _within(self, phrase: str) -> list[int]:
        """The pieces of a phrase in the middle of a text: with a space before a word, if none carries it."""
        ids = self.tokenizer.encode(phrase).ids
        if is_of_a_word(self.tokenizer.spelt(phrase)[0]):
            return [self.tokenizer.spellings.index(" "), *ids]
        return ids

    def _kept(self, found: list[list[Hypothesis]], decode: DecodeConfig) -> list[list[Hypothesis]]:
        """Settings that only together leave no way show up here, and not as a broken promise."""
        if decode.must_include and any(best.score == -torch.inf for best, *_ in found):
            raise RecipeError(
                "decode.must_include: the other settings of the search leave no way to write it; "
                "ease no_repeat, must_not or the lengths"
            )
        if decode.must_not:
            texts = (self.tokenizer.decode(one.ids) for each in found for one in each)
            if any(_first_in(text, decode.must_not) for text in texts):
                raise RecipeError(
                    "decode.must_not: the other settings of the search leave no way around it; "
                    "ease prefix, no_repeat or the lengths"
                )
        return found


def _first_in(text: str, phrases: Wishes) -> str | None:
    return next((phrase for phrase in phrases if contains(text, phrase)), None)
