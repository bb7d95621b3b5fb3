"""What may be written next, whoever searches: lengths, a forced beginning, what must not be said (again)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from regard.decode.phrases import Phrases
from regard.decode.required import Required


@dataclass(frozen=True)
class Rules:
    """Lengths count tokens; what is written has neither begin nor end."""

    end: int
    limits: Sequence[int]
    """Of each source, the end counted; there the end is forced, whatever else is asked for."""
    forbidden: Sequence[int] = ()
    """Tokens that never come."""
    min_length: int = 0
    """Before the end may come."""
    prefixes: Sequence[Sequence[int]] = ()
    """How each source's answer begins; none: as it likes."""
    no_repeat: int = 0
    """No sequence of so many tokens comes twice; 0: it may."""
    repetition_penalty: float = 1.0
    """Logits of what was written are divided by it if positive, else multiplied (Keskar et al. 2019)."""
    scored: bool = True
    """Whether somebody wants to know how likely a token is, and not only which is likelier."""
    must_not: Phrases | None = None
    must_include: Required | None = None

    def log_probs(self, logits_NV: Tensor, written_NT: Tensor, sources: Sequence[int]) -> Tensor:
        """Of every row's next token, −∞ for what may not come. Each of the sources has equally many rows.

        Where they are not to be scored, all of a row may be larger by the same number.
        """
        length, beams, logits_NV = written_NT.shape[1], len(written_NT) // len(sources), logits_NV.float()
        if self.repetition_penalty != 1.0 and length:
            said_NT = logits_NV.gather(1, written_NT)
            fainter = torch.where(said_NT > 0, 1 / self.repetition_penalty, self.repetition_penalty)
            logits_NV = logits_NV.scatter(1, written_NT, said_NT * fainter)
        log_prob_NV = torch.log_softmax(logits_NV, dim=-1) if self.scored else logits_NV
        wanted = [self._wanted(source, length) for source in sources]
        if any(token is not None for token in wanted):
            untouched_NV = log_prob_NV.clone()
        log_prob_NV.index_fill_(1, self._forbidden.to(log_prob_NV.device), -torch.inf)
        if length < self.min_length:
            log_prob_NV[:, self.end] = -torch.inf
        if self.no_repeat:
            _repeat_nothing(log_prob_NV, written_NT, self.no_repeat)
        if self.must_not is not None:
            last = [self.limits[source] <= length + 2 for source in sources for _ in range(beams)]
            log_prob_NV.masked_fill_(self.must_not.completed_by(written_NT, last), -torch.inf)
        if self.must_include is not None:
            self._lead(log_prob_NV, written_NT, sources, self.must_include)
        for place, token in enumerate(wanted):
            if token is not None:
                rows = slice(place * beams, (place + 1) * beams)
                log_prob_NV[rows] = -torch.inf
                log_prob_NV[rows, token] = untouched_NV[rows, token]
        return log_prob_NV

    @cached_property
    def _forbidden(self) -> Tensor:
        return torch.tensor(self.forbidden, dtype=torch.long)

    def _lead(
        self, log_prob_NV: Tensor, written_NT: Tensor, sources: Sequence[int], required: Required
    ) -> None:
        """No end before every phrase is written; nothing that would leave too little room for them."""
        remaining, beams = required.remaining(written_NT), len(written_NT) // len(sources)
        limit_N = torch.tensor([self.limits[source] for source in sources for _ in range(beams)])
        room_N1 = (limit_N - written_NT.shape[1] - 1).to(log_prob_NV.device)[:, None]  # the end counted
        end_N = log_prob_NV[:, self.end].masked_fill(remaining.needed_N > 0, -torch.inf)
        log_prob_NV.masked_fill_(remaining.needed_after_NV + 1 > room_N1, -torch.inf)
        log_prob_NV[:, self.end] = end_N

    def _wanted(self, source: int, length: int) -> int | None:
        """The only token that may come, if there is only one."""
        if length + 1 >= self.limits[source]:
            return self.end
        if self.prefixes and length < len(self.prefixes[source]):
            return self.prefixes[source][length]
        return None


def _repeat_nothing(log_prob_NV: Tensor, written_NT: Tensor, n: int) -> None:
    """Close every token that would complete a sequence of n that was written before."""
    if written_NT.shape[1] < n:
        return
    before_NMn = written_NT.unfold(1, n, 1)
    ending_N1n = written_NT[:, None, written_NT.shape[1] - n + 1 :]
    again_NM = (before_NMn[..., :-1] == ending_N1n).all(-1)
    row, place = again_NM.nonzero(as_tuple=True)
    log_prob_NV[row, before_NMn[row, place, -1]] = -torch.inf
