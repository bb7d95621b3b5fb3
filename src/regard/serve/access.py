"""Access control by Host header, Origin header and key.

Localhost is not private: any page in a browser can send requests to it. So the Host header must be one of
ours (which excludes DNS rebinding), and a browser's Origin must be ours or listed. A server that listens on
another address needs a key.
"""

import base64
import hmac
from dataclasses import dataclass

from regard.serve.request_error import RequestError

PUBLIC_PATH = "/health"


class Headers:
    """Headers of a request; those that we read may occur once."""

    def __init__(self, raw: list[tuple[bytes, bytes]]) -> None:
        self._values: dict[bytes, list[bytes]] = {}
        for name, value in raw:
            self._values.setdefault(name, []).append(value)

    def __contains__(self, name: bytes) -> bool:
        return name in self._values

    def only(self, name: bytes) -> str:
        """Return the header's value, or "" if it is absent."""
        values = self._values.get(name, [b""])
        if len(values) > 1:
            message = f"the header {name.decode()} occurs twice; send it once"
            raise RequestError(400, "header_twice", message)
        return values[0].decode("latin-1").strip()

    @property
    def origin(self) -> str:
        return self.only(b"origin").lower()


@dataclass(frozen=True)
class AccessControl:
    """Allowed Host headers (`localhost:8000`), allowed origins of other pages, and the key."""

    hosts: frozenset[str]
    origins: frozenset[str] = frozenset()
    key: str | None = None

    def check(self, method: str, path: str, headers: Headers) -> None:
        """Raise RequestError unless the request is allowed."""
        host = headers.only(b"host").lower()
        if host not in self.hosts:
            message = "the Host header is not one of this server's names; see --allow-host"
            raise RequestError(403, "host_not_allowed", message)
        is_listed = headers.origin in self.origins
        is_same_origin = headers.origin in ("", f"http://{host}", f"https://{host}")
        is_cross_site = headers.only(b"sec-fetch-site") in ("cross-site", "same-site")
        if not is_listed and (is_cross_site or not is_same_origin):
            message = "pages of this origin may not send requests here; see --allow-origin"
            raise RequestError(403, "origin_not_allowed", message)
        is_preflight = method == "OPTIONS" and is_listed
        if self.key is not None and path != PUBLIC_PATH and not is_preflight:
            self._check_key(self.key, headers.only(b"authorization"))

    def _check_key(self, key: str, authorization: str) -> None:
        """Check `Bearer KEY`, or the basic authentication of a browser with the key as password."""
        scheme, _, value = authorization.partition(" ")
        if scheme.lower() == "basic":
            try:
                value = base64.b64decode(value, validate=True).decode().partition(":")[2]
            except ValueError:
                value = ""
        elif scheme.lower() != "bearer":
            value = ""
        if not hmac.compare_digest(value.encode(), key.encode()):
            raise RequestError(401, "key_needed", "send the server's key as 'Authorization: Bearer KEY'")
