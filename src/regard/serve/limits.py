"""Limits of one request and of all together: one object, checked before anything is allocated."""

from collections.abc import Iterable
from typing import Self

from pydantic import Field, ValidationError

from regard.config import Config
from regard.errors import ServeError, did_you_mean


class Limits(Config):
    connections: int = Field(
        4_096, gt=0, description="open connections, within the limit of open files; then idle ones are closed"
    )
    head_seconds: float = Field(10, gt=0, description="seconds a client may take to send a request's headers")
    body_bytes: int = Field(1_000_000, gt=0, description="bytes of a request's body")
    body_seconds: float = Field(30, gt=0, description="seconds a client may take to send the body")
    read_seconds: float = Field(30, gt=0, description="seconds a client may take before it reads its answer")
    texts: int = Field(64, gt=0, description="texts in a request")
    characters: int = Field(5_000, gt=0, description="characters of a text, or of a value written as JSON")
    file_bytes: int = Field(10_000_000, gt=0, description="bytes of a file")
    beam: int = Field(16, gt=0, description="hypotheses kept while searching; also answers per text")
    tokens: int = Field(1_000, gt=0, description="tokens that a request may ask an answer to have")
    phrases: int = Field(16, gt=0, description="phrases in must_include, and in must_not")
    queue: int = Field(256, gt=0, description="texts in the queue of a model; more get status 429")
    streams: int = Field(16, gt=0, description="answers of a model being streamed at once")
    listeners: int = Field(32, gt=0, description="streams of sound that a model hears at once")
    listen_seconds: float = Field(14_400, gt=0, description="seconds of sound in a stream")
    listen_idle_seconds: float = Field(30, gt=0, description="seconds a stream may go without sound")
    batch_texts: int = Field(64, gt=0, description="texts in a batch; 1 turns batching off")
    batch_characters: int = Field(32_768, gt=0, description="texts in a batch × length of the longest")
    batch_beams: int = Field(512, gt=0, description="texts in a batch × hypotheses of each")
    gather_seconds: float = Field(0.004, ge=0, description="seconds an idle model waits to fill a batch")
    explain_bytes: int = Field(
        1_000_000_000, gt=0, description="estimated bytes of attention at once, per model"
    )
    wait_seconds: float = Field(
        60, gt=0, description="seconds from a request to its answer, or to status 503"
    )
    compute_seconds: float = Field(60, gt=0, description="seconds for a batch; then its worker is restarted")
    start_seconds: float = Field(120, gt=0, description="seconds for a worker to load its model")
    stop_seconds: float = Field(10, gt=3, description="seconds from the signal to the end, answers included")

    @classmethod
    def parse(cls, settings: Iterable[str]) -> Self:
        """Defaults, changed by settings such as `characters=20000`."""
        changed = {}
        for setting in settings:
            name, _, number = setting.partition("=")
            if name not in cls.model_fields:
                raise ServeError(f"--limit {setting}: unknown{did_you_mean(name, cls.model_fields)}")
            changed[name] = number
        try:
            return cls.model_validate_strings(changed)
        except ValidationError as error:
            fault = error.errors()[0]
            wrong, message = str(fault["loc"][0]), fault["msg"].removeprefix("Input should be ")
            raise ServeError(f"--limit {wrong}={changed[wrong]}: should be {message}") from None


LIMITS = Limits()
