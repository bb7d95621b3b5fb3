"""Searches: one greedy and one beam for every model that steps."""

from regard.decode.beam import beam
from regard.decode.config import DecodeConfig
from regard.decode.greedy import greedy
from regard.decode.hypothesis import Hypothesis
from regard.decode.stepper import Stepper

__all__ = ["DecodeConfig", "Hypothesis", "Stepper", "beam", "greedy"]
