"""The routes. What is checked before them is in middleware.py, what is computed behind them in engine.py."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.routing import Route, WebSocketRoute

from regard import __version__
from regard.decode import DecodeConfig
from regard.errors import did_you_mean
from regard.files.row import Asked
from regard.serve import requests, schema, uploads
from regard.serve.asked import asked
from regard.serve.choices import matches
from regard.serve.engine import Engine
from regard.serve.job import Job, Purpose, n_characters
from regard.serve.limits import Limits
from regard.serve.listening import PATH as LISTEN
from regard.serve.listening import Listening
from regard.serve.model_queue import ModelQueue
from regard.serve.relate import relations
from regard.serve.request_error import RequestError, unavailable
from regard.serve.web import page_files
from regard.tasks import TASKS, Task

Answers = list[dict[str, Any]]
GONE = 499
"""What is counted for a client that did not wait for its answer."""
SILENT: Any = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}
"""FastAPI can send what users write to wherever the environment says; this server sends nothing anywhere."""
FINDERS = tuple(task.kind for task in TASKS.values() if task.finds_entities)
"""The tasks whose models find the entities that another model relates."""
SHOWN = ("task", "description", "max_length", "heads", "listens", "decode")
BRANCHES = ("constrained-str", "list[")
"""What pydantic calls the ways a text may be given."""
AS_FORM: dict[str, Any] = {
    "requestBody": {
        "content": {
            uploads.FORM: {
                "schema": {
                    "type": "object",
                    "description": "inputs by their names, as texts or files; and model, attention, packed",
                    "additionalProperties": {"type": "string", "format": "binary"},
                }
            }
        }
    }
}
STREAMED: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {}}}}
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": schema.Failure, "description": said}
    for status, said in {
        400: "not JSON, or not HTTP as it should be",
        401: "the key is missing or wrong",
        403: "from a place that is not allowed",
        404: "no such model",
        408: "the body came too slowly",
        413: "the body is too large",
        415: "neither application/json nor, where files are taken, multipart/form-data",
        422: "not what can be asked",
        429: "too many are waiting",
        503: "stopping, or the model is not there",
    }.items()
}


Sought = Annotated[str, Query(max_length=200, description="a part of a title; all where it is empty")]
Named = Annotated[str | None, Query(max_length=200, description="name of the model")]


def application(engine: Engine) -> FastAPI:
    app = FastAPI(
        title="regard",
        version=__version__,
        description="Attention models as a service: their answers, and what they attended to.",
        docs_url=None,
        redirect_slashes=False,
        redoc_url=None,
        responses=REFUSALS,
        telemetry=SILENT,
    )
    _add_answers(app, engine)
    listening = Listening(engine)
    app.router.routes += [Route(LISTEN, listening, methods=["POST"]), WebSocketRoute(LISTEN, listening)]
    _add_states(app, engine)
    for path, (kind, content) in page_files().items():
        app.add_api_route(path, _file(kind, content), include_in_schema=False)
    _add_refusals(app)
    return app


def _add_answers(app: FastAPI, engine: Engine) -> None:
    may_ask = requests.Requests.within(engine.limits)

    async def answered(
        request: Request,
        lane: ModelQueue,
        jobs: list[Job],
        shaped: Callable[[Answers], dict[str, Any]] = lambda answers: {"answers": answers},
    ) -> Response:
        answers = await _unless_gone(request, engine.answers(lane, jobs))
        if answers is None:
            return Response(status_code=GONE)
        return JSONResponse({"model": lane.name} | shaped(answers))

    for task in TASKS.values():
        app.add_api_route(
            task.path(),
            _takes(may_ask.of_task[task.kind], _route(task, engine, answered)),
            methods=["POST"],
            name=task.kind,
            description=task.says,
            response_model=schema.ANSWERS[task.kind],
            responses=STREAMED if task.searches else None,
        )

    async def explain(ask: requests.ExplainedAsk, request: Request) -> Response:
        """An answer, and everything that was attended to while it was made."""
        lane = engine.lane(ask.model)
        _refuse_without_text(lane)
        texts = asked(ask.given(), TASKS[lane.about["task"]].asks())
        jobs = engine.jobs(lane, texts, "explain", ask.settings, packed=ask.packed)
        return await answered(request, lane, jobs, lambda answers: {"answer": answers[0]})

    app.post("/v1/explain", response_model=schema.Explained)(_takes(may_ask.explain, explain))

    async def ask_any(ask: requests.AnyAsk, request: Request) -> Response:
        """Answers of a model of any task to inputs of any kind, by their names."""
        lane, inputs = engine.lane(ask.model), ask.given()
        files = lane.uploads(ask.files)
        _refuse_beyond(engine.limits, inputs, files)
        purpose: Purpose = "explain" if ask.attention else "answer"
        jobs = engine.jobs(lane, inputs, purpose, dict(ask.decode), packed=ask.packed, uploads=files)
        return await answered(request, lane, jobs)

    app.post(uploads.PATH, response_model=schema.AnyAnswers, openapi_extra=AS_FORM)(ask_any)


def _refuse_beyond(limits: Limits, inputs: list[dict[str, Any]], files: tuple[str, ...]) -> None:
    """More inputs than one request may have, or a larger one."""
    if not 1 <= len(inputs) <= limits.texts:
        raise RequestError(422, "too_many", f"inputs: give 1 to {limits.texts} in one request")
    for number, given in enumerate(inputs, 1):
        if n_characters(given, files) > limits.characters:
            message = f"input {number}: more than {limits.characters} characters; send less"
            raise RequestError(422, "too_long", message)
    uploads.refuse_beyond(inputs, files, limits)


def _refuse_without_text(lane: ModelQueue) -> None:
    """A model that reads files, on a route for texts."""
    names = [one["name"] for one in lane.about["inputs"] if one["file"]]
    if names:
        message = f"the model {lane.name!r} reads files ({', '.join(names)}); ask it at {uploads.PATH}"
        raise RequestError(422, "reads_files", message)


def _route(
    task: type[Task], engine: Engine, answered: Callable[..., Awaitable[Response]]
) -> Callable[..., Any]:
    async def plain(ask: requests.PlainAsk, request: Request) -> Response:
        lane = engine.lane(ask.model, task.kind)
        _refuse_without_text(lane)
        texts = asked(ask.given(), task.asks())
        purpose: Purpose = "explain" if ask.attention else "answer"
        return await answered(request, lane, engine.jobs(lane, texts, purpose, ask.settings))

    async def questioned(ask: requests.QuestionAsk, request: Request) -> Response:
        lane = engine.lane(ask.model, task.kind)
        purpose: Purpose = "explain" if ask.attention else "answer"
        jobs = engine.jobs(lane, ask.questions(), purpose, ask.settings, packed=ask.packed)
        return await answered(request, lane, jobs)

    async def searched(ask: requests.SearchAsk, request: Request) -> Response:
        if not ask.stream:
            return await plain(ask, request)
        lane, texts = engine.lane(ask.model, task.kind), asked(ask.given(), task.asks())
        _refuse_with_stream(ask, texts, n_best=lane.search(ask.settings).get("n_best", 1))
        (job,) = engine.jobs(lane, texts, "follow", ask.settings)
        lane.submit([job])
        return StreamingResponse(_events(lane, job, engine), media_type="text/event-stream")

    async def related(ask: requests.PairingAsk, request: Request) -> Response:
        if ask.entities is None:
            return await plain(ask, request)
        if ask.attention:
            message = "entities and attention exclude each other; mark two entities to see what spoke for it"
            raise RequestError(422, "contradiction", message)
        lane, tagger = engine.lane(ask.model, task.kind), engine.lane(ask.entities, *FINDERS)
        texts = [str(text) for text in asked(ask.given(), task.asks())]
        answers = await _unless_gone(request, relations(engine, lane, tagger, texts))
        if answers is None:
            return Response(status_code=GONE)
        return JSONResponse({"model": lane.name, "answers": answers})

    if task.takes:
        return questioned
    return searched if task.searches else related if task.pairs_entities else plain


def _takes(ask: type[requests.Ask], route: Callable[..., Any]) -> Callable[..., Any]:
    """The route as FastAPI shall read it: with the fields that its task is asked with."""
    route.__annotations__["ask"] = ask
    return route


def _add_states(app: FastAPI, engine: Engine) -> None:
    @app.get("/v1/models", response_model=schema.Models)
    async def models() -> Response:
        """What is being served."""
        listed = [
            {
                "name": lane.name,
                "ready": lane.is_ready,
                **{name: lane.about[name] for name in SHOWN},
                "inputs": [schema.Input(**one).model_dump() for one in lane.about["inputs"]],
            }
            for lane in engine.lanes.values()
        ]
        return JSONResponse({"models": listed})

    @app.get("/v1/items", response_model=schema.Choices)
    async def items(find: Sought = "", model: Named = None) -> Response:
        """Items of a recommender's catalogue whose title or name contains a text, the most frequent first."""
        lane = engine.lane(model, *(task.kind for task in TASKS.values() if task.takes))
        listed = [choice._asdict() for choice in matches(lane.choices, find)]
        return JSONResponse({"model": lane.name, "items": listed})

    @app.get("/health", response_model=schema.State)
    async def health() -> Response:
        """Whether the server is alive; it needs no key."""
        return JSONResponse({"status": "alive"})

    @app.get("/ready", response_model=schema.State)
    async def ready() -> Response:
        """Whether every model answers; 503 while one is being started, and from the moment of a stop."""
        if not engine.is_ready:
            raise RequestError(
                503, "not_ready", "a model is being started, or the server stops", retry_after=5
            )
        return JSONResponse({"status": "ready"})

    @app.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    async def metrics() -> Response:
        """Counts for Prometheus."""
        for lane in engine.lanes.values():
            engine.counts.waiting.labels(lane.name).set(len(lane.waiting))
            engine.counts.ready.labels(lane.name).set(lane.is_ready)
        return Response(engine.counts.exposition(), media_type="text/plain; version=0.0.4")


