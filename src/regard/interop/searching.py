"""What of a run's search can be said to another engine, and what cannot.

Only what means the same there is said. Our length penalty divides by ((5 + n) / 6)^a, theirs by n^b. No b
makes them the same: they are told the one that weighs a piece more or less as ours does where answers have
USUAL pieces.
"""

from collections.abc import Iterable
from typing import Any

from regard.decode import DecodeConfig
from regard.tasks import AnyTask
from regard.tasks.seq2seq import Seq2Seq

USUAL = 20
"""Pieces of an answer."""
SHAPING = ("sample", "groups", "prefix", "must_not", "must_include")
"""Settings that shape answers, beside lengths and beams."""
REPEATING = {"no_repeat": "no_repeat_ngram_size", "repetition_penalty": "repetition_penalty"}
"""Here and there."""
PLAINLY = {
    "do_sample": False,
    "num_beams": 1,
    "no_repeat_ngram_size": 0,
    "repetition_penalty": 1.0,
    "min_new_tokens": 0,
}
"""What `generate` is told where no setting of the run may have a say."""


def for_generate(decode: DecodeConfig, *, prompted: bool) -> dict[str, Any]:
    """For transformers' `generate`; `prompted`: to it what is continued is a part of the answer."""
    found: dict[str, Any] = {"do_sample": decode.sample}
    if decode.sample:
        found |= {"temperature": decode.temperature, "top_k": decode.top_k, "top_p": decode.top_p}
        found |= {"min_p": decode.min_p} if decode.min_p else {}
    else:
        found["num_beams"] = decode.beam
        found |= _ranking(decode) | {"early_stopping": False} if decode.beam > 1 else {}
    said = _said(decode, "hf", prompted=prompted)
    found |= {REPEATING[name]: value for name, value in _set(decode, REPEATING).items() if name in said}
    return found | ({"min_new_tokens": decode.min_length} if decode.min_length else {})


def for_translate_batch(task: Seq2Seq[Any]) -> dict[str, Any]:
    """For CTranslate2."""
    decode: DecodeConfig = task.config.decode
    return {
        "beam_size": decode.beam,
        **_ranking(decode),
        **{REPEATING[name]: value for name, value in _set(decode, REPEATING).items()},
        "min_decoding_length": decode.min_length,
        "max_decoding_length": longest(task) - 1,
    }


def longest(task: Seq2Seq[Any]) -> int:
    """Pieces of an answer at most, the end counted, whatever its source."""
    room: int = task.config.max_length
    most: int | None = task.config.decode.max_length
    return room if most is None else min(room, most + 1)


def unsaid(task: AnyTask, to: str) -> list[str]:
    """Settings of the run's search that its folder for an engine has nothing of."""
    decode: DecodeConfig | None = getattr(task, "decode", None)
    if decode is None or to == "onnx":  # whose search is the user's own
        return []
    said = _said(decode, to, prompted=task.kind == "language_model")
    return [name for name in _set(decode, (*SHAPING, *REPEATING)) if name not in said]


def _set(decode: DecodeConfig, names: Iterable[str]) -> dict[str, Any]:
    """Those of the settings that are not as they are by themselves."""
    usual = DecodeConfig()
    return {name: getattr(decode, name) for name in names if getattr(decode, name) != getattr(usual, name)}


def _ranking(decode: DecodeConfig) -> dict[str, float]:
    return {"length_penalty": round(decode.length_penalty * USUAL / (5 + USUAL), 4)}


def _said(decode: DecodeConfig, to: str, *, prompted: bool) -> set[str]:
    """With a prompt, transformers counts its pieces as written; and it makes what was said rarer among the
    probabilities of a beam, not among the scores they come from, as we do."""
    if to == "ct2":
        return {*REPEATING}
    if prompted:
        return {"sample"}
    return {"sample", "no_repeat"} | ({"repetition_penalty"} if decode.sample or decode.beam == 1 else set())
