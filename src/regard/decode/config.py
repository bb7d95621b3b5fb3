"""How to search; the same names in recipe, command line and Python."""

from typing import Any, Self

from pydantic import Field, ValidationError, model_validator

from regard.config import Config
from regard.errors import RecipeError, did_you_mean


class DecodeConfig(Config):
    beam: int = Field(4, ge=1, le=256, description="hypotheses kept at each step; 1 is greedy")
    length_penalty: float = Field(
        1.0, ge=0, le=10, description="0 prefers short, 1 scores by length (see Hypothesis)"
    )
    n_best: int = Field(1, ge=1, le=256, description="answers given per input, at most `beam`")
    max_ratio: float = Field(
        2.0, gt=0, le=100, description="an output may have max_ratio × input + 10 pieces"
    )

    @model_validator(mode="after")
    def _enough_beams(self) -> Self:
        if self.n_best > self.beam:
            raise ValueError(f"n_best ({self.n_best}) cannot exceed beam ({self.beam})")
        return self

    def changed(self, **changes: Any) -> Self:
        """This search with other settings, checked."""
        try:
            return type(self)(**(self.model_dump() | changes))
        except ValidationError as error:
            fault = error.errors()[0]
            if fault["type"] == "extra_forbidden":
                name = str(fault["loc"][0])
                raise RecipeError(
                    f"decode.{name}: unknown{did_you_mean(name, type(self).model_fields)}"
                ) from None
            name = ".".join(("decode", *map(str, fault["loc"])))
            message = fault["msg"].removeprefix("Value error, ").removeprefix("Input ")
            value = f"{fault['input']!r} " if fault["loc"] else ""
            raise RecipeError(f"{name}: {value}{message}") from None

    def max_length(self, n_source: int) -> int:
        return int(self.max_ratio * n_source) + 10
