"""CTranslate2 as the engine of translators and summarisers (`regard[fast]`): same weights, another search.

It stops when as many hypotheses have ended as there are beams, where our search goes on while a better one
may come, and it gives the probability of a whole answer, not of its tokens. We rank its hypotheses by the
length penalty of the recipe. It has one length limit per call, so texts of about the same length are sent
together; an answer that exceeds the limit of its own text is searched for again, or cut there if no scores
are needed.
"""

import math
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard.data.example import Example
from regard.decode import DecodeConfig, Hypothesis
from regard.decode.hypothesis import normalised
from regard.errors import RecipeError, RunError, did_you_mean
from regard.files.row import Row
from regard.interop import ct2
from regard.models import ModelConfig, Transformer, TransformerConfig
from regard.tasks import AnyTask
from regard.tasks.prediction import Written
from regard.tasks.seq2seq import Seq2Seq

NAMES = ("builtin", "ct2", "auto")
SUPPORTED = {"scores", "beam", "n_best", "length_penalty", "min_length", "max_length", "max_ratio"}
GREEDY_TOKENS, BEAM_TOKENS, INT8_BEAM_TOKENS = 1024, 1536, 384
"""Tokens per batch (docs/LOG.md); CTranslate2 sorts by length and splits into batches itself."""
MIN_TEXTS_PER_CALL = 96
"""Smallest group of texts that share one length limit."""
UNBOUNDED = -1
"""Queue length that never blocks a call."""
Candidate = tuple[list[str], float]
"""Tokens of a hypothesis, and its log-probability."""


class CT2Translator:
    """A model translated by CTranslate2 instead of our own search."""

    def __init__(self, task: AnyTask, model: Any, config: ModelConfig, *, int8: bool = False) -> None:
        if not (isinstance(task, Seq2Seq) and isinstance(model, Transformer)):
            raise RunError("ct2: CTranslate2 only runs a single encoder-decoder Transformer")
        assert isinstance(config, TransformerConfig)
        ctranslate2 = ct2.import_ctranslate2()
        self._beam_tokens = INT8_BEAM_TOKENS if int8 else BEAM_TOKENS
        self.name = f"CTranslate2 {ctranslate2.__version__}, {'int8' if int8 else 'float32'}"
        self._source_tokens = task.source.tokenizer.names
        self._target_ids = {name: i for i, name in enumerate(task.target.tokenizer.names)}
        try:
            with tempfile.TemporaryDirectory() as folder:
                ct2.write(task, model, config, Path(folder), int8=int8)
                self._translator = ctranslate2.Translator(
                    folder,
                    compute_type="int8" if int8 else "float32",
                    inter_threads=torch.get_num_threads(),
                    intra_threads=1,
                    max_queued_batches=UNBOUNDED,
                )
        except OSError as error:
            raise RunError(
                "ct2: the temporary folder that hands over the weights cannot be written "
                f"({error.strerror}); make room, or set TMPDIR to another disk"
            ) from None

    def unsupported(self, decode: DecodeConfig) -> str | None:
        """Name of the first changed setting that only our own search supports, if any."""
        default = DecodeConfig()
        changed = (
            name for name in DecodeConfig.model_fields if getattr(decode, name) != getattr(default, name)
        )
        return next((name for name in changed if name not in SUPPORTED), None)

    def answers(self, task: Seq2Seq[Any], rows: Sequence[Row]) -> list[Written]:
        """Answer every row, in order; the longest are ready first, and are read while the others run."""
        decode = task.config.decode
        examples = task.encode(rows)
        limits = [task.writer.limit(task.input.size(example.arrays), decode) - 1 for example in examples]
        futures = {
            i: (future, limits[group[0]])
            for group in _similar_limits(limits)
            for i, future in zip(
                group, self._submit([examples[i] for i in group], limits[group[0]], decode), strict=True
            )
        }
        answers: dict[int, Written] = {}
        truncated: dict[int, list[Candidate]] = {}
        resubmitted: dict[int, Any] = {}
        for i, (future, call_limit) in futures.items():
            example, candidates = examples[i], _candidates(future)
            longest = max(len(tokens) for tokens, _ in candidates)
            if longest > limits[i] and _needs_scores(decode):  # runs while the others are read
                (resubmitted[i],) = self._submit([example], limits[i], decode)
            elif longest == call_limit == limits[i] and _needs_scores(decode):
                truncated[i] = candidates
            else:  # a greedy search finds the same tokens within a limit as beyond it
                within = [(tokens[: limits[i]], log_prob) for tokens, log_prob in candidates]
                answers[i] = self._written(task, example, within)
        truncated |= {i: _candidates(future) for i, future in resubmitted.items()}
        ended = self._with_end([(examples[i], candidates, limits[i]) for i, candidates in truncated.items()])
        for i, candidates in zip(truncated, ended, strict=True):
            answers[i] = self._written(task, examples[i], candidates)
        return [answers[i] for i in range(len(examples))]

    def _written(self, task: Seq2Seq[Any], example: Example, candidates: Sequence[Candidate]) -> Written:
        decode = task.config.decode
        hypotheses = [self._hypothesis(*candidate, decode.length_penalty) for candidate in candidates]
        ranked = sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)
        return task.told(example, ranked[: decode.n_best])

    def _submit(self, examples: Sequence[Example], limit: int, decode: DecodeConfig) -> list[Any]:
        """Start translating; the results are futures."""
        futures: list[Any] = self._translator.translate_batch(
            [self._tokens(example) for example in examples],
            max_batch_size=GREEDY_TOKENS if decode.beam == 1 else self._beam_tokens,
            batch_type="tokens",
            asynchronous=True,
            beam_size=decode.beam,
            num_hypotheses=decode.beam,
            length_penalty=0.0,
            return_scores=_needs_scores(decode),
            min_decoding_length=decode.min_length,
            max_decoding_length=limit,
            max_input_length=0,
            suppress_sequences=ct2.SUPPRESSED,
        )
        return futures

    def _with_end(self, truncated: Sequence[tuple[Example, list[Candidate], int]]) -> list[list[Candidate]]:
        """Add the log-probability of EOS to every candidate that reached its limit."""
        forced = [
            (self._tokens(example), tokens)
            for example, candidates, limit in truncated
            for tokens, _ in candidates
            if len(tokens) == limit
        ]
        scores = (
            self._translator.score_batch(*map(list, zip(*forced, strict=True)), max_input_length=0)
            if forced
            else ()
        )
        ends = iter([score.log_probs[-1] for score in scores])
        return [
            [
                (tokens, log_prob + next(ends) if len(tokens) == limit else log_prob)
                for tokens, log_prob in candidates
            ]
            for _, candidates, limit in truncated
        ]

    def _tokens(self, example: Example) -> list[str]:
        return [self._source_tokens[i] for i in example.arrays["ids"].tolist()]

    def _hypothesis(self, tokens: Sequence[str], log_prob: float, length_penalty: float) -> Hypothesis:
        ids = tuple(self._target_ids[token] for token in tokens)
        return Hypothesis(ids, log_prob, normalised(log_prob, len(ids) + 1, length_penalty))


