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
from regard.text.foreign import numbered
from regard.text.vocabulary import MODELS, SPECIALS, TokenizerConfig
from regard.text.writing import MAX_WORD, Kind, Space, around

IDS = {name: place for place, name in enumerate(SPECIALS)}
SCORES = [(name, 0.0) for name in SPECIALS]


def rebuilt(path: Path, told: dict[str, Any]) -> hf.Tokenizer:
    """Of what a tokenizer.json holds."""
    kind = _styles().get(_parsed(path, _bare(told)).to_str())
    if kind is None:
        raise CheckpointError(f"{path}: a tokenizer, but not one of regard; train it here or convert it")
    names, fixed = _names(path, told["model"].get("vocab")), TokenizerConfig(kind=kind).fixed
    if tuple(names[: len(fixed)]) != fixed:
        raise CheckpointError(f"{path}: its vocabulary does not begin as one of regard does; is it damaged?")
    if kind != "wordpiece" and (longest := max(map(len, names))) > MAX_WORD + 1:
        raise CheckpointError(
            f"{path}: a piece of {longest:,} characters, longer than any word; is it damaged?"
        )
    return _parsed(path, told)


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
        return hf.Tokenizer.from_str(json.dumps(told))
    except Exception as error:  # the library has no class of its own for this
        raise CheckpointError(f"{path}: not a tokenizer.json, or a damaged one ({error})") from error
