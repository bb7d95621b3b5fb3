"""Base class of all configurations: frozen, strict, and defined beside the class it configures."""

import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

LARGEST = 2**31 - 1


class Config(BaseModel):
    """Frozen configuration in which unknown names and infinite or huge numbers are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False)

    @field_validator("*")
    @classmethod
    def _within_reason(cls, value: Any) -> Any:
        if isinstance(value, int) and abs(value) > LARGEST:
            raise ValueError(f"{str(value)[:12]}… is too large; the limit is {LARGEST}")
        return value


def said(message: str) -> str:
    """Strip pydantic's name of a value from its message, leaving `should be greater than 0`."""
    return re.sub(r"^(Value error, |\w+ (?=should ))", "", message)


def first_fault(error: ValidationError, names: Mapping[str, str] | None = None) -> str:
    """Describe the first error in a file of another tool; `names` maps our settings to its names."""
    fault = error.errors(include_url=False)[0]
    path = ".".join((names or {}).get(str(part), str(part)) for part in fault["loc"])
    message = fault["msg"].removeprefix("Value error, ")
    return f"{path}: {message}" if path else message
