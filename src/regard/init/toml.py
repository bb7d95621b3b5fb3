"""Values as TOML, which the standard library reads but does not write."""

import json
import re
from collections.abc import Mapping


def toml(value: object) -> str:
    """Its strings are those of JSON, except that DEL must be escaped."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(key)} = {toml(each)}' for key, each in value.items())} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, float) and 0 < value < 1e-3:
        return f"{value:.1e}"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else toml(key)
