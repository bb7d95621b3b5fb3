"""Search for answers in a vocabulary: its settings become rules over tokens.

Settings that contradict each other are refused before anything is searched.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from regard.decode import (
    DecodeConfig,
    Hypothesis,
    Phrases,
    Required,
    Rules,
    Sampler,
    Step,
    Stepper,
    beam,
    contains,
    greedy,
    is_word_character,
    sample,
)
from regard.errors import RecipeError
from regard.text.tokenizer import BOS, OWN, Tokenizer

Texts = tuple[str, ...]
NEVER_WRITTEN = OWN.not_generated
"""Ids of our own vocabularies that no answer has."""


ANY_SOURCE = 10**9
"""Tokens of a source so long that max_ratio bounds nothing."""


class Writer:
    """`bound` names `max_length` in messages."""

    def __init__(self, tokenizer: Tokenizer, max_length: int, bound: str = "task.max_length") -> None:
        self.tokenizer, self.max_length, self.bound = tokenizer, max_length, bound
        self._excluded: tuple[Texts, Phrases | None] = (), None
        self._required: tuple[Texts, Required | None] = (), None
        """The tables of the last phrases, as making them takes a moment."""

    def __call__(
        self,
        stepper: Stepper[Any],
        state: Any,
        sources: Sequence[Sequence[int]],
        decode: DecodeConfig,
        device: torch.device,
        *,
        extends: bool = False,
    ) -> Iterator[Step]:
        """Searches for answers to each source, from the state before the first token.

        `extends`: an answer may be as long as the required tokens need, even if its source is too short.
        """
        least = min(self.most(decode), self.asked(decode) + 1) if extends else 0
        limits = [max(least, self.limit(len(source), decode)) for source in sources]
        for step in self._steps(stepper, state, sources, limits, decode, device):
            for _, hypotheses in step.ended:
                self._refuse_broken(hypotheses, decode)
            yield step

    def _steps(
        self,
        stepper: Stepper[Any],
        state: Any,
        sources: Sequence[Sequence[int]],
        limits: Sequence[int],
        decode: DecodeConfig,
        device: torch.device,
    ) -> Iterator[Step]:
        shared: dict[str, Any] = {"begin": BOS, "length_penalty": decode.length_penalty, "device": device}
        if decode.sample:
            return self._drawn(stepper, state, sources, limits, decode, shared)
        rules = self.rules(decode, limits)
        if decode.beam == 1:
            return greedy(stepper, state, rules, **shared)
        return beam(
            stepper,
            state,
            rules,
            width=decode.beam,
            groups=decode.groups,
            diversity=decode.diversity,
            n_best=decode.n_best,
            **shared,
        )

    def limit(self, n_source: int, decode: DecodeConfig) -> int:
        """The most tokens of an answer, the end counted."""
        if decode.min_length >= self.max_length:
            raise RecipeError(
                f"decode.min_length: {decode.min_length} tokens are more than this model can write "
                f"({self.max_length - 1}, one less than {self.bound}); ask for fewer"
            )
        return min(self.max_length, max(decode.limit(n_source), decode.min_length + 1))

    def most(self, decode: DecodeConfig) -> int:
        """The most tokens of an answer to any source, the end counted."""
        return self.limit(ANY_SOURCE, decode)

    def asked(self, decode: DecodeConfig) -> int:
        """Tokens that every answer must have: its prefix, and the phrases it includes."""
        phrases = sum(len(self._within(phrase)) for phrase in decode.must_include)
        return len(self.tokenizer.encode(decode.prefix).ids) + phrases

    def refuse_unkeepable(self, decode: DecodeConfig) -> None:
        """Refuses what no answer can keep, however long its source, before a model is trained."""
        self.rules(decode, [self.most(decode)])

    def _drawn(
        self,
        stepper: Stepper[Any],
        state: Any,
        sources: Sequence[Sequence[int]],
        limits: Sequence[int],
        decode: DecodeConfig,
        shared: dict[str, Any],
    ) -> Iterator[Step]:
        """Draws `n_best` answers to each source, the likeliest first; each draw is a source of its own."""
        n = decode.n_best
        sampler = Sampler(
            [(decode.seed, number, *source) for source in sources for number in range(n)],
            temperature=decode.temperature,
            top_k=decode.top_k,
            top_p=decode.top_p,
            min_p=decode.min_p,
        )
        rules = self.rules(decode, [limit for limit in limits for _ in range(n)])
        rows_N = torch.arange(len(sources), device=shared["device"]).repeat_interleave(n)
        steps = sample(stepper, stepper.select(state, rows_N, rows_N), rules, sampler=sampler, **shared)
        return steps if n == 1 else _gathered(steps, n)

    def rules(self, decode: DecodeConfig, limits: Sequence[int]) -> Rules:
        prefix, least_room = self.tokenizer.encode(decode.prefix).ids, min(limits) - 1
        if prefix and len(prefix) > least_room:
            raise RecipeError(
                f"decode.prefix: has {len(prefix)} tokens, an output may have {least_room} here; "
                f"shorten it{self._or_raise(decode, least_room)}"
            )
        if not self._can_write(decode.prefix):
            raise RecipeError(f"decode.prefix: {decode.prefix!r} has characters the vocabulary does not know")
        if hit := _first_in(decode.prefix, decode.must_not):
            raise RecipeError(f"decode.prefix: contains {hit!r}, which must_not excludes")
        return Rules(
            self.tokenizer.special.end,
            limits,
            forbidden=self.tokenizer.special.not_generated,
            min_length=decode.min_length,
            prefixes=[prefix] * len(limits) if prefix else (),
            no_repeat=decode.no_repeat,
            repetition_penalty=decode.repetition_penalty,
            scored=decode.scores or not (decode.sample or decode.beam == 1),
            must_not=self._excluding(decode.must_not),
            must_include=self._requiring(decode, least_room, len(prefix)),
        )

    def _excluding(self, phrases: Texts) -> Phrases | None:
        known, excluded = self._excluded
        if phrases != known:
            writable = [phrase for phrase in phrases if self._can_write(phrase)]
            spelt = [self.tokenizer.surface(phrase) for phrase in writable]
            excluded = Phrases(spelt, self.tokenizer.spellings, self.tokenizer.special.end) if spelt else None
            self._excluded = phrases, excluded
        return excluded

    def _requiring(self, decode: DecodeConfig, least_room: int, n_prefix: int) -> Required | None:
        phrases = decode.must_include
        for phrase in phrases:
            if hit := _first_in(phrase, decode.must_not):
                raise RecipeError(
                    f"decode.must_include: {phrase!r} contains {hit!r}, which must_not excludes"
                )
            if not self._can_write(phrase):
                raise RecipeError(
                    f"decode.must_include: {phrase!r} has characters the vocabulary does not know"
                )
        ids = [self._within(phrase) for phrase in phrases]
        needed, left = sum(map(len, ids)), least_room - n_prefix
        if needed > left:
            raise RecipeError(
                f"decode.must_include: needs {needed} tokens where {left} are left; ask for less"
                f"{self._or_raise(decode, least_room)}"
            )
        known, required = self._required
        if phrases != known:
            spelt = [self.tokenizer.surface(phrase) for phrase in phrases]
            vocabulary = self.tokenizer.spellings, self.tokenizer.special.end, self.tokenizer.decode
            required = Required(spelt, ids, *vocabulary) if phrases else None
            self._required = phrases, required
        return required

    def _can_write(self, phrase: str) -> bool:
        return self.tokenizer.special.unknown not in self.tokenizer.encode(phrase).ids

    def _within(self, phrase: str) -> list[int]:
        """The usual tokens of a phrase in the middle of a text, where a space stands before a word."""
        ids = self.tokenizer.encode(phrase).ids
        if not is_word_character(self.tokenizer.surface(phrase)[0]):
            return ids
        if self.tokenizer.surface(f" {phrase}").startswith(" "):
            return self.tokenizer.encode(f" {phrase}").ids
        return [self.tokenizer.spellings.index(" "), *ids]

    def _or_raise(self, decode: DecodeConfig, room: int) -> str:
        """The setting that would give an output more than this room; where none would, what bounds it."""
        if room == self.max_length - 1:
            return f", as every output has fewer tokens than {self.bound}"
        return ", or raise max_length" if room == decode.max_length else ", or raise max_ratio"

    def _refuse_broken(self, hypotheses: Sequence[Hypothesis], decode: DecodeConfig) -> None:
        """Refuses settings that only together leave no way, instead of an answer that breaks one."""
        if hypotheses[0].score == -torch.inf:
            if decode.must_include:
                raise RecipeError(
                    "decode.must_include: the other settings of the search leave no way to write it; "
                    "ease no_repeat, must_not or the lengths"
                )
            raise RecipeError(
                f"decode: no answer has min_length = {decode.min_length} tokens and repeats nothing, as "
                f"no_repeat = {decode.no_repeat} asks; ease one of them"
            )
        if decode.must_not and any(
            _first_in(self.tokenizer.decode(one.ids), decode.must_not) for one in hypotheses
        ):
            raise RecipeError(
                "decode.must_not: the other settings of the search leave no way around it; "
                "ease prefix, no_repeat or the lengths"
            )


def _gathered(steps: Iterator[Step], n: int) -> Iterator[Step]:
    """Gathers the n draws of every source, the likeliest first, once the last has ended."""
    draws: dict[int, list[Hypothesis]] = {}
    for step in steps:
        ended = []
        for row, hypotheses in step.ended:
            drawn = draws.setdefault(row // n, [])
            drawn += hypotheses
            if len(drawn) == n:
                ended.append((row // n, sorted(drawn, key=lambda one: -one.score)))
        yield Step(ended)


def _first_in(text: str, phrases: Texts) -> str | None:
    return next((phrase for phrase in phrases if contains(text, phrase)), None)
