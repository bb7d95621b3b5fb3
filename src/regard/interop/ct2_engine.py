"""CTranslate2 as the engine of translators and summarisers (`regard[fast]`): the same weights, asked for what
it can do.

It stops when as many hypotheses have ended as there are beams, where our search goes on while a better one
may come, and it knows only the probability of a whole answer, not of its pieces. Its hypotheses are ranked
here, by the length penalty of the recipe. It has one limit for all texts of a call, so texts of about one
length are asked for together; an answer that is longer than its own text allows is searched for again, or
cut there where no scores are wanted.
"""

import math
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard.decode import DecodeConfig, Hypothesis
from regard.decode.hypothesis import normalised
from regard.errors import RecipeError, RunError, did_you_mean
from regard.files.row import Row
from regard.interop import ct2
from regard.models import ModelConfig, Transformer, TransformerConfig
from regard.tasks import AnyTask
from regard.tasks.pair import Pair, Written
from regard.tasks.seq2seq import Seq2Seq

NAMES = ("builtin", "ct2", "auto")
HONOURED = {"scores", "beam", "n_best", "length_penalty", "min_length", "max_length", "max_ratio"}
GREEDY_TOKENS, BEAM_TOKENS, INT8_BEAM_TOKENS = 1024, 1536, 384
"""Of one batch (docs/LOG.md); it sorts by length and splits by itself."""
TOGETHER = 96
"""Texts that are asked for in one call, at least: it has one limit, so texts of one length go together."""
NEVER_WAIT = -1
"""For its queue to be shorter: all that is asked at once may stand in it."""
Scored = tuple[list[str], float]


class Fast:
    def __init__(self, task: AnyTask, model: Any, config: ModelConfig, *, int8: bool = False) -> None:
        if not (isinstance(task, Seq2Seq) and isinstance(model, Transformer)):
            raise RunError(
                "ct2: CTranslate2 has a counterpart only of a single Transformer that reads and writes"
            )
        assert isinstance(config, TransformerConfig)
        library = ct2.library()
        self._beam_tokens = INT8_BEAM_TOKENS if int8 else BEAM_TOKENS
        self.name = f"CTranslate2 {library.__version__}, {'int8' if int8 else 'float32'}"
        self._words, self._ids = task.source.names, {name: i for i, name in enumerate(task.target.names)}
        try:
            with tempfile.TemporaryDirectory() as folder:
                ct2.write(task, model, config, Path(folder), int8=int8)
                self._translator = library.Translator(
                    folder,
                    compute_type="int8" if int8 else "float32",
                    inter_threads=torch.get_num_threads(),
                    intra_threads=1,
                    max_queued_batches=NEVER_WAIT,
                )
        except OSError as error:
            raise RunError(
                "ct2: is handed the weights in a temporary folder, which cannot be written "
                f"({error.strerror}); make room, or set TMPDIR to where there is some"
            ) from None

    def why_not(self, decode: DecodeConfig) -> str | None:
        """The first setting that only our own search honours."""
        usual = DecodeConfig()
        asked = (name for name in DecodeConfig.model_fields if getattr(decode, name) != getattr(usual, name))
        return next((name for name in asked if name not in HONOURED), None)

    def answers(self, task: Seq2Seq[Any], rows: Sequence[Row]) -> list[Written]:
        """Of every row, in order. The longest are ready first, and are read while it does the others."""
        decode = task.config.decode
        examples = task.encode(rows)
        most = [task.writer.limit(len(example.source), decode) - 1 for example in examples]
        promises = {
            place: (promise, most[group[0]])
            for group in _alike(most)
            for place, promise in zip(
                group, self._promised([examples[at] for at in group], most[group[0]], decode), strict=True
            )
        }
        answers: dict[int, Written] = {}
        cut: dict[int, list[Scored]] = {}
        again: dict[int, Any] = {}
        for place, (promise, asked) in promises.items():
            example, found = examples[place], _found(promise)
            longest = max(len(pieces) for pieces, _ in found)
            if longest > most[place] and _is_scored(decode):  # while it does the others
                (again[place],) = self._promised([example], most[place], decode)
            elif longest == asked == most[place] and _is_scored(decode):
                cut[place] = found
            else:  # what never goes back is found within a limit as it was found beyond it
                within = [(pieces[: most[place]], score) for pieces, score in found]
                answers[place] = self._told(task, example, within)
        cut |= {place: _found(promise) for place, promise in again.items()}
        ended = self._ended([(examples[place], found, most[place]) for place, found in cut.items()])
        for place, found in zip(cut, ended, strict=True):
            answers[place] = self._told(task, examples[place], found)
        return [answers[place] for place in range(len(examples))]

    def _told(self, task: Seq2Seq[Any], example: Pair, found: Sequence[Scored]) -> Written:
        decode = task.config.decode
        hypotheses = [self._hypothesis(*one, decode.length_penalty) for one in found]
        return task.told(example, sorted(hypotheses, key=lambda one: -one.score)[: decode.n_best])

    def _promised(self, examples: Sequence[Pair], limit: int, decode: DecodeConfig) -> list[Any]:
        promises: list[Any] = self._translator.translate_batch(
            [self._pieces(example) for example in examples],
            max_batch_size=GREEDY_TOKENS if decode.beam == 1 else self._beam_tokens,
            batch_type="tokens",
            asynchronous=True,
            beam_size=decode.beam,
            num_hypotheses=decode.beam,
            length_penalty=0.0,
            return_scores=_is_scored(decode),
            min_decoding_length=decode.min_length,
            max_decoding_length=limit,
            max_input_length=0,
            suppress_sequences=ct2.CLOSED,
        )
        return promises

    def _ended(self, cut: Sequence[tuple[Pair, list[Scored], int]]) -> list[list[Scored]]:
        """To the score of what its own limit has cut, the probability of the end is added."""
        asked = [
            (self._pieces(example), pieces)
            for example, found, most in cut
            for pieces, _ in found
            if len(pieces) == most
        ]
        scored = (
            self._translator.score_batch(*map(list, zip(*asked, strict=True)), max_input_length=0)
            if asked
            else ()
        )
        ends = iter([whole.log_probs[-1] for whole in scored])
        return [
            [(pieces, score + next(ends) if len(pieces) == most else score) for pieces, score in found]
            for _, found, most in cut
        ]

    def _pieces(self, example: Pair) -> list[str]:
        return [self._words[i] for i in example.source.tolist()]

    def _hypothesis(self, pieces: Sequence[str], log_prob: float, length_penalty: float) -> Hypothesis:
        ids = tuple(self._ids[piece] for piece in pieces)
        return Hypothesis(ids, log_prob, normalised(log_prob, len(ids) + 1, length_penalty))


