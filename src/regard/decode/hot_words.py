"""Hot words: phrases that a search prefers to write, such as names that were rare in training.

Each label that continues a phrase earns a bonus; a phrase that is broken off gives it back, and one that is
completed keeps it. Where a phrase breaks off, the longest beginning of another that has just been written
counts (Aho & Corasick 1975).
"""

from collections import deque
from collections.abc import Sequence


class HotWords:
    def __init__(self, phrases: Sequence[Sequence[int]], bonus: float) -> None:
        self.bonus = bonus
        self._next: list[dict[int, int]] = [{}]
        self._earned = [0.0]
        """What a beginning has earned that is given back when it breaks off."""
        self._ends = [False]
        for phrase in phrases:
            node = 0
            for label in phrase:
                node = self._next[node].setdefault(label, len(self._next))
                if node == len(self._next):
                    self._next.append({})
                    self._earned.append(0.0)
                    self._ends.append(False)
            self._ends[node] = True
        self._shorter = [0] * len(self._next)
        """The longest beginning of a phrase with which what was written ends, if it is not this one."""
        waiting = deque(self._next[0].items())
        for node in self._next[0].values():
            self._earned[node] = bonus
        while waiting:
            _, node = waiting.popleft()
            for label, after in self._next[node].items():
                self._shorter[after] = self._next[self._fallen(self._shorter[node], label)].get(label, 0)
                self._earned[after] = bonus + (0.0 if self._ends[node] else self._earned[node])
                waiting.append((label, after))

    def _fallen(self, node: int, label: int) -> int:
        """The longest beginning that this label continues."""
        while node and label not in self._next[node]:
            node = self._shorter[node]
        return node

    def after(self, node: int, label: int) -> tuple[int, float]:
        """What has been written of a phrase after one more label, and what it earns or gives back."""
        kept = 0.0 if self._ends[node] else self._earned[node]
        following = self._next[self._fallen(node, label)].get(label, 0)
        earned = self._earned[following] if following else 0.0
        return following, earned - kept
