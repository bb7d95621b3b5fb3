"""What every configuration is: frozen, strict, and written beside the class it configures."""

from typing import Any

from pydantic import BaseModel, ConfigDict, field_validator

LARGEST = 2**31 - 1


class Config(BaseModel):
    """A typo is an error, a built thing never changes its mind, and every number is one to reckon with."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False)

    @field_validator("*")
    @classmethod
    def _within_reason(cls, value: Any) -> Any:
        if isinstance(value, int) and abs(value) > LARGEST:
            raise ValueError(f"{str(value)[:12]}… is too large; the limit is {LARGEST}")
        return value