def _alike(most: Sequence[int]) -> Iterator[list[int]]:
    """Places of texts, the longest first, whose answers may be about as long; enough of them for a batch."""
    group: list[int] = []
    for place in sorted(range(len(most)), key=lambda place: -most[place]):
        if len(group) >= TOGETHER and most[place] != most[group[-1]]:
            yield group
            group = []
        group.append(place)
    if group:
        yield group


def _is_scored(decode: DecodeConfig) -> bool:
    """The hypotheses of a beam are ranked by their scores."""
    return decode.scores or decode.beam > 1


def _found(promise: Any) -> list[Scored]:
    result = promise.result()
    return list(zip(result.hypotheses, result.scores or [math.nan], strict=True))


@dataclass(frozen=True)
class Engines:
    """Who may answer: our own search always, CTranslate2 if it is wanted and there."""

    wanted: str = "builtin"
    fast: Fast | None = None
    hindrance: str = ""
    """Why it is not there, though it is wanted."""

    @classmethod
    def made(
        cls,
        wanted: str,
        task: AnyTask,
        model: nn.Module,
        config: ModelConfig,
        device: torch.device,
        *,
        int8: bool = False,
    ) -> "Engines":
        if wanted not in NAMES:
            raise RunError(f"engine {wanted}: unknown{did_you_mean(wanted, NAMES)}")
        if wanted == "builtin":
            if int8:
                raise RunError("int8: only CTranslate2 rounds weights; use it with engine ct2 or auto")
            return BUILTIN
        try:
            if device.type != "cpu":
                raise RunError(f"ct2: is used on the CPU, the model is on {device}")
            return cls(wanted, Fast(task, model, config, int8=int8))
        except RunError as hindrance:
            if wanted == "ct2":
                raise
            return cls(wanted, None, str(hindrance).removeprefix("ct2: "))

    def pick(self, task: AnyTask) -> tuple[Fast | None, str]:
        """CTranslate2 if it can do what the task asks, None for our own search; and who it is."""
        if self.fast is None or not isinstance(task, Seq2Seq):
            return None, f"regard ({self.hindrance})" if self.hindrance else "regard"
        own = self.fast.why_not(task.config.decode)
        if own is None:
            return self.fast, self.fast.name
        if self.wanted == "ct2":
            raise RecipeError(
                f"decode.{own}: CTranslate2 has no such setting; leave it out, or use engine auto"
            )
        return None, f"regard (CTranslate2 has no {own})"


BUILTIN = Engines()
