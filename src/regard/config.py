"""Base class of all configurations: frozen, strict, and defined beside the class it configures."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticKnownError, core_schema

LARGEST = 2**31 - 1
Fault = ErrorDetails
"""An error of pydantic."""


class Config(BaseModel):
    """Frozen configuration in which unknown names and infinite or huge numbers are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False)

    @field_validator("*")
    @classmethod
    def _within_reason(cls, value: Any) -> Any:
        if isinstance(value, int) and abs(value) > LARGEST:
            raise ValueError(f"{str(value)[:12]}… is too large; the limit is {LARGEST}")
        return value


class Choice:
    """Annotation of a setting whose `kind` chooses its class from a table, looked up when a recipe is read.

    Its errors have the types and places of pydantic's own unions.
    """

    def __init__(
        self, entries: Mapping[str, Any], config: Callable[[Any], type[Config]] = lambda entry: entry
    ) -> None:
        """Take the table, and a function from its entries to the classes of their settings."""
        self.entries, self.config = entries, config

    @property
    def table(self) -> dict[str, type[Config]]:
        return {kind: self.config(entry) for kind, entry in self.entries.items()}

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        written = core_schema.plain_serializer_function_ser_schema(_written, info_arg=True)
        return core_schema.no_info_plain_validator_function(self.read, serialization=written)

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {"type": "object"}

    def read(self, value: Any) -> Config:
        if isinstance(value, tuple(self.table.values())):
            assert isinstance(value, Config)
            return value
        if not isinstance(value, Mapping):
            raise PydanticKnownError("dict_type")
        if "kind" not in value:
            raise PydanticKnownError("union_tag_not_found", {"discriminator": "kind"})
        kind = value["kind"]
        if not isinstance(kind, str) or kind not in self.table:
            tags = ", ".join(map(repr, self.table))
            raise PydanticKnownError(
                "union_tag_invalid", {"discriminator": "kind", "tag": str(kind), "expected_tags": tags}
            )
        try:
            return self.table[kind].model_validate(value)
        except ValidationError as error:
            faults = [_below(kind, fault) for fault in error.errors(include_url=False)]
            raise ValidationError.from_exception_data(error.title, faults) from None


def _below(kind: str, fault: ErrorDetails) -> InitErrorDetails:
    """The error as pydantic writes one of a union's member: with its kind in the place."""
    return InitErrorDetails(
        type=fault["type"], loc=(kind, *fault["loc"]), input=fault["input"], ctx=fault.get("ctx", {})
    )


def _written(value: Config, info: Any) -> dict[str, Any]:
    return value.model_dump(mode=info.mode)


def without_prefix(message: str) -> str:
    """Strip pydantic's name of a value from its message, leaving `should be greater than 0`."""
    return re.sub(r"^(Value error, |\w+ (?=should ))", "", message)


def first_fault(error: ValidationError, names: Mapping[str, str] | None = None) -> str:
    """Describe the first error in a file of another tool; `names` maps our settings to its names."""
    fault = error.errors(include_url=False)[0]
    path = ".".join((names or {}).get(str(part), str(part)) for part in fault["loc"])
    message = fault["msg"].removeprefix("Value error, ")
    return f"{path}: {message}" if path else message
