from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli import console
from regard.cli.arguments import Inputs, Run, User
from regard.cli.files import free, write
from regard.cli.question import only_question, split_options
from regard.errors import RunError

if TYPE_CHECKING:
    from regard.explain.explanation import Explanation


def explain(
    run: Run,
    inputs: Inputs = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The page; by default attention.html.", show_default=False),
    ] = None,
    user: User = None,
    svg: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The picture; by default attention.svg.", show_default=False),
    ] = None,
) -> None:
    """Show what the model attends to while it answers.

    The strongest links are printed; a page (one file, no network needed) holds every layer and head, a
    picture the most telling of them. Default names are numbered rather than overwritten.
    """
    import regard

    if out is not None and out == svg:
        raise RunError(f"{out}: cannot be page and picture at once; give two names")
    trained = regard.load(run)
    options, questions = split_options(inputs or (), trained.task.options)
    fields = trained.task_config.question
    if user is None:
        question = only_question(questions, fields)
    elif questions:
        raise RunError(f"--user {user}: stands instead of an input; leave out one of them")
    else:
        question = dict.fromkeys(fields, trained.history(user))
    show(trained.explain(question, **options), out or free("attention.html"), svg or free("attention.svg"))


def show(explanation: "Explanation", page: Path, picture: Path) -> None:
    """The strongest links in the terminal; everything in a page and a picture, whose paths are printed."""
    from regard.explain.terminal import render

    console.OUT.print(render(explanation, console.OUT.width))
    write(page, explanation.to_html())
    write(picture, explanation.to_svg())
    console.OUT.print()
    console.facts([("page", str(page)), ("picture", str(picture))])
