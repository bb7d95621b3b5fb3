"""What can go wrong for a user: one sentence each, saying what, where, and what to do about it.

The command line prints the sentence and exits with code 2; nothing else in the project prints errors.
`assert` is for programmers, these are for users.
"""

from collections.abc import Iterable
from difflib import get_close_matches

LONGEST_SHOWN = 60
"""Characters of a name in an error."""
MOST_SHOWN = 20
"""Names that are listed."""


class RegardError(Exception):
    """The common ancestor, so that a caller can catch all of ours and nothing else."""


class RecipeError(RegardError):
    """The recipe asks for something that does not exist or cannot be."""


class DataError(RegardError):
    """A data file cannot be read as the recipe says."""


class RunError(RegardError):
    """A run folder is missing, occupied, or not one of ours."""


class CheckpointError(RegardError):
    """A model or checkpoint folder is damaged, foreign, or from a newer version."""


class ServeError(RegardError):
    """The server cannot be started as asked."""


def quoted(text: str) -> str:
    """In quotes; of a long text the beginning, since labels may be anything."""
    return repr(_short(text))


def shown(value: object) -> str:
    """As Python writes it; of a long value the beginning."""
    try:
        return _short(repr(value))
    except ValueError:
        return "a number of thousands of digits"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean n_heads?` when something near exists, else the list of what is known."""
    shown = [_short(one) for one in sorted(known)]
    near = get_close_matches(_short(name), shown, n=1, cutoff=0.5)
    if near:
        return f"; did you mean {near[0]}?"
    rest = f" and {len(shown) - MOST_SHOWN:,} more" if len(shown) > MOST_SHOWN else ""
    return f"; known: {', '.join(shown[:MOST_SHOWN])}{rest}" if shown else ""


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"
