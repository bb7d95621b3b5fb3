"""Requests made from the published description are answered, or refused, as it says."""

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from served import Served

CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
]
OPERATIONS = {
    "/v1/translate": "POST",
    "/v1/summarize": "POST",
    "/v1/reply": "POST",
    "/v1/ask": "POST",
    "/v1/classify": "POST",
    "/v1/classify_pair": "POST",
    "/v1/multilabel": "POST",
    "/v1/tag": "POST",
    "/v1/answer": "POST",
    "/v1/recommend": "POST",
    "/v1/forecast": "POST",
    "/v1/transcribe": "POST",
    "/v1/caption": "POST",
    "/v1/generate": "POST",
    "/v1/relate": "POST",
    "/v1/fill": "POST",
    "/v1/explain": "POST",
    "/v1/models": "GET",
    "/v1/items": "GET",
    "/health": "GET",
    "/ready": "GET",
    "/metrics": "GET",
}


@pytest.fixture(scope="module")
def described(server: Served) -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_url(f"http://localhost:{server.port}/openapi.json")


def test_every_operation_is_tried(described: schemathesis.BaseSchema) -> None:
    known = {
        (operation.ok().path, operation.ok().method.upper()) for operation in described.get_all_operations()
    }
    assert known == set(OPERATIONS.items())


@pytest.mark.parametrize(
    "mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["allowed", "forbidden"]
)
@pytest.mark.parametrize("path", OPERATIONS)
def test_the_description_is_true(described: schemathesis.BaseSchema, path: str, mode: GenerationMode) -> None:
    method = OPERATIONS[path]
    if method == "GET" and mode is GenerationMode.NEGATIVE:
        return  # nothing can be sent there that is forbidden

    @given(case=described[path][method].as_strategy(generation_mode=mode))
    @settings(
        max_examples=20 if method == "POST" else 1, deadline=None, suppress_health_check=list(HealthCheck)
    )
    def tried(case: schemathesis.Case) -> None:
        case.call_and_validate(checks=CHECKS)

    tried()