def _file(kind: str, content: bytes) -> Callable[[], Coroutine[Any, Any, Response]]:
    async def file() -> Response:
        return Response(content, media_type=kind)

    return file


def _refuse_with_stream(ask: requests.SearchAsk, texts: list[Asked], n_best: int) -> None:
    """`n_best` is the request's, or else the model's own."""
    against = {
        "several texts": (len(texts) > 1, "leave out one of them"),
        f"n_best ({n_best})": (n_best > 1, "leave out stream, or send n_best 1"),
        "attention": (ask.attention, "leave out one of them"),
    }
    for what, (is_asked, fix) in against.items():
        if is_asked:
            message = f"stream and {what} exclude each other: one answer is followed; {fix}"
            raise RequestError(422, "contradiction", message)


async def _unless_gone(request: Request, work: Coroutine[Any, Any, Answers]) -> Answers | None:
    """What the work gives; None, and the work is cancelled, when the client has gone before."""
    working = asyncio.create_task(work)
    watching = asyncio.create_task(_gone(request))
    try:
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        return await working if working.done() else None
    finally:
        working.cancel()
        watching.cancel()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _events(lane: ModelQueue, job: Job, engine: Engine) -> AsyncIterator[str]:
    """Server-sent events; closing this generator, as a vanished client does, ends the work."""
    end = time.monotonic() + engine.limits.wait_seconds
    try:
        while (part := await asyncio.wait_for(job.parts.get(), end - time.monotonic())) is not None:
            yield _event("text", {"text": part})
        yield _event("answer", {"model": lane.name, "answer": await job.answer})
    except RequestError as refusal:
        yield _event("error", refusal.to_json())
    except TimeoutError:
        yield _event("error", unavailable(lane.name).to_json())
    finally:
        job.answer.cancel()


