"""An experiment: a claim in our words, a run that measures it, and checks from which the verdict follows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from regard.experiments.interval import Interval, number


class Text(NamedTuple):
    """A sentence in both languages of the book."""

    en: str
    zh: str


class Check(NamedTuple):
    """One part of a claim: a figure whose whole interval must lie on one side of a bound."""

    says: Text
    figure: Interval
    above: float | None = None
    below: float | None = None

    @property
    def holds(self) -> bool:
        if self.above is not None and not self.figure.low > self.above:
            return False
        return self.below is None or self.figure.high < self.below

    @property
    def bound(self) -> str:
        parts = [f"> {number(self.above)}" if self.above is not None else ""]
        parts.append(f"< {number(self.below)}" if self.below is not None else "")
        return " ".join(part for part in parts if part)


@dataclass(frozen=True)
class Chart:
    """One picture: a line for each series, with an interval at each point."""

    title: Text
    x: Text
    y: Text
    series: Mapping[str, Sequence[tuple[float, Interval]]]
    log_x: bool = False
    log_y: bool = False


class Outcome(NamedTuple):
    checks: Sequence[Check]
    charts: Sequence[Chart]
    remarks: Sequence[Text] = ()
    """What else was measured, a sentence each."""

    @property
    def verdict(self) -> Text:
        """Read off the checks alone."""
        n = sum(check.holds for check in self.checks)
        if n == len(self.checks):
            return Text("holds", "成立")
        return Text("holds in part", "部分成立") if n else Text("does not hold", "不成立")


class Run(NamedTuple):
    """How an experiment is run this time."""

    seeds: Sequence[int]
    thorough: bool = False
    tick: Callable[[str], None] = lambda line: None
    """Takes a line about what is going on."""


class Experiment(NamedTuple):
    name: str
    title: Text
    claim: Text
    setting: Text
    """What is done."""
    limits: Text
    """What it does not show."""
    run: Callable[[Run], Outcome]
