"""Baselines: the simple methods that a user would try first, trained in seconds. One file = one family."""

from regard.baselines.baseline import Baseline

__all__ = ["Baseline"]
