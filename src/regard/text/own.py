"""A vocabulary that was learnt here, read from a tokenizer.json that somebody may have changed since.

All but its pieces must be as `learn` makes it: another step could do anything to a text, and take any time.
"""

import json
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, get_args

import tokenizers as hf

from regard.errors import CheckpointError
from regard.text.foreign import numbered, without_panic
from regard.text.vocabulary import MODELS, SPECIALS, TokenizerConfig
from regard.text.writing import MAX_WORD, Kind, Space, around

IDS = {name: place for place, name in enumerate(SPECIALS)}
SCORES = [(name, 0.0) for name in SPECIALS]


def rebuilt(path: Path, told: dict[str, Any]) -> hf.Tokenizer:
    """Of what a tokenizer.json holds."""
    _refuse_steps(path, told)
    kind = _styles().get(_parsed(path, _bare(told)).to_str())
    if kind is None:
        raise _not_ours(path)
    names, fixed = _names(path, told["model"].get("vocab")), TokenizerConfig(kind=kind).fixed
    if tuple(names[: len(fixed)]) != fixed:
        raise CheckpointError(f"{path}: its vocabulary does not begin as one of regard does; is it damaged?")
    if kind != "wordpiece" and (longest := max(map(len, names))) > MAX_WORD + 1:
        raise CheckpointError(
            f"{path}: a piece of {longest:,} characters, longer than any word; is it damaged?"
        )
    made = _parsed(path, told)
    if kind == "unigram":  # the library reads some numbers of JSON as their neighbours
        made.model = MODELS[kind]([(name, float(score)) for name, score in told["model"]["vocab"]])
    return made


def _refuse_steps(path: Path, told: dict[str, Any]) -> None:
    """Refuse any step that regard has not, before the library reads it, which may panic."""
    try:
        steps = _steps(told)
    except RecursionError:
        raise CheckpointError(
            f"{path}: not a tokenizer.json, or a damaged one (it is nested too deep)"
        ) from None
    if steps - set().union(*(_steps(json.loads(style)) for style in _styles())):
        raise _not_ours(path)


def _not_ours(path: Path) -> CheckpointError:
    return CheckpointError(f"{path}: a tokenizer, but not one of regard; train it here or convert it")


def _steps(part: Any) -> set[str]:
    """The types of all steps of a tokenizer.json: objects inside objects and lists, without the pieces."""
    if isinstance(part, dict):
        named = {part["type"]} if isinstance(part.get("type"), str) else set()
        return named.union(
            *(_steps(value) for name, value in part.items() if name not in ("vocab", "merges"))
        )
    return set().union(*map(_steps, part)) if isinstance(part, list) else set()


def _names(path: Path, vocabulary: Any) -> list[str]:
    """Of the pieces, by id; unigram has a list of them with their scores."""
    if isinstance(vocabulary, list):
        first = [pair[0] if isinstance(pair, list) and pair else None for pair in vocabulary]
        vocabulary = {name: place for place, name in enumerate(first) if isinstance(name, str)}
    ids = numbered(path, vocabulary)
    return sorted(ids, key=ids.__getitem__)


@cache
def _styles() -> dict[str, Kind]:
    """All that `learn` can make, without pieces, as JSON."""
    pieces: dict[Kind, tuple[Any, ...]] = {"bpe": (IDS, []), "unigram": (SCORES,)}
    made = product(get_args(Kind), (False, True), (False, True), get_args(Space))
    return {
        around(
            MODELS[kind](*pieces.get(kind, (IDS,))),
            kind,
            lowercase=lowercase,
            segmented=segmented,
            space=space,
        ).to_str(): kind
        for kind, lowercase, segmented, space in made
    }


def _bare(told: dict[str, Any]) -> dict[str, Any]:
    """Without pieces but the special ones."""
    model = told.get("model")
    if not isinstance(model, dict) or "type" not in model:
        return told | {"model": None}
    pieces = {"vocab": SCORES if isinstance(model.get("vocab"), list) else IDS}
    return told | {"model": model | pieces | ({"merges": []} if "merges" in model else {})}


def _parsed(path: Path, told: dict[str, Any]) -> hf.Tokenizer:
    try:
        with without_panic():
            return hf.Tokenizer.from_str(json.dumps(told))
    except Exception as error:  # the library has no class of its own for this
        raise CheckpointError(f"{path}: not a tokenizer.json, or a damaged one ({error})") from error
