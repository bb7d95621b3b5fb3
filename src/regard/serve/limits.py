"""What a request, and all of them together, may ask for: one object, checked before anything is allocated."""

from collections.abc import Iterable
from typing import Self

from pydantic import Field, ValidationError

from regard.config import Config
from regard.errors import ServeError, did_you_mean


class Limits(Config):
    connections: int = Field(
        4_096, gt=0, description="open at once, as far as files may be; then idle ones are closed"
    )
    head_seconds: float = Field(10, gt=0, description="seconds a client may take to send a request's head")
    body_bytes: int = Field(1_000_000, gt=0, description="bytes of a request's body")
    body_seconds: float = Field(30, gt=0, description="seconds a client may take to send it")
    read_seconds: float = Field(30, gt=0, description="seconds a client may read nothing of its answer")
    texts: int = Field(64, gt=0, description="texts in a request")
    characters: int = Field(5_000, gt=0, description="characters of a text")
    beam: int = Field(16, gt=0, description="hypotheses kept while searching; also answers per text")
    pieces: int = Field(1_000, gt=0, description="pieces that a request may ask an answer to have")
    phrases: int = Field(16, gt=0, description="phrases in must_include, and in must_not")
    queue: int = Field(256, gt=0, description="texts waiting for a model; more are answered 429")
    streams: int = Field(16, gt=0, description="answers of a model being streamed at once")
    batch_texts: int = Field(64, gt=0, description="texts computed together; 1 turns batching off")
    batch_characters: int = Field(32_768, gt=0, description="texts computed together × the longest of them")
    batch_beams: int = Field(512, gt=0, description="texts computed together × hypotheses of each")
    gather_seconds: float = Field(0.004, ge=0, description="an idle model waits so long for company")
    explain_bytes: int = Field(
        1_000_000_000, gt=0, description="estimated bytes of attention at once, by model"
    )
    wait_seconds: float = Field(60, gt=0, description="from the request to its answer; then it is given up")
    compute_seconds: float = Field(60, gt=0, description="for a batch; then its worker is started anew")
    start_seconds: float = Field(120, gt=0, description="for a worker to load its model")
    stop_seconds: float = Field(10, gt=3, description="from the signal to the end, answers included")

    @classmethod
    def told(cls, settings: Iterable[str]) -> Self:
        """The usual ones, but for what is said as `characters=20000`."""
        given = {}
        for setting in settings:
            name, _, number = setting.partition("=")
            if name not in cls.model_fields:
                raise ServeError(f"--limit {setting}: unknown{did_you_mean(name, cls.model_fields)}")
            given[name] = number
        try:
            return cls.model_validate_strings(given)
        except ValidationError as error:
            fault = error.errors()[0]
            wrong, message = str(fault["loc"][0]), fault["msg"].removeprefix("Input should be ")
            raise ServeError(f"--limit {wrong}={given[wrong]}: should be {message}") from None


LIMITS = Limits()
