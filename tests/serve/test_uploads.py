"""Pictures over HTTP: in base64 or as uploads, bounded before they are decoded, never a path."""

import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from pictures import LABELS, classifier, noise
from regard.api.trained import Trained
from regard.serve import uploads
from regard.serve.limits import Limits
from regard.serve.request_error import RequestError
from served import JSON, Reply, Served, served

CPU = "cpu"
BOUNDARY = "7e1a"
MOST = 60_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pictures") / "animals"
    task, model, config = classifier("vit-class")
    Trained(task, task.config, model, config, {}, torch.device(CPU)).save(path)
    return path


@pytest.fixture(scope="module")
def animals(folder: Path) -> Iterator[Served]:
    with served([folder], folder.parent / "log", "--limit", f"file_bytes={MOST}") as running:
        yield running


def text(content: bytes) -> str:
    return b64encode(content).decode()


def form(*parts: tuple[str, bytes | str]) -> bytes:
    """A form as RFC 7578 writes it: a part is a file if it is bytes."""
    lines = []
    for name, value in parts:
        filename = '; filename="a b.png"\r\nContent-Type: image/png' if isinstance(value, bytes) else ""
        content = value if isinstance(value, bytes) else value.encode()
        head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{filename}\r\n\r\n'
        lines.append(head.encode() + content + b"\r\n")
    return b"".join(lines) + f"--{BOUNDARY}--\r\n".encode()


HEADER = f"multipart/form-data; boundary={BOUNDARY}"
FORM = {"Content-Type": HEADER}


def upload(server: Served, *parts: tuple[str, bytes | str], **headers: str) -> Reply:
    return server.ask("POST", "/v1/ask", form(*parts), FORM | headers)


def test_an_upload_and_base64_are_answered_as_at_home(animals: Served, folder: Path) -> None:
    pictures = noise(3, 19, 31)
    expected = [answer.text for answer in regard.load(folder, device=CPU).predict(pictures)]
    assert len(set(expected)) > 1
    sent = upload(animals, *(("image", picture) for picture in pictures)).json["answers"]
    assert [answer["text"] for answer in sent] == expected
    (one,) = upload(animals, ("image", pictures[1]), ("model", "animals")).json["answers"]
    in_json = animals.post("/v1/ask", inputs=[{"image": text(picture)} for picture in pictures])
    assert [answer["text"] for answer in in_json.json["answers"]] == expected
    assert one["probabilities"] == in_json.json["answers"][1]["probabilities"]
    assert set(one["probabilities"]) == set(LABELS)


def test_what_it_looked_at_comes_with_the_picture(animals: Served, folder: Path) -> None:
    (picture,) = noise(1)
    answer = upload(animals, ("image", picture), ("attention", "true")).json["answers"][0]
    (axis,) = [one for one in answer["attention"]["axes"] if one.get("picture")]
    assert axis["grid"] == [3, 5]
    packed = animals.post("/v1/ask", inputs={"image": text(picture)}, attention=True, packed=True).json
    here = regard.load(folder, device=CPU).explain(picture).to_json(packed=True)
    assert packed["answers"][0]["attention"]["maps"] == here["maps"]


def test_models_say_what_they_are_asked_with(animals: Served) -> None:
    (model,) = animals.get("/v1/models").json["models"]
    assert model["inputs"] == [{"name": "image", "widget": "image", "accepts": "image/*", "file": True}]


def test_a_string_opens_no_path(animals: Served, tmp_path: Path) -> None:
    path = tmp_path / "here.png"
    path.write_bytes(noise(1)[0])
    for name in (str(path), f"file://{path}", "/etc/passwd", "../here.png"):
        for reply in (animals.post("/v1/ask", inputs={"image": name}), upload(animals, ("image", name))):
            assert reply.status == 422, name
            assert "not base64" in reply.json["error"]["message"]
    reply = animals.post("/v1/ask", inputs=[{"image": text(noise(1)[0])}, {"image": "abcd"}])
    assert reply.json["error"]["message"].startswith("input 2: not a picture")


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "the file is empty"),
        (b"hello, world", "text, whatever its name says"),
        (noise(1)[0][:200], "the picture is damaged"),
    ],
)
def test_what_is_no_picture_is_one_sentence(animals: Served, content: bytes, fault: str) -> None:
    reply = upload(animals, ("image", content))
    assert reply.status == 422
    assert fault in reply.json["error"]["message"]
    assert reply.json["error"]["message"].count("\n") == 0


