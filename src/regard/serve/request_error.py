"""Errors that a client gets instead of an answer."""

from collections.abc import Iterable
from typing import Any


class RequestError(Exception):
    """HTTP status, a code for programs, a sentence for people, and the limit it exceeds, if any."""

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


def busy(resource: str, limit: float) -> RequestError:
    message = f"too many {resource} already (at most {limit:g}); try again in a moment"
    return RequestError(429, "busy", message, limit=limit, retry_after=1)


def stopping() -> RequestError:
    return RequestError(
        503, "stopping", "the server is shutting down; try another server, or try again later", retry_after=10
    )


def unavailable(model: str) -> RequestError:
    message = f"the model {model!r} could not answer in time; try again in a moment"
    return RequestError(503, "unavailable", message, retry_after=5)


def unknown_model(models: Iterable[str]) -> RequestError:
    return RequestError(404, "unknown_model", f"no such model; there are: {', '.join(sorted(models))}")
