"""The files of the page, as shipped beside this module; the sentences that pictures share live there once."""

import json
from importlib.resources import files
from typing import Any


def asset(name: str) -> str:
    return files("regard.explain").joinpath("web", name).read_text(encoding="utf-8")


STRINGS: dict[str, dict[str, Any]] = json.loads(asset("strings.json"))

CAVEAT: str = STRINGS["en"]["caveat"]
"""What no attention picture may be shown without."""

BEAM_STRINGS: dict[str, dict[str, Any]] = json.loads(asset("beams.json"))
