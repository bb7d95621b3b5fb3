"""What the server answers is what the model answers without it."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from served import JSON, Served, sentences

TEXTS = sentences(40)


def test_a_text_gets_the_offline_answer(server: Served, offline) -> None:
    reply = server.post("/v1/translate", text=TEXTS[7])
    expected = offline["numbers"].predict(TEXTS[7])
    assert reply.status == 200
    assert reply.json == {"model": "numbers", "answers": [expected.to_json()]}


def test_several_texts_are_answered_in_their_order(server: Served, offline) -> None:
    answers = server.post("/v1/translate", text=TEXTS, model="numbers").json["answers"]
    expected = [answer.text for answer in offline["numbers"].predict(TEXTS)]
    assert len(set(expected)) > 20
    assert [answer["text"] for answer in answers] == expected


@pytest.mark.parametrize(
    "decode",
    [
        {"beam": 1},
        {"beam": 4, "n_best": 3},
        {"beam": 4, "groups": 2, "diversity": 1},
        {"sample": True, "temperature": 0.8, "top_p": 0.9, "seed": 5, "n_best": 2},
        {"beam": 3, "must_include": ["seven"], "must_not": ["one", "two"]},
        {"prefix": "nine", "min_length": 3, "max_length": 6, "no_repeat": 2},
        {"batch_invariant": True},
    ],
    ids=str,
)
def test_every_way_of_decoding(server: Served, offline, decode: dict) -> None:
    answers = server.post("/v1/translate", text=TEXTS[:5], decode=decode).json["answers"]
    assert answers == [answer.to_json() for answer in offline["numbers"].predict(TEXTS[:5], **decode)]


@pytest.mark.parametrize("decode", [{"beam": 1}, {"beam": 4}, {"sample": True, "seed": 3}], ids=str)
def test_a_stream_grows_to_the_offline_answer(server: Served, offline, decode: dict) -> None:
    reply = server.post("/v1/translate", text=TEXTS[9], stream=True, decode=decode)
    assert reply.headers["content-type"].startswith("text/event-stream")
    *parts, (last, final) = reply.events
    told = [data["text"] for name, data in parts]
    assert {name for name, _ in parts} == {"text"}
    assert all(after.startswith(before) for before, after in itertools.pairwise(told))
    expected = offline["numbers"].predict(TEXTS[9], **decode).to_json()
    assert (last, final) == ("answer", {"model": "numbers", "answer": expected})
    assert told == list(offline["numbers"].follow(TEXTS[9], **decode))


def test_labels_with_probabilities(server: Served, offline) -> None:
    texts = ["good film 3", "bad film 1", "film"]
    answers = server.post("/v1/classify", text=texts).json["answers"]
    assert answers == [answer.to_json() for answer in offline["films"].predict(texts)]


def test_an_explanation_is_the_offline_one_for_the_same_search(server: Served, offline) -> None:
    decode = {"beam": 1, "max_length": 5}
    answer = server.post("/v1/explain", text=TEXTS[31], model="numbers", decode=decode).json["answer"]
    expected = offline["numbers"].explain(TEXTS[31], **decode)
    assert answer["text"] == expected.output
    attention = answer["attention"]
    assert attention["main"] == expected.sites.index(expected.main)
    assert attention["trust"]["sentences"]["en"] == expected.trust.sentence
    for drawn, known in zip(attention["maps"], expected.maps, strict=True):
        np.testing.assert_allclose(drawn["weights"], known.weights_HQK, atol=1e-4)
        assert attention["axes"][drawn["columns"]]["labels"] == list(known.columns.labels)


def test_attention_comes_with_answers_when_asked(server: Served, offline) -> None:
    (label,) = server.post("/v1/classify", text="good film", attention=True).json["answers"]
    assert label["attention"]["output"] == offline["films"].predict("good film").text
    answers = server.post("/v1/translate", text=TEXTS[:2], attention=True).json["answers"]
    assert [answer["attention"]["input"] for answer in answers] == TEXTS[:2]


def test_forty_clients_each_get_their_own_answer(server: Served, offline) -> None:
    expected = {text: offline["numbers"].predict(text).text for text in TEXTS}

    def client(text: str) -> tuple[str, int, str]:
        reply = server.post("/v1/translate", text=text)
        return text, reply.status, reply.json["answers"][0]["text"] if reply.status == 200 else ""

    with ThreadPoolExecutor(40) as pool:
        found = list(pool.map(client, TEXTS * 5))
    assert {status for _, status, _ in found} <= {200, 429}
    assert sum(status == 200 for _, status, _ in found) >= 40
    assert all(answer == expected[text] for text, status, answer in found if status == 200)


def test_what_one_text_cannot_have_fails_no_other(server: Served) -> None:
    """Six pieces begin the answer, so a short text has no room for them while a long one has."""
    decode = {"prefix": "one two three four five six", "max_ratio": 1.0}
    tight = {"prefix": " ".join(["one"] * 13), "max_ratio": 1.0, "no_repeat": 0}
    assert server.post("/v1/translate", text=TEXTS[3], decode=decode).status == 200
    with ThreadPoolExecutor(2) as pool:
        short = pool.submit(server.post, "/v1/translate", text="一", decode=tight)
        long = pool.submit(server.post, "/v1/translate", text="一二三四五", decode=tight)
        assert short.result().code == "cannot_be_done"
        assert long.result().status == 200


@pytest.mark.parametrize(
    ("path", "fields", "status", "code", "said"),
    [
        (
            "translate",
            {"text": ["一", "二"], "stream": True},
            422,
            "contradiction",
            "stream and several texts",
        ),
        (
            "translate",
            {"text": "一", "stream": True, "decode": {"n_best": 2}},
            422,
            "contradiction",
            "n_best",
        ),
        ("translate", {"text": "一", "stream": True, "attention": True}, 422, "contradiction", "attention"),
        ("translate", {"text": ["一", " \n"]}, 422, "empty_text", "text 2 of 2 is blank; leave it out"),
        ("translate", {"text": ""}, 422, "invalid", "text: String should have at least 1 char"),
        ("translate", {"text": []}, 422, "invalid", "text: List should have at least 1 item"),
        ("translate", {"text": "一" * 5001}, 422, "too_long", "text: String should have at most 5000"),
        ("translate", {"text": ["一"] * 65}, 422, "too_long", "text: List should have at most 64 items"),
        ("translate", {"text": "一", "model": "nobody"}, 404, "unknown_model", "there are: films, numbers"),
        ("translate", {"text": "一", "model": "films"}, 422, "other_task", "is for /v1/classify"),
        ("explain", {"text": "一"}, 422, "which_model", "say which model: numbers, films"),
        ("translate", {"text": "一", "decode": {"beam": 17}}, 422, "invalid", "less than or equal to 16"),
        (
            "translate",
            {"text": "一", "decode": {"max_length": 1001}},
            422,
            "invalid",
            "decode.max_length: Input should be less than or equal to 1000",
        ),
        (
            "translate",
            {"text": "一", "decode": {"beam": "2"}},
            422,
            "invalid",
            "decode.beam: Input should be a",
        ),
        (
            "translate",
            {"text": "一", "decode": {"baem": 2}},
            422,
            "invalid",
            "decode.baem: unknown; did you mean beam?",
        ),
        ("translate", {"txet": "一"}, 422, "invalid", "txet: unknown; did you mean text?"),
        ("classify", {"text": "a", "decode": {}}, 422, "invalid", "decode: unknown"),
        (
            "tag",
            {"text": "a"},
            422,
            "which_model",
            "there are: numbers (/v1/translate), films (/v1/classify)",
        ),
        ("explain", {"model": "films"}, 422, "other_fields", "text: missing; this model is asked with text"),
        ("translate", {"text": "一", "decode": {"n_best": 9}}, 422, "cannot_be_done", "cannot exceed beam"),
        (
            "translate",
            {"text": "一", "decode": {"must_include": ["x"]}},
            422,
            "cannot_be_done",
            "does not know",
        ),
        ("translate", {"text": "一", "decode": {"seed": 2**40}}, 422, "cannot_be_done", "too large"),
        (
            "explain",
            {"text": "a", "model": "films", "decode": {"beam": 2}},
            422,
            "cannot_be_done",
            "not search",
        ),
    ],
)
def test_what_cannot_be_asked_is_told_in_a_sentence(
    server: Served, path: str, fields: dict, status: int, code: str, said: str
) -> None:
    reply = server.post(f"/v1/{path}", **fields)
    assert (reply.status, reply.code) == (status, code)
    assert said in reply.json["error"]["message"]


def test_errors_name_their_limit(server: Served) -> None:
    assert server.post("/v1/translate", text="一" * 5001).json["error"]["limit"] == 5000
    assert server.post("/v1/translate", text=["一"] * 65).json["error"]["limit"] == 64
    assert server.post("/v1/translate", text="一", decode={"beam": 17}).json["error"]["limit"] == 16
    large = server.ask("POST", "/v1/translate", b'{"text": "' + b"a" * 10_000_000 + b'"}', JSON)
    assert (large.status, large.code, large.json["error"]["limit"]) == (413, "too_large", 1_000_000)


def test_states(server: Served) -> None:
    assert server.get("/health").json == {"status": "alive"}
    assert server.get("/ready").json == {"status": "ready"}
    models = server.get("/v1/models").json["models"]
    assert [(model["name"], model["task"], model["ready"]) for model in models] == [
        ("numbers", "translate", True),
        ("films", "classify", True),
    ]
    assert models[0]["decode"]["beam"] == 2
    metrics = server.get("/metrics").body.decode()
    assert 'regard_model_ready{model="numbers"} 1.0' in metrics
    assert 'regard_requests_total{route="/health",status="200"}' in metrics
    assert server.get("/openapi.json").json["info"]["title"] == "regard"