def _similar_limits(limits: Sequence[int]) -> Iterator[list[int]]:
    """Groups of texts with similar length limits, the longest first, each large enough for a batch."""
    group: list[int] = []
    for i in sorted(range(len(limits)), key=lambda i: -limits[i]):
        if len(group) >= MIN_TEXTS_PER_CALL and limits[i] != limits[group[-1]]:
            yield group
            group = []
        group.append(i)
    if group:
        yield group


def _needs_scores(decode: DecodeConfig) -> bool:
    """True if log-probabilities are needed, as they are to rank the hypotheses of a beam."""
    return decode.scores or decode.beam > 1


def _candidates(future: Any) -> list[Candidate]:
    result = future.result()
    return list(zip(result.hypotheses, result.scores or [math.nan], strict=True))


@dataclass(frozen=True)
class EngineChoice:
    """The requested engine: our own search always works, CTranslate2 where it is requested and available."""

    requested: str = "builtin"
    ct2: CT2Translator | None = None
    unavailable: str = ""
    """Reason why CTranslate2 was requested but is not available."""

    @classmethod
    def resolve(
        cls,
        requested: str,
        task: AnyTask,
        model: nn.Module,
        config: ModelConfig,
        device: torch.device,
        *,
        int8: bool = False,
    ) -> "EngineChoice":
        if requested not in NAMES:
            raise RunError(f"engine {requested}: unknown{did_you_mean(requested, NAMES)}")
        if requested == "builtin":
            if int8:
                raise RunError("int8: only CTranslate2 supports int8 weights; use engine ct2 or auto")
            return BUILTIN
        try:
            if device.type != "cpu":
                raise RunError(f"ct2: runs on the CPU only, but the model is on {device}")
            return cls(requested, CT2Translator(task, model, config, int8=int8))
        except RunError as reason:
            if requested == "ct2":
                raise
            return cls(requested, None, str(reason).removeprefix("ct2: "))

    def select(self, task: AnyTask) -> tuple[CT2Translator | None, str]:
        """CTranslate2 if it supports the task's settings, else None for our own search; and its name."""
        if self.ct2 is None or not isinstance(task, Seq2Seq):
            return None, f"regard ({self.unavailable})" if self.unavailable else "regard"
        setting = self.ct2.unsupported(task.config.decode)
        if setting is None:
            return self.ct2, self.ct2.name
        if self.requested == "ct2":
            raise RecipeError(
                f"decode.{setting}: CTranslate2 has no such setting; leave it out, or use engine auto"
            )
        return None, f"regard (CTranslate2 has no {setting})"


BUILTIN = EngineChoice()
