"""SQuAD v1.1 and v2: one JSON object that holds articles, their paragraphs, and questions about each.

It is read as a whole, so its size is bounded. Contexts keep their white space, as answers are found in them
by the number of a character; a question whose answers are not where they say is refused by its id. A table
whose questions have their answers as two lists, as Hugging Face's datasets keep SQuAD, is read the same way.
"""

import gzip
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from regard.errors import DataError
from regard.files.lines import UNDECODED, Refuse, codec, decoding_remedy, refuse_at_once, resolve

SUFFIX = ".json"
ROLES = ("question", "context", "answer")
PLACES = "places"
"""The field beside them that says where all answers of a question stand: `3:9 3:14`."""
MAX_BYTES = 256 * 2**20
LONGEST_ID = 100
PLACE = re.compile(r"\d{1,12}")
"""The number of a character, as far as one can be."""

Found = tuple[str, dict[str, str]]
"""A question's id, and its fields."""


def questions(
    file: str,
    *,
    answered: bool = True,
    encoding: str = "utf-8",
    base: Path | None = None,
    refuse: Refuse = refuse_at_once,
) -> Iterator[Found]:
    """With their answers, unless these are not looked at."""
    for where, context, asked in _paragraphs(file, _articles(file, _content(file, encoding, base)), refuse):
        for number, one in enumerate(asked, 1):
            named = one.get("id") if isinstance(one, dict) else None
            name = str(named) if isinstance(named, str | int) else f"{where}, question {number}"
            name = "".join(filter(str.isprintable, name[:LONGEST_ID]))
            try:
                yield name, _fields(f"{file}: question {name}", context, one, answered)
            except DataError as fault:
                refuse(fault)


def _content(file: str, encoding: str, base: Path | None) -> str:
    path = resolve(file, base)
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as raw:
            content = raw.read(MAX_BYTES + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as damage:
        raise DataError(f"{file}: damaged gzip data ({damage}); get the file again") from damage
    except OSError as damage:
        raise DataError(f"{file}: cannot be read ({damage.strerror})") from damage
    if len(content) > MAX_BYTES:
        raise DataError(
            f"{file}: more than {MAX_BYTES:,} bytes of JSON; give several smaller files, or JSON lines"
        )
    if not content.strip():
        raise DataError(f"{file}: is empty; give a file with at least one question")
    try:
        return content.decode(codec(file, encoding))
    except UnicodeError as damage:
        remedy = decoding_remedy(content, "file")
        raise DataError(f"{file}: is not valid {encoding} ({damage}); {remedy}") from damage


def _articles(file: str, content: str) -> list[Any]:
    try:
        told = json.loads(content)
    except (ValueError, RecursionError) as fault:
        raise DataError(f"{file}: not valid JSON ({fault}); JSON lines have a name in .jsonl") from fault
    articles = told.get("data") if isinstance(told, dict) else None
    if not isinstance(articles, list):
        raise DataError(f'{file}: no list of articles under "data", so it is not in the shape of SQuAD')
    return articles


def _paragraphs(file: str, articles: list[Any], refuse: Refuse) -> Iterator[tuple[str, str, list[Any]]]:
    """Where each stands, its text, and what is asked about it."""
    for at, article in enumerate(articles, 1):
        paragraphs = article.get("paragraphs") if isinstance(article, dict) else None
        if not isinstance(paragraphs, list):
            refuse(DataError(f'{file}: article {at} has no list of "paragraphs"'))
            continue
        for number, paragraph in enumerate(paragraphs, 1):
            where = f"article {at}, paragraph {number}"
            context = paragraph.get("context") if isinstance(paragraph, dict) else None
            asked = paragraph.get("qas") if isinstance(paragraph, dict) else None
            if isinstance(context, str) and isinstance(asked, list):
                yield where, context, asked
            else:
                refuse(DataError(f'{file}: {where} needs a "context", which is a text, and a list of "qas"'))


def _fields(where: str, context: str, one: Any, answered: bool) -> dict[str, str]:
    if not isinstance(one, dict) or not isinstance(one.get("question"), str):
        raise DataError(f'{where}: has no "question" that is a text')
    for name, text in (("context", context), ("question", one["question"])):
        if "\0" in text or UNDECODED.search(text):
            raise DataError(f"{where}: its {name} holds a NUL or half of a surrogate pair, which is no text")
    asked = {"question": one["question"], "context": context}
    if not answered:
        return asked
    answers = one.get("answers", [])
    if not isinstance(answers, list):
        raise DataError(f'{where}: its "answers" are not a list')
    places = [] if one.get("is_impossible") is True else [_place(where, context, each) for each in answers]
    told = [f"{start}:{end}" for start, end in dict.fromkeys(places)]
    first = context[slice(*places[0])] if places else ""
    return asked | {"answer": first, PLACES: " ".join(told)}


def has_lists(value: object) -> bool:
    """Answers as two lists: their texts, and where each begins."""
    return isinstance(value, dict) and value.keys() >= {"text", "answer_start"}


def from_lists(where: str, question: object, context: object, answers: Any) -> dict[str, str]:
    """The fields of a row of such a table."""
    texts, starts = answers["text"], answers["answer_start"]
    if not (isinstance(texts, list) and isinstance(starts, list) and len(texts) == len(starts)):
        raise DataError(f'{where}: its answers need lists "text" and "answer_start" of the same length')
    if not isinstance(context, str):
        raise DataError(f"{where}: its context is not a text")
    numbers = [int(start) if PLACE.fullmatch(str(start)) else None for start in starts]
    pairs = [{"text": text, "answer_start": start} for text, start in zip(texts, numbers, strict=True)]
    return _fields(where, context, {"question": question, "answers": pairs}, answered=True)


def _place(where: str, context: str, answer: Any) -> tuple[int, int]:
    text = answer.get("text") if isinstance(answer, dict) else None
    start = answer.get("answer_start") if isinstance(answer, dict) else None
    if not isinstance(text, str) or type(start) is not int or not PLACE.fullmatch(str(abs(start))):
        raise DataError(f'{where}: an answer needs a "text" and the number "answer_start"')
    if not text:
        raise DataError(f"{where}: an answer is empty; a question without one has no answers at all")
    if start < 0 or context[start : start + len(text)] != text:
        at = context.find(text)
        remedy = f"but at {at}: count characters, from 0"
        if at < 0:
            remedy = "nor anywhere else; write it as it stands there"
        raise DataError(
            f"{where}: the answer {text[:60]!r} does not stand at character {start} of its context, {remedy}"
        )
    return start, start + len(text)


def places(fields: Mapping[str, str]) -> list[tuple[int, int]]:
    """Where answers stand, from the field that says so."""
    pairs = (place.split(":") for place in fields[PLACES].split())
    return [(int(start), int(end)) for start, end in pairs]