def test_a_file_is_bounded_before_it_is_decoded(animals: Served) -> None:
    large = np.random.default_rng(1).bytes(MOST + 1)
    for reply in (upload(animals, ("image", large)), animals.post("/v1/ask", inputs={"image": text(large)})):
        assert (reply.status, reply.code) == (413, "too_large")
        assert f"more than {MOST:,}" in reply.json["error"]["message"]
    assert animals.post("/v1/ask", inputs={"image": text(large[:-1])}).code == "cannot_be_done"
    beyond = animals.post("/v1/ask", inputs={"image": "A" * 1_200_000})
    assert (beyond.status, beyond.code) == (413, "too_large")
    assert animals.get("/ready").status == 200


@pytest.mark.parametrize(
    ("request_fields", "code"),
    [
        ({"inputs": {"image": 3}}, "invalid"),
        ({"inputs": {"image": ["QUJD"]}}, "invalid"),
        ({"inputs": {"image": "QUJD"}, "files": ["picture"]}, "other_fields"),
        ({"inputs": {"picture": "QUJD"}}, "cannot_be_done"),
        ({"inputs": []}, "too_many"),
    ],
)
def test_other_values_are_refused(animals: Served, request_fields: dict[str, Any], code: str) -> None:
    reply = animals.post("/v1/ask", **request_fields)
    assert (reply.status, reply.code) == (422, code)


def test_texts_are_asked_elsewhere(animals: Served) -> None:
    reply = animals.post("/v1/classify", text="hello")
    assert (reply.status, reply.code) == (422, "reads_files")
    assert "reads files (image); ask it at /v1/ask" in reply.json["error"]["message"]
    assert animals.post("/v1/explain", text="hello").code == "reads_files"
    assert animals.ask("POST", "/v1/classify", form(("text", "hello")), FORM).status == 415


def test_forms_of_other_pages_are_refused(animals: Served) -> None:
    reply = upload(animals, ("image", noise(1)[0]), Origin="http://attacker.example")
    assert (reply.status, reply.code) == (403, "origin_not_allowed")


@pytest.mark.parametrize(
    ("body", "header", "status", "fault"),
    [
        (form(("image", b"x")), "multipart/form-data", 400, "the form has no boundary"),
        (form(("image", b"x"))[:-9], HEADER, 400, "is cut off before its end"),
        (b"nonsense", HEADER, 400, "the form cannot be read"),
        (b"", HEADER, 400, "is cut off"),
        (form(("", b"x")), HEADER, 400, "a part of the form has no name"),
        (form(("model", "animals")), HEADER, 400, "the form holds no input"),
        (form(("image", b"x"), ("attention", "perhaps")), HEADER, 422, "give one true or false"),
        (form(("image", b"x"), ("model", "a"), ("model", "b")), HEADER, 422, "give one name"),
        (form(("a", b"x"), ("a", b"x"), ("b", "1"), ("b", "2"), ("b", "3")), HEADER, 422, "as many"),
        (form(*[("image", b"x")] * 68), HEADER, 422, "more than 67 parts"),
        (form(("image", b"x")).replace(b'"image"; filename', b'"t"; nofile').replace(b"x\r", b"\xff\r"),
         HEADER, 400, "t: the text is not UTF-8"),
    ],
)  # fmt: skip
def test_forms_that_cannot_be_read(body: bytes, header: str, status: int, fault: str) -> None:
    with pytest.raises(RequestError) as refusal:
        uploads.from_form(body, header, Limits())
    assert refusal.value.status == status
    assert fault in refusal.value.message


def test_no_damage_makes_a_fault_of_the_server() -> None:
    rng = np.random.default_rng(5)
    whole = form(("image", b"\x00\r\n--7e1\xff"), ("model", "names"))
    for _ in range(300):
        damaged = bytearray(whole)
        for at in rng.integers(0, len(damaged), rng.integers(1, 5)):
            damaged[at] = rng.integers(256)
        try:
            request = json.loads(uploads.from_form(bytes(damaged), HEADER, Limits()))
        except RequestError:
            continue
        assert request["inputs"]


def test_a_form_is_what_it_was_made_of(animals: Served) -> None:
    content = np.random.default_rng(2).bytes(3_000)
    body = form(("image", content), ("image", content[:7]), ("question", "多大？"), ("attention", "true"))
    request = json.loads(uploads.from_form(body, HEADER, Limits()))
    assert request == {
        "inputs": [
            {"image": text(content), "question": "多大？"},
            {"image": text(content[:7]), "question": "多大？"},
        ],
        "files": ["image"],
        "attention": True,
    }
    assert animals.ask("POST", "/v1/ask", json.dumps(request).encode(), JSON).status == 422
