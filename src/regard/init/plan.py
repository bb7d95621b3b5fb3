"""Plan of sizes: model, vocabulary and batch for somebody's data and machine."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from regard.init.guess import Guess
from regard.training.machine import Machine

Script = Literal["Chinese", "Japanese", "Korean", "Latin", "other"]

CHARACTERS_OF_A_TOKEN: dict[Script, float] = {
    "Chinese": 1.4,
    "Japanese": 1.6,
    "Korean": 1.8,
    "Latin": 3.7,
    "other": 3.0,
}
"""Characters a learnt token stands for, about."""
FAR_LONGER = 2
"""Times that a side is longer than the one that batches are sorted by, to have all lengths in each."""
_LETTERS: dict[Script, re.Pattern[str]] = {
    "Japanese": re.compile("[\u3040-\u30ff]"),
    "Chinese": re.compile("[\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]"),
    "Korean": re.compile("[\uac00-\ud7af]"),
    "Latin": re.compile("[A-Za-z\u00c0-\u024f]"),
}


def script(texts: Sequence[str]) -> Script:
    """Script of most letters; a twentieth of kana makes the ideographs Japanese."""
    joined = "".join(texts)
    counts = {name: len(letters.findall(joined)) for name, letters in _LETTERS.items()}
    if counts["Japanese"] > 0.05 * (counts["Japanese"] + counts["Chinese"]):
        counts["Japanese"] += counts["Chinese"]
    most = max(counts, key=lambda name: counts[name])
    return most if 2 * counts[most] > sum(map(str.isalpha, joined)) else "other"


@dataclass(frozen=True)
class Plan:
    """Decisions by the data and the machine."""

    guess: Guess
    scripts: Mapping[str, Script]
    machine: Machine
    by_character: bool = False
    """True if every character is a token."""
    together: bool = False
    """True if all texts of a row are read as one."""

    @property
    def tokens_a_row(self) -> float:
        """Tokens that a row takes up in a batch: those of the longest side, padding included."""
        if not self.scripts:
            return max(suggestion.size for suggestion in self.guess.suggestions.values())
        sides = [self._tokens(role) for role in self.scripts]
        means = [mean for mean, _ in sides]
        if self.together:
            return sum(means)
        longest, tail = max(sides)
        return (longest + tail) / 2 if longest > FAR_LONGER * means[-1] else longest

    def _tokens(self, role: str) -> tuple[float, float]:
        """Mean and 95th percentile."""
        characters = 1 if self.by_character else CHARACTERS_OF_A_TOKEN[self.scripts[role]]
        mean, tail = self.guess.lengths[role]
        return mean / characters + 1, tail / characters + 1

    @property
    def room(self) -> int:
        """Tokens that twice what all but few rows have, all their texts together, fit into."""
        longest = sum(
            self.guess.lengths[role][1] / CHARACTERS_OF_A_TOKEN[script]
            for role, script in self.scripts.items()
        )
        return max(128, 1 << math.ceil(math.log2(2 * longest + 1)))

    @property
    def room_reason(self) -> str:
        tail = max(self.guess.lengths[role][1] for role in self.scripts)
        return f"room for twice what 95 % need, of at most {tail:,} characters"

    @property
    def preset(self) -> str:
        """The largest model that such data can fill, and that a processor can train at all."""
        if self.guess.n_rows < 100_000:
            return "tiny"
        return "base" if self.machine.gpu and self.guess.n_rows >= 1_000_000 else "small"

    @property
    def vocab_size(self) -> int:
        steps = ((5_000, 2_000), (20_000, 4_000), (200_000, 8_000), (2_000_000, 16_000))
        fitting = next((size for rows, size in steps if self.guess.n_rows < rows), 32_000)
        characters = {"Chinese", "Japanese"} & set(self.scripts.values())
        return max(fitting, 4_000) if characters else fitting

    @property
    def batch_tokens(self) -> int:
        """Large enough to be fast, small enough for fifty steps an epoch."""
        largest = 16_384 if self.machine.gpu else 4_096
        wanted = self.guess.n_rows * self.tokens_a_row / 50
        return max(512, min(largest, 1 << int(math.log2(max(1, wanted)))))

    @property
    def steps_an_epoch(self) -> int:
        return max(1, round(self.guess.n_rows * self.tokens_a_row / self.batch_tokens))

    @property
    def accumulate(self) -> int:
        """Parts of a batch: the scores of all tokens, the largest tensor, get an eighth of the memory."""
        needed = 3 * 4 * self.batch_tokens * self.vocab_size
        return max(1, math.ceil(needed / (self.machine.memory / 8)))
