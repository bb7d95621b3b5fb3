"""Questions of a request, one by one: texts, or questions with their contexts."""

from collections.abc import Mapping, Sequence

from regard.files.row import Asked
from regard.serve.request_error import RequestError

Given = str | list[str] | None


def asked(given: Mapping[str, Given], names: Sequence[str]) -> list[Asked]:
    """A single text beside a list of others stands for all of them: one context for several questions."""
    needed = " and ".join(names)
    for name, texts in given.items():
        if texts is None and name in names:
            raise RequestError(422, "other_fields", f"{name}: missing; this model is asked with {needed}")
        if texts is not None and name not in names:
            message = f"{name}: this model is asked with {needed}; leave it out"
            raise RequestError(422, "other_fields", message)
    lists = {name: texts for name in names if isinstance(texts := given[name], list)}
    counts = {len(texts) for texts in lists.values()} or {1}
    if len(counts) > 1:
        raise RequestError(422, "unequal", f"{' and '.join(lists)} must be lists of the same length")
    (n,) = counts
    columns = [_said(name, lists.get(name, [given[name]] * n)) for name in names]
    if len(names) == 1:
        return list(columns[0])
    return [dict(zip(names, texts, strict=True)) for texts in zip(*columns, strict=True)]


def _said(name: str, texts: Sequence[Given]) -> list[str]:
    for number, text in enumerate(texts, 1):
        assert isinstance(text, str)
        if not text.strip():
            raise RequestError(422, "empty_text", f"{name} {number} of {len(texts)} is blank; leave it out")
    return [str(text) for text in texts]
