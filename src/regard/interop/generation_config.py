"""Generation settings for other engines: which of a run's decode settings carry over, and which are dropped.

Only settings with the same meaning carry over. Our length penalty divides by ((5 + n) / 6)^a, theirs by n^b.
No b makes the two equal; the b chosen weighs one more token about as ours does at TYPICAL_LENGTH.
"""

from collections.abc import Iterable
from typing import Any

from regard.decode import DecodeConfig
from regard.tasks import AnyTask
from regard.tasks.seq2seq import Seq2Seq

TYPICAL_LENGTH = 20
"""Tokens of an answer."""
CONSTRAINTS = ("sample", "groups", "prefix", "must_not", "must_include")
"""Settings that shape answers, apart from lengths and beams."""
REPETITION = {"no_repeat": "no_repeat_ngram_size", "repetition_penalty": "repetition_penalty"}
"""Our names and theirs."""
GREEDY = {
    "do_sample": False,
    "num_beams": 1,
    "no_repeat_ngram_size": 0,
    "repetition_penalty": 1.0,
    "min_new_tokens": 0,
}
"""Arguments of `generate` for a greedy search without any of the run's settings."""


def for_generate(decode: DecodeConfig, *, prompted: bool) -> dict[str, Any]:
    """Arguments of transformers' `generate`; `prompted` where it counts a prompt as part of the answer."""
    arguments: dict[str, Any] = {"do_sample": decode.sample}
    if decode.sample:
        arguments |= {"temperature": decode.temperature, "top_k": decode.top_k, "top_p": decode.top_p}
        arguments |= {"min_p": decode.min_p} if decode.min_p else {}
    else:
        arguments["num_beams"] = decode.beam
        arguments |= _length_penalty(decode) | {"early_stopping": False} if decode.beam > 1 else {}
    supported = _supported(decode, "hf", prompted=prompted)
    changed = _changed_settings(decode, REPETITION)
    arguments |= {REPETITION[name]: value for name, value in changed.items() if name in supported}
    return arguments | ({"min_new_tokens": decode.min_length} if decode.min_length else {})


def for_translate_batch(task: Seq2Seq[Any]) -> dict[str, Any]:
    """Arguments of CTranslate2's `translate_batch`."""
    decode: DecodeConfig = task.config.decode
    return {
        "beam_size": decode.beam,
        **_length_penalty(decode),
        **{REPETITION[name]: value for name, value in _changed_settings(decode, REPETITION).items()},
        "min_decoding_length": decode.min_length,
        "max_decoding_length": max_answer_tokens(task) - 1,
    }


def max_answer_tokens(task: Seq2Seq[Any]) -> int:
    """Longest answer to any source, EOS included."""
    model_limit: int = task.config.max_length
    decode_limit: int | None = task.config.decode.max_length
    return model_limit if decode_limit is None else min(model_limit, decode_limit + 1)


def dropped_settings(task: AnyTask, to: str) -> list[str]:
    """Names of the run's decode settings that an export cannot express."""
    decode: DecodeConfig | None = getattr(task, "decode", None)
    if decode is None or to == "onnx":  # whose search is the user's own
        return []
    supported = _supported(decode, to, prompted=task.kind == "language_model")
    return [name for name in _changed_settings(decode, (*CONSTRAINTS, *REPETITION)) if name not in supported]


def _changed_settings(decode: DecodeConfig, names: Iterable[str]) -> dict[str, Any]:
    """Settings among `names` that differ from their defaults."""
    default = DecodeConfig()
    return {name: getattr(decode, name) for name in names if getattr(decode, name) != getattr(default, name)}


def _length_penalty(decode: DecodeConfig) -> dict[str, float]:
    return {"length_penalty": round(decode.length_penalty * TYPICAL_LENGTH / (5 + TYPICAL_LENGTH), 4)}


def _supported(decode: DecodeConfig, to: str, *, prompted: bool) -> set[str]:
    """Settings that mean the same in the other engine.

    Transformers counts the tokens of a prompt as generated, and within a beam it applies the repetition
    penalty to log-probabilities, where we apply it to logits.
    """
    if to == "ct2":
        return {*REPETITION}
    if prompted:
        return {"sample"}
    return {"sample", "no_repeat"} | ({"repetition_penalty"} if decode.sample or decode.beam == 1 else set())
