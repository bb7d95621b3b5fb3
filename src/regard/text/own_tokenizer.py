"""Reader of a tokenizer.json that regard has written, and that may have been changed since.

All but its tokens must be as `learn` makes it: any other step could change a text or take forever.
"""

import json
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, get_args

import tokenizers as hf

from regard.errors import CheckpointError
from regard.text.pretokenize import MAX_WORD, Kind, Space, with_pipeline
from regard.text.tokenizer_files import checked_vocabulary, without_panic
from regard.text.vocabulary import MODELS, SPECIALS, TokenizerConfig

IDS = {name: id_ for id_, name in enumerate(SPECIALS)}
SCORES = [(name, 0.0) for name in SPECIALS]


def from_json(path: Path, content: dict[str, Any]) -> hf.Tokenizer:
    """Rebuild the tokenizer from the content of a tokenizer.json."""
    _refuse_steps(path, content)
    kind = _styles().get(_parsed(path, _without_tokens(content)).to_str())
    if kind is None:
        raise _not_ours(path)
    names, fixed = _names(path, content["model"].get("vocab")), TokenizerConfig(kind=kind).fixed
    if tuple(names[: len(fixed)]) != fixed:
        raise CheckpointError(
            f"{path}: its vocabulary does not begin with the special tokens of regard; is it damaged?"
        )
    if kind != "wordpiece" and (longest := max(map(len, names))) > MAX_WORD + 1:
        raise CheckpointError(
            f"{path}: a token of {longest:,} characters is longer than any word; is it damaged?"
        )
    tokenizer = _parsed(path, content)
    if kind == "unigram":  # the library rounds some JSON numbers
        tokenizer.model = MODELS[kind]([(name, float(score)) for name, score in content["model"]["vocab"]])
    return tokenizer


def _refuse_steps(path: Path, content: dict[str, Any]) -> None:
    """Refuse any step that regard never writes, before the library reads it and may panic."""
    try:
        steps = _steps(content)
    except RecursionError:
        raise CheckpointError(
            f"{path}: not a tokenizer.json, or a damaged one (it is nested too deep)"
        ) from None
    if steps - set().union(*(_steps(json.loads(style)) for style in _styles())):
        raise _not_ours(path)


def _not_ours(path: Path) -> CheckpointError:
    return CheckpointError(f"{path}: this tokenizer was not made by regard; train one here, or convert it")


def _steps(part: Any) -> set[str]:
    """The types of all steps of a tokenizer.json, nested ones too, without its vocabulary."""
    if isinstance(part, dict):
        named = {part["type"]} if isinstance(part.get("type"), str) else set()
        return named.union(
            *(_steps(value) for name, value in part.items() if name not in ("vocab", "merges"))
        )
    return set().union(*map(_steps, part)) if isinstance(part, list) else set()


def _names(path: Path, vocabulary: Any) -> list[str]:
    """Tokens by id; unigram lists them with their scores."""
    if isinstance(vocabulary, list):
        first = [pair[0] if isinstance(pair, list) and pair else None for pair in vocabulary]
        vocabulary = {name: id_ for id_, name in enumerate(first) if isinstance(name, str)}
    ids = checked_vocabulary(path, vocabulary)
    return sorted(ids, key=ids.__getitem__)


@cache
def _styles() -> dict[str, Kind]:
    """Every pipeline that `learn` can make, without tokens, as JSON."""
    special: dict[Kind, tuple[Any, ...]] = {"bpe": (IDS, []), "unigram": (SCORES,)}
    styles = product(get_args(Kind), (False, True), (False, True), get_args(Space))
    return {
        with_pipeline(
            MODELS[kind](*special.get(kind, (IDS,))),
            kind,
            lowercase=lowercase,
            segmented=segmented,
            space=space,
        ).to_str(): kind
        for kind, lowercase, segmented, space in styles
    }


def _without_tokens(content: dict[str, Any]) -> dict[str, Any]:
    """The same file with no tokens but the special ones."""
    model = content.get("model")
    if not isinstance(model, dict) or "type" not in model:
        return content | {"model": None}
    special = {"vocab": SCORES if isinstance(model.get("vocab"), list) else IDS}
    return content | {"model": model | special | ({"merges": []} if "merges" in model else {})}


def _parsed(path: Path, content: dict[str, Any]) -> hf.Tokenizer:
    try:
        with without_panic():
            return hf.Tokenizer.from_str(json.dumps(content))
    except Exception as error:  # the library has no class of its own for this
        raise CheckpointError(f"{path}: not a tokenizer.json, or a damaged one ({error})") from error
