"""What a client is told instead of an answer."""

from collections.abc import Iterable
from typing import Any


class RefusedError(Exception):
    """An HTTP status, a code for programs, a sentence for people, and the limit that was passed, if any."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        limit: float | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(code)
        self.status, self.code, self.message = status, code, message
        self.limit, self.retry_after = limit, retry_after

    def to_json(self) -> dict[str, Any]:
        limit = {} if self.limit is None else {"limit": self.limit}
        return {"error": {"code": self.code, "message": self.message} | limit}

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}


def busy(what: str, limit: float) -> RefusedError:
    message = f"too many {what} are waiting already ({limit:g} at most); try again in a moment"
    return RefusedError(429, "busy", message, limit=limit, retry_after=1)


def stopping() -> RefusedError:
    return RefusedError(
        503, "stopping", "the server is stopping; ask another, or again later", retry_after=10
    )


def unavailable(model: str) -> RefusedError:
    message = f"the model {model!r} could not answer in time; try again in a moment"
    return RefusedError(503, "unavailable", message, retry_after=5)


def unknown_model(known: Iterable[str]) -> RefusedError:
    return RefusedError(404, "unknown_model", f"no such model; there are: {', '.join(sorted(known))}")
