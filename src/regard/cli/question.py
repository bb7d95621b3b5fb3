"""The question on a command line: INPUT, NAME=VALUE or NAME=@FILE, each a cell of that input's field."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.errors import DataError, did_you_mean
from regard.files.row import side_by_side

if TYPE_CHECKING:
    from regard.fields.field import Field

NAMED = re.compile(r"(\w+)=(.*)", re.DOTALL)


def typed_cells(arguments: Iterable[str], fields: "Mapping[str, Field]") -> dict[str, list[Any]]:
    """Cells by the names of the inputs; a bare one is for the only input that no other argument names."""
    cells: dict[str, list[Any]] = {}
    bare = []
    for argument in arguments:
        named = NAMED.fullmatch(argument)
        if named and named[1] in fields:
            cells.setdefault(named[1], []).append(_cell(fields[named[1]], named[1], named[2]))
        elif named and len(fields) > 1:
            raise DataError(f"{named[1]}: this model has no such input{did_you_mean(named[1], fields)}")
        else:
            bare.append(argument)
    if bare:
        left = [name for name in fields if name not in cells]
        if len(left) != 1:
            only = f"{needed(fields)}; write each as NAME=VALUE" if left else "leave it out"
            raise DataError(f"{bare[0][:60]!r}: which input this is cannot be told: {only}")
        cells[left[0]] = [fields[left[0]].typed(text, left[0]) for text in bare]
    return cells


def split_options(arguments: Iterable[str], names: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Settings among the inputs, as in horizon=24, and the inputs."""
    options: dict[str, str] = {}
    inputs: list[str] = []
    for argument in arguments:
        named = NAMED.fullmatch(argument)
        if named and named[1] in names:
            options[named[1]] = named[2]
        else:
            inputs.append(argument)
    return options, inputs


def _cell(field: "Field", name: str, value: str) -> Any:
    return field.receive(Path(value[1:]), name) if value.startswith("@") else field.typed(value, name)


def only_question(arguments: Sequence[str], fields: "Mapping[str, Field]") -> dict[str, Any]:
    """The one question of a command line; DataError if there are several, or an input is missing."""
    cells = typed_cells(arguments, fields)
    if missing := [name for name in fields if name not in cells]:
        raise DataError(f"{needed(fields)}; give {ways(missing)}")
    first, *others = side_by_side(cells)
    if others:
        raise DataError(f"{1 + len(others)} inputs are given; give one at a time")
    return first


def needed(fields: "Mapping[str, Field]") -> str:
    return f"this model is asked with {' and '.join(fields)}"


def ways(names: Iterable[str]) -> str:
    """Ways to give the inputs that are missing."""
    return ", ".join(f"{name}=VALUE or {name}=@FILE" for name in names)