def _event(name: str, data: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"


def _add_refusals(app: FastAPI) -> None:
    """Every error is JSON with a code and a sentence."""

    @app.exception_handler(RequestError)
    async def refused(request: Request, refusal: RequestError) -> Response:
        return JSONResponse(refusal.to_json(), refusal.status, refusal.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return await refused(request, _refusal(max(error.errors(), key=_told_best), _fields(request)))

    @app.exception_handler(404)
    @app.exception_handler(405)
    @app.exception_handler(400)
    async def other(request: Request, error: HTTPException) -> Response:
        code, message = {
            404: ("not_found", "no such path; /openapi.json lists what there is"),
            405: ("method_not_allowed", "this path is asked with another method; see /openapi.json"),
        }.get(error.status_code, ("not_json", "the body is not JSON in UTF-8 of a reasonable depth"))
        refusal = RequestError(error.status_code, code, message)
        return JSONResponse(refusal.to_json(), refusal.status, error.headers)


def _told_best(fault: dict[str, Any]) -> tuple[bool, int, bool]:
    """Of what is wrong: a text is tried as one and as a list, and the try that came further knows more.

    A name that is unknown says more than that the right one is missing.
    """
    return (
        fault["type"] not in ("string_type", "list_type"),
        len(fault["loc"]),
        fault["type"] == "extra_forbidden",
    )


def _fields(request: Request) -> Iterable[str]:
    """What the route takes."""
    ask = request.scope["route"].endpoint.__annotations__.get("ask", requests.Ask)
    fields: Iterable[str] = ask.model_fields
    return fields


def _refusal(fault: dict[str, Any], fields: Iterable[str]) -> RequestError:
    """Where it is wrong, and what would be right; what was sent is not repeated."""
    if fault["type"] == "json_invalid":
        return RequestError(400, "not_json", f"the body is not JSON: {fault['ctx']['error']}")
    place = ".".join(str(part) for part in fault["loc"][1:] if not str(part).startswith(BRANCHES))
    if fault["type"] == "extra_forbidden":
        known = DecodeConfig.model_fields if "decode" in fault["loc"][:-1] else fields
        return RequestError(
            422, "invalid", f"{place}: unknown{did_you_mean(str(fault['loc'][-1]), known)}"[:300]
        )
    bounds = fault.get("ctx", {})
    limit = next((bounds[name] for name in ("le", "lt", "max_length") if name in bounds), None)
    code = "too_long" if fault["type"].endswith("too_long") else "invalid"
    message = fault["msg"].removeprefix("Value error, ")
    return RequestError(422, code, f"{place or 'body'}: {message}"[:300], limit=limit)
