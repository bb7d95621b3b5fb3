"""Raw texts to /v1/relate: one model finds the entities, another says what each two have to do together."""

import asyncio
from collections.abc import Sequence
from typing import Any

from regard.errors import DataError
from regard.serve.engine import Engine
from regard.serve.model_queue import ModelQueue
from regard.serve.request_error import RequestError, unavailable
from regard.text.entity_pairs import Pair, pairs, related

Answers = list[dict[str, Any]]


async def relations(engine: Engine, relater: ModelQueue, tagger: ModelQueue, texts: Sequence[str]) -> Answers:
    """One text after another, as each may be hundreds of questions; all of them in the time of a request."""
    try:
        async with asyncio.timeout(engine.limits.wait_seconds):
            tagged = await engine.answers(tagger, engine.jobs(tagger, texts, "answer", {}))
            return [
                await _related(engine, relater, text, _entities(tagger, one), f"text {number}")
                for number, (text, one) in enumerate(zip(texts, tagged, strict=True), 1)
            ]
    except TimeoutError:
        raise unavailable(relater.name) from None


def _entities(tagger: ModelQueue, tagged: dict[str, Any]) -> list[dict[str, Any]]:
    if "spans" not in tagged:
        message = f"the tags of the model {tagger.name!r} mark no spans, so it finds no entities"
        raise RequestError(422, "no_entities", message)
    spans: list[dict[str, Any]] = tagged["spans"]
    return spans


async def _related(
    engine: Engine, relater: ModelQueue, text: str, entities: list[dict[str, Any]], where: str
) -> dict[str, Any]:
    told: dict[str, Any] = relater.about["pairing"]
    try:
        asked = pairs(text, entities, where, both_ways=told["both_ways"])
    except DataError as fault:
        raise RequestError(422, "cannot_be_done", str(fault)) from None
    answers = await _answers(engine, relater, asked)
    return related(text, entities, asked, answers, told["no_relation"]).to_json()


async def _answers(engine: Engine, relater: ModelQueue, asked: Sequence[Pair]) -> Answers:
    if not asked:
        return []
    questions = [pair.question for pair in asked]
    return await engine.answers(relater, engine.jobs(relater, questions, "answer", {}))
