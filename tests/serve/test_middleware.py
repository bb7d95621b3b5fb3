"""Who gets in: the Host and Origin headers, the key, what other pages may ask."""

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from served import JSON, Served, served

ROUTES = ("/", "/health", "/ready", "/metrics", "/openapi.json", "/v1/models", "/nowhere")
KEY = "correct-horse-battery-staple"

FOREIGN_HOSTS = (
    "attacker.example", "attacker.example:PORT", "localhost", "localhost:1", "localhost.:PORT", "127.1:PORT",
    "127.0.0.2:PORT", "0.0.0.0:PORT", "[::ffff:127.0.0.1]:PORT", "localhost.attacker.example:PORT", "::1",
    "user@localhost:PORT", "localhost:PORT@attacker.example", "localhost:PORT ,attacker.example",
    "2130706433:PORT", "localhost:PORT/", "localhost%00:PORT", "[::1%25eth0]:PORT",
    "xn--lcalhost-9na:PORT", "localhost:0PORT",
)  # fmt: skip
OUR_HOSTS = ("localhost:PORT", "LOCALHOST:PORT", "127.0.0.1:PORT", "[::1]:PORT")


def at(server: Served, text: str) -> str:
    return text.replace("PORT", str(server.port))


@pytest.mark.parametrize("route", ROUTES)
def test_only_our_names_are_answered(server: Served, route: str) -> None:
    for host in FOREIGN_HOSTS:
        reply = server.get(route, Host=at(server, host))
        assert (reply.status, reply.code) == (403, "host_not_allowed"), host
    for host in OUR_HOSTS:
        assert server.get(route, Host=at(server, host)).status == (404 if route == "/nowhere" else 200)


@pytest.mark.parametrize(
    "origin",
    [
        "http://attacker.example",
        "null",
        "https://localhost",
        "http://localhost:1",
        "file://",
        "http://127.0.0.1:PORT",
    ],
)
def test_another_page_is_refused(server: Served, origin: str) -> None:
    headers = {"Host": at(server, "localhost:PORT"), "Origin": at(server, origin)}
    for route in ROUTES:
        assert server.get(route, **headers).code == "origin_not_allowed"
    assert server.post("/v1/translate", headers, text="一").code == "origin_not_allowed"
    preflight = server.ask("OPTIONS", "/v1/translate", None, headers)
    assert preflight.status == 403
    assert not any(name.startswith("access-control") for name in preflight.headers)


def test_our_page_is_answered_and_others_not_told_so(server: Served) -> None:
    headers = {"Host": at(server, "localhost:PORT"), "Origin": at(server, "http://localhost:PORT")}
    reply = server.post("/v1/translate", headers, text="一")
    assert reply.status == 200
    assert "access-control-allow-origin" not in reply.headers


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_a_browser_says_of_the_page_counts(server: Served, site: str) -> None:
    assert server.get("/v1/models", **{"Sec-Fetch-Site": site}).status == 403
    assert server.get("/v1/models", **{"Sec-Fetch-Site": "same-origin"}).status == 200
    assert server.get("/", **{"Sec-Fetch-Site": "none"}).status == 200


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_what_a_form_can_send_is_refused(server: Served, kind: str) -> None:
    reply = server.ask("POST", "/v1/translate", b'{"text": "x"}', {"Content-Type": kind})
    assert (reply.status, reply.code) == (415, "not_json")


@pytest.mark.parametrize("route", ROUTES)
def test_every_answer_has_the_policy(server: Served, route: str) -> None:
    headers = server.get(route).headers
    assert headers["content-security-policy"].startswith(
        "default-src 'none'; script-src 'self'; style-src 'self'"
    )
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert "server" not in headers


@pytest.fixture(scope="module")
def locked(models: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("locked")
    (folder / "key").write_text(KEY + "\n")
    options = (
        "--host",
        "127.0.0.1",
        "--key-file",
        str(folder / "key"),
        "--allow-origin",
        "https://app.example",
    )
    with served(models[1:], folder / "log", *options) as running:
        yield running
    assert KEY not in (folder / "log").read_text()


WRONG = ("", KEY[:-1], KEY + "x", KEY.upper(), "é" * 28, f"{KEY}\x7f", "null", "0")


@pytest.mark.parametrize("route", ROUTES)
def test_no_route_but_health_without_the_key(locked: Served, route: str) -> None:
    if route == "/health":
        assert locked.get(route).status == 200
        return
    right = locked.get(route, Authorization=f"Bearer {KEY}")
    assert right.status == (404 if route == "/nowhere" else 200)
    assert KEY.encode() not in right.body
    for wrong in WRONG:
        for scheme in ("Bearer ", "bearer ", "Basic ", ""):
            reply = locked.get(route, Authorization=(scheme + wrong).encode().decode("latin-1"))
            assert (reply.status, reply.code) == (401, "key_needed")
    for scheme in ("Digest ", "Token ", "BearerX ", ""):
        assert locked.get(route, Authorization=scheme + KEY).status == 401
    assert locked.get(route).headers["www-authenticate"] == 'Basic realm="regard"'


def test_a_browser_may_send_the_key_as_a_password(locked: Served) -> None:
    for user in ("", "me"):
        sent = base64.b64encode(f"{user}:{KEY}".encode()).decode()
        assert locked.get("/v1/models", Authorization=f"Basic {sent}").status == 200
    assert locked.get("/v1/models", Authorization="Basic !!!").status == 401


def test_the_key_is_not_for_foreign_hosts(locked: Served) -> None:
    assert locked.get("/v1/models", Host="evil", Authorization=f"Bearer {KEY}").status == 403


def test_a_listed_page_may_ask(locked: Served) -> None:
    origin = {"Origin": "https://app.example", "Sec-Fetch-Site": "cross-site"}
    preflight = locked.ask("OPTIONS", "/v1/classify", None, origin)
    assert preflight.status == 204
    assert preflight.headers["access-control-allow-origin"] == "https://app.example"
    assert "authorization" in preflight.headers["access-control-allow-headers"]
    refused = locked.post("/v1/classify", origin, text="good")
    assert refused.status == 401
    assert refused.headers["access-control-allow-origin"] == "https://app.example", "it may read why"
    reply = locked.post("/v1/classify", origin | {"Authorization": f"Bearer {KEY}"}, text="good")
    assert reply.status == 200
    assert reply.headers["access-control-allow-origin"] == "https://app.example"
    assert (
        locked.ask("OPTIONS", "/v1/classify", None, origin | {"Origin": "https://app.example.evil"}).status
        == 403
    )


def test_a_body_that_lies_about_its_length_is_refused(server: Served) -> None:
    reply = server.ask("POST", "/v1/translate", b"{}", JSON | {"Content-Length": "10000000000"})
    assert (reply.status, reply.code) == (413, "too_large")
