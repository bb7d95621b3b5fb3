"""Assets of the page, shipped beside this module, and the sentences that all pictures share."""

import json
from importlib.resources import files
from typing import Any


def asset(name: str) -> str:
    return files("regard.explain").joinpath("web", name).read_text(encoding="utf-8")


STRINGS: dict[str, dict[str, Any]] = json.loads(asset("strings.json"))

CAVEAT: str = STRINGS["en"]["caveat"]
"""Caveat that every picture of attention must show."""

BEAM_STRINGS: dict[str, dict[str, Any]] = json.loads(asset("beams.json"))
