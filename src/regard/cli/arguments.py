"""Arguments that several verbs understand the same way."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from regard.errors import RecipeError
from regard.files.columns import Column

Run = Annotated[
    Path, typer.Argument(metavar="RUN", help="A run folder, or a model folder.", show_default=False)
]
TrainedIn = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.", show_default=False)]
Others = Annotated[
    list[Path] | None,
    typer.Option("--with", metavar="RUN", help="Another run with the same vocabulary, to answer together."),
]
RecipeFile = Annotated[
    Path,
    typer.Argument(
        metavar="RECIPE",
        help="A recipe (.toml); files in it are looked for in the current folder, then beside the recipe.",
        show_default=False,
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(metavar="KEY=VALUE", help="Settings that win over the recipe's, such as model.n_heads=8."),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column", metavar="ROLE=COLUMN", help="Which column has a role, by name or number; repeatable."
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", "-s", metavar="KEY=VALUE", help="Another setting of the search, such as sample=true."
    ),
]
Beam = Annotated[int | None, typer.Option(metavar="N", help="Hypotheses kept while searching; 1 is greedy.")]
Inputs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="INPUT|NAME=VALUE|NAME=@FILE",
        help="A text, or the path of a picture; a model with several inputs is given each by its name.",
        show_default=False,
    ),
]
User = Annotated[
    str | None,
    typer.Option(
        metavar="ID", help="Answer the history that this user has in the training data (recommend)."
    ),
]
Encoding = Annotated[str | None, typer.Option(help="Of the file; by default that of the training data.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]

_SETTING = re.compile(r"(?:(?:task\.)?decode\.)?([a-z_]+)=(.*)", re.DOTALL)


def columns(assigned: Iterable[str] | None) -> dict[str, Column]:
    """Role → column, of `source=2` and `target=English`; a column is a name, or a number counted from 1."""
    found: dict[str, Column] = {}
    for text in assigned or ():
        role, _, name = (part.strip() for part in text.partition("="))
        if not role or not name:
            raise RecipeError(f"--column {text}: write it as role=column, for example --column source=2")
        found[role] = int(name) if re.fullmatch(r"\d{1,9}", name, re.ASCII) else name
    return found


def search_settings(arguments: Iterable[str]) -> dict[str, Any]:
    """Settings of the search alone."""
    others, settings = files_and_settings(arguments)
    if others:
        raise RecipeError(f"--set {others[0]!r}: write it as key=value, for example --set beam=5")
    return settings


def files_and_settings(arguments: Iterable[str]) -> tuple[list[str], dict[str, Any]]:
    """Files, and settings of the search like beam=5 or, as in a recipe, task.decode.beam=5."""
    files: list[str] = []
    settings: dict[str, Any] = {}
    for argument in arguments:
        if setting := _SETTING.fullmatch(argument):
            settings[setting[1]] = setting[2]
        else:
            files.append(argument)
    return files, settings
