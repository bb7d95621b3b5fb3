"""SQuAD v1.1 and v2: one JSON object that holds articles, their paragraphs, and questions about each.

It is read as a whole, so its size is bounded. Contexts keep their white space, as answers are found in them
by the number of a character; a question whose answers are not where they say is refused by its id. A table
whose questions have their answers as two lists, as Hugging Face's datasets keep SQuAD, is read the same way.
"""

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from regard.errors import DataError
from regard.files.lines import Refuse, codec, decoding_remedy, refuse_at_once, resolve

SUFFIX = ".json"
ROLES = ("question", "context", "answer")
MAX_BYTES = 256 * 2**20
LONGEST_ID = 100
PLACE = re.compile(r"\d{1,12}")
"""The number of a character, as far as one can be."""

Found = tuple[str, dict[str, Any]]
"""A question's id, and its cells."""


def questions(
    file: str,
    *,
    encoding: str = "utf-8",
    base: Path | None = None,
    refuse: Refuse = refuse_at_once,
) -> Iterator[Found]:
    """Yields every question with its context and its answers."""
    for where, context, asked in _paragraphs(file, _articles(file, whole_json(file, encoding, base)), refuse):
        for number, one in enumerate(asked, 1):
            named = one.get("id") if isinstance(one, dict) else None
            name = str(named) if isinstance(named, str | int) else f"{where}, question {number}"
            name = "".join(filter(str.isprintable, name[:LONGEST_ID]))
            try:
                yield name, _cells(f"{file}: question {name}", context, one)
            except DataError as fault:
                refuse(fault)


def whole_json(file: str, encoding: str, base: Path | None) -> str:
    """The text of a file of JSON, which is read as a whole and therefore bounded."""
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
        parsed = json.loads(content)
    except (ValueError, RecursionError) as fault:
        raise DataError(f"{file}: not valid JSON ({fault}); JSON lines have a name in .jsonl") from fault
    articles = parsed.get("data") if isinstance(parsed, dict) else None
    if not isinstance(articles, list):
        raise DataError(f'{file}: no list of articles under "data", so it is not in the shape of SQuAD')
    return articles


def _paragraphs(file: str, articles: list[Any], refuse: Refuse) -> Iterator[tuple[str, str, list[Any]]]:
    """Yield each paragraph: its place, its text, and the questions about it."""
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


def _cells(where: str, context: str, one: Any) -> dict[str, Any]:
    """The raw cells of a question; its answers as two lists, as Hugging Face's datasets keep them."""
    if not isinstance(one, dict) or not isinstance(one.get("question"), str):
        raise DataError(f'{where}: has no "question" that is a text')
    answers = [] if one.get("is_impossible") is True else one.get("answers", [])
    return {"question": one["question"], "context": context, "answer": answers}


def has_lists(value: object) -> bool:
    """True if a value is answers as two lists: their texts, and where each begins."""
    return isinstance(value, dict) and value.keys() >= {"text", "answer_start"}


def pairs(where: str, answers: Any) -> list[dict[str, Any]]:
    """Answers as a list of texts, each with the character it begins at; DataError for another shape."""
    if isinstance(answers, list):
        listed = [answer if isinstance(answer, dict) else {} for answer in answers]
        return [{"text": one.get("text"), "answer_start": one.get("answer_start")} for one in listed]
    if not has_lists(answers):
        raise DataError(f'{where}: its "answers" are not a list')
    texts, starts = answers["text"], answers["answer_start"]
    if not (isinstance(texts, list) and isinstance(starts, list) and len(texts) == len(starts)):
        raise DataError(f'{where}: its answers need lists "text" and "answer_start" of the same length')
    numbers = [int(start) if PLACE.fullmatch(str(start)) else None for start in starts]
    return [{"text": text, "answer_start": start} for text, start in zip(texts, numbers, strict=True)]


def place(where: str, context: str, answer: dict[str, Any]) -> tuple[int, int]:
    """Begin and end of an answer in its context; DataError if it is not there."""
    text, start = answer.get("text"), answer.get("answer_start")
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
