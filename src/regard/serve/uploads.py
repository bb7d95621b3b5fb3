"""Uploads: a form with files becomes the same request in JSON, where a file is its bytes in base64.

A request says by name which of its inputs are files (`Ask.files`), or the model's own fields do. So a string
never becomes a path, and whatever is a file is bounded before anything of it is decoded.
"""

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from regard.errors import DataError
from regard.files.row import side_by_side
from regard.serve.limits import Limits
from regard.serve.request_error import RequestError

FORM = "multipart/form-data"
PATH = "/v1/ask"
"""The route that takes files."""
SETTINGS = ("model", "attention", "packed")
"""The names in a form that are no inputs."""
TRUTHS = {"true": True, "1": True, "on": True, "false": False, "0": False, "off": False}


def base64_length(n_bytes: int) -> int:
    """Characters that so many bytes have in base64."""
    return -(-n_bytes // 3) * 4


def body_bytes(limits: Limits) -> int:
    """Bytes that a request with a file of the largest size may have."""
    return limits.body_bytes + base64_length(limits.file_bytes)


def from_form(body: bytes, content_type: str, limits: Limits) -> bytes:
    """The body of a form as that of a request in JSON; RequestError if it is none."""
    values: dict[str, list[str]] = {}
    files: dict[str, None] = {}
    for name, filename, content in _parts(body, content_type, limits.texts + len(SETTINGS)):
        if filename is not None:
            files[name] = None
            _refuse_large(name, len(content), limits)
            values.setdefault(name, []).append(b64encode(content).decode())
            continue
        try:
            values.setdefault(name, []).append(content.decode())
        except UnicodeDecodeError:
            raise _bad(f"{name}: the text is not UTF-8; send it as a file, or in UTF-8") from None
    settings = {name: values.pop(name) for name in SETTINGS if name in values}
    if not values:
        raise _bad("the form holds no input; give one, as in -F image=@picture.png")
    try:
        inputs = side_by_side(values)
    except DataError as fault:
        raise RequestError(422, "unequal", str(fault)) from None
    request: dict[str, Any] = {"inputs": inputs, "files": list(files)}
    for name, (first, *others) in settings.items():
        if others or (name != "model" and first not in TRUTHS):
            raise RequestError(
                422, "invalid", f"{name}: give one {'name' if name == 'model' else 'true or false'}"
            )
        request[name] = first if name == "model" else TRUTHS[first]
    return json.dumps(request).encode()


def _parts(body: bytes, content_type: str, most: int) -> list[tuple[str, str | None, bytes]]:
    """The parts of a form: their names, the names of their files, and what they hold."""
    boundary = parse_options_header(content_type)[1].get(b"boundary")
    if not boundary:
        raise _bad("the form has no boundary; let your program write the header Content-Type")
    parts: list[tuple[str, str | None, bytes]] = []
    headers: list[tuple[bytearray, bytearray]] = []
    content = bytearray()
    is_complete = False

    def begin() -> None:
        if len(parts) == most:
            raise RequestError(
                422, "too_many", f"the form has more than {most} parts; send fewer", limit=most
            )
        headers.clear()
        content.clear()

    def name(data: bytes, start: int, end: int) -> None:
        if not headers or headers[-1][1]:
            headers.append((bytearray(), bytearray()))
        headers[-1][0].extend(data[start:end])

    def value(data: bytes, start: int, end: int) -> None:
        headers[-1][1].extend(data[start:end])

    def end() -> None:
        by_name = {bytes(key).lower(): bytes(text) for key, text in headers}
        options = parse_options_header(by_name.get(b"content-disposition", b""))[1]
        if not options.get(b"name"):
            raise _bad("a part of the form has no name; name it as the model's input is named")
        filename = options.get(b"filename")
        said = [
            None if one is None else one.decode("utf-8", "replace") for one in (options[b"name"], filename)
        ]
        parts.append((str(said[0]), said[1], bytes(content)))

    def finish() -> None:
        nonlocal is_complete
        is_complete = True

    callbacks: Any = {
        "on_part_begin": begin,
        "on_header_field": name,
        "on_header_value": value,
        "on_part_data": lambda data, start, stop: content.extend(data[start:stop]),
        "on_part_end": end,
        "on_end": finish,
    }
    try:
        parser = MultipartParser(boundary, callbacks)
        parser.write(body)
        parser.finalize()
    except FormParserError:
        raise _bad("the form cannot be read; send it as multipart/form-data says (RFC 7578)") from None
    if not is_complete:
        raise _bad("the form is cut off before its end; send it again")
    return parts


def refuse_beyond(inputs: Sequence[Mapping[str, Any]], uploads: Sequence[str], limits: Limits) -> None:
    """RequestError for an input whose file is none, or larger than a file may be, before it is decoded."""
    for number, given in enumerate(inputs, 1):
        for name in set(uploads) & given.keys():
            file = given[name]
            if not isinstance(file, str):
                raise RequestError(422, "invalid", f"input {number}: {name} must be a file in base64")
            if len(file) > base64_length(limits.file_bytes):
                _refuse_large(f"input {number}: {name}", len(file) // 4 * 3, limits)


def _refuse_large(what: str, n_bytes: int, limits: Limits) -> None:
    most = limits.file_bytes
    if n_bytes > most:
        message = f"{what}: the file has {n_bytes:,} bytes, more than {most:,}; send a smaller one"
        raise RequestError(413, "too_large", message, limit=most)


def _bad(message: str) -> RequestError:
    return RequestError(400, "not_a_form", message)
