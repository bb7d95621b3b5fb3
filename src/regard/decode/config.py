"""Settings of a search; the same names in recipe, command line and Python."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Self, TypeVar

from pydantic import BeforeValidator, Field, StringConstraints, ValidationError, model_validator

from regard.config import Config, without_prefix
from regard.errors import RecipeError, did_you_mean, quoted, shown

Phrase = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
SAMPLING_SETTINGS = ("temperature", "top_k", "top_p", "min_p")


def listed(phrases: Any) -> Any:
    """Phrases as a list; a string from the command line is one phrase, or several as a JSON list."""
    if not isinstance(phrases, str):
        return phrases
    if not phrases.lstrip().startswith("["):
        return (phrases,)
    try:
        return json.loads(phrases)
    except (ValueError, RecursionError):
        raise ValueError(
            f'{quoted(phrases)} is not a list in JSON; write one phrase, or ["one", "another"]'
        ) from None


class DecodeConfig(Config):
    beam: int = Field(4, ge=1, le=256, description="hypotheses kept at each step; 1 is greedy")
    groups: int = Field(
        1, ge=1, description="groups of the beam that avoid each other's words: n best that differ"
    )
    diversity: float = Field(0.5, ge=0, le=100, description="how much a group avoids the groups before it")
    length_penalty: float = Field(
        1.0, ge=0, le=10, description="0 prefers short, 1 scores by length (see Hypothesis)"
    )
    n_best: int = Field(1, ge=1, le=256, description="answers per input; at most `beam` unless sampled")
    sample: bool = Field(False, description="sample each token by its probability; `beam` is not used then")
    temperature: float = Field(
        1.0, ge=0.001, le=100, description="of sampling; below 1 safer, above 1 wilder"
    )
    top_k: int = Field(0, ge=0, description="sample from the k likeliest; 0: from all")
    top_p: float = Field(1.0, gt=0, le=1, description="sample from the likeliest that make up this share")
    min_p: float = Field(
        0.0, ge=0, le=1, description="sample from those at least this many times as likely as the best"
    )
    seed: int = Field(0, ge=0, description="of sampling; a text gets the same answer alone and among others")
    prefix: str = Field("", max_length=10_000, description="how every output begins")
    must_not: Annotated[tuple[Phrase, ...], BeforeValidator(listed)] = Field(
        (), max_length=100, description="words and phrases that no output contains"
    )
    must_include: Annotated[tuple[Phrase, ...], BeforeValidator(listed)] = Field(
        (), max_length=20, description="words and phrases that every output contains; needs a beam"
    )
    no_repeat: int = Field(0, ge=0, description="no sequence of this many tokens occurs twice; 0: it may")
    repetition_penalty: float = Field(
        1.0, ge=0.01, le=100, description="above 1: tokens written before become rarer"
    )
    min_length: int = Field(0, ge=0, description="tokens at least")
    max_length: int | None = Field(None, ge=1, description="tokens at most, whatever max_ratio allows")
    scores: bool = Field(
        True, description="compute how likely answers are; false: only where the search needs it, faster"
    )
    batch_invariant: bool = Field(
        False, description="each text alone: its answer is the same to the bit in any batch; slower"
    )
    max_ratio: float = Field(
        2.0, gt=0, le=100, description="an output may have max_ratio × input + 10 tokens"
    )

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.n_best > self.beam and not self.sample:
            raise ValueError(f"n_best ({self.n_best}) cannot exceed beam ({self.beam}) unless sample=true")
        if self.n_best > 1 and not self.scores:
            raise ValueError(f"n_best ({self.n_best}) needs scores, by which answers are ranked")
        if self.beam % self.groups:
            raise ValueError(f"groups ({self.groups}) must divide beam ({self.beam})")
        if self.sample and self.groups > 1:
            raise ValueError("sample and groups exclude each other: sampling has no beams")
        if self.must_include and (self.sample or self.beam == 1 or self.groups > 1):
            raise ValueError("must_include needs a beam of at least 2 in one group, and no sampling")
        if self.max_length is not None and self.max_length < self.min_length:
            raise ValueError(f"min_length ({self.min_length}) exceeds max_length ({self.max_length})")
        return self

    def changed(self, **changes: Any) -> Self:
        """This search with other settings, checked; refuses settings of sampling where nothing is sampled."""
        search = settings_changed(self, changes)
        idle = [] if search.sample else [name for name in SAMPLING_SETTINGS if name in changes]
        if idle:
            raise RecipeError(f"decode.{idle[0]}: {changes[idle[0]]} is for sampling; add sample=true")
        return search

    def limit(self, n_source: int) -> int:
        """The most tokens of an answer, the end counted."""
        by_ratio = int(self.max_ratio * n_source) + 10
        return by_ratio if self.max_length is None else min(by_ratio, self.max_length + 1)


C = TypeVar("C", bound=Config)


def settings_changed(settings: C, changes: Mapping[str, Any]) -> C:
    """Settings of a search with others in them, checked."""
    try:
        return type(settings)(**(settings.model_dump() | dict(changes)))
    except ValidationError as error:
        fault = error.errors()[0]
        if fault["type"] == "extra_forbidden":
            name = str(fault["loc"][0])
            raise RecipeError(
                f"decode.{name}: unknown{did_you_mean(name, type(settings).model_fields)}"
            ) from None
        name = ".".join(("decode", *map(str, fault["loc"])))
        value = "" if fault["type"] == "value_error" else f"{shown(fault['input'])} "
        raise RecipeError(f"{name}: {value}{without_prefix(fault['msg'])}") from None
