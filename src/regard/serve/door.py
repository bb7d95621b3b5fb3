"""Who is let in: by the name the server was called, by the page that asks, by the key.

Localhost is not private: any page in a browser can send requests to it. So the Host header must be one of
ours (a name that was rebound to this address is not), and a browser's Origin must be ours or listed. Whoever
listens on another address needs a key.
"""

import base64
import hmac
from dataclasses import dataclass

from regard.serve.refused import RefusedError

OPEN_TO_ALL = "/health"


class Headers:
    """Of a request; those we look at may come once."""

    def __init__(self, raw: list[tuple[bytes, bytes]]) -> None:
        self._values: dict[bytes, list[bytes]] = {}
        for name, value in raw:
            self._values.setdefault(name, []).append(value)

    def __contains__(self, name: bytes) -> bool:
        return name in self._values

    def only(self, name: bytes) -> str:
        """The value, or "" when it does not come."""
        values = self._values.get(name, [b""])
        if len(values) > 1:
            raise RefusedError(400, "header_twice", f"the header {name.decode()} comes twice; send it once")
        return values[0].decode("latin-1").strip()

    @property
    def origin(self) -> str:
        return self.only(b"origin").lower()


@dataclass(frozen=True)
class Door:
    """Under which names the server is called (`localhost:8000`), from which other pages, with which key."""

    hosts: frozenset[str]
    origins: frozenset[str] = frozenset()
    key: str | None = None

    def admit(self, method: str, path: str, headers: Headers) -> None:
        host = headers.only(b"host").lower()
        if host not in self.hosts:
            message = "the Host header is none of this server's names; see --allow-host"
            raise RefusedError(403, "host_not_allowed", message)
        is_listed = headers.origin in self.origins
        is_ours = headers.origin in ("", f"http://{host}", f"https://{host}")
        is_elsewhere = headers.only(b"sec-fetch-site") in ("cross-site", "same-site")
        if not is_listed and (is_elsewhere or not is_ours):
            message = "this page may not ask here; see --allow-origin"
            raise RefusedError(403, "origin_not_allowed", message)
        is_preflight = method == "OPTIONS" and is_listed
        if self.key is not None and path != OPEN_TO_ALL and not is_preflight:
            self._check_key(self.key, headers.only(b"authorization"))

    def _check_key(self, key: str, given: str) -> None:
        """`Bearer KEY`, or what a browser sends when it has asked for a password."""
        scheme, _, value = given.partition(" ")
        if scheme.lower() == "basic":
            try:
                value = base64.b64decode(value, validate=True).decode().partition(":")[2]
            except ValueError:
                value = ""
        elif scheme.lower() != "bearer":
            value = ""
        if not hmac.compare_digest(value.encode(), key.encode()):
            raise RefusedError(401, "key_needed", "send the server's key as 'Authorization: Bearer KEY'")
