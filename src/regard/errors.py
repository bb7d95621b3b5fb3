"""Errors for users, in one sentence each: what is wrong, where, the value, and the fix.

The command line prints the sentence and exits with code 2; nothing else in the project prints errors.
`assert` is for programmers, these are for users.
"""

from collections.abc import Iterable
from difflib import get_close_matches

LONGEST_SHOWN = 60
"""Longest name in an error message, in characters."""
MOST_SHOWN = 20
"""Longest list of names in an error message."""


class RegardError(Exception):
    """Base class of all errors of regard."""


class RecipeError(RegardError):
    """Error of a recipe that asks for something that does not exist or is impossible."""


class DataError(RegardError):
    """Error of a data file that cannot be read as the recipe says."""


class RunError(RegardError):
    """Error of a run folder that is missing, occupied, or not one of ours."""


class CheckpointError(RegardError):
    """Error of a model or checkpoint folder that is damaged, foreign, or from a newer version."""


class ServeError(RegardError):
    """Error of a server that cannot be started as configured."""


def quoted(text: str) -> str:
    """Quote a text, truncated if it is long, since labels may be anything."""
    return repr(_short(text))


def shown(value: object) -> str:
    """Return the repr of a value, truncated if it is long."""
    try:
        return _short(repr(value))
    except ValueError:
        return "a number of thousands of digits"


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Suggest the closest name, as `; did you mean n_heads?`, or list the known names if none is close."""
    known = [_short(each) for each in sorted(names)]
    close = get_close_matches(_short(name), known, n=1, cutoff=0.5)
    if close:
        return f"; did you mean {close[0]}?"
    rest = f" and {len(known) - MOST_SHOWN:,} more" if len(known) > MOST_SHOWN else ""
    return f"; known: {', '.join(known[:MOST_SHOWN])}{rest}" if known else ""


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"
