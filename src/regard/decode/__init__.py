"""Searches over every model that steps: greedy, drawn, beams."""

from regard.decode.beam import beam
from regard.decode.config import DecodeConfig
from regard.decode.draw import Draw
from regard.decode.hypothesis import Hypothesis
from regard.decode.phrases import Phrases, contains, is_of_a_word
from regard.decode.required import Required
from regard.decode.rules import Rules
from regard.decode.stepper import Stepper, Tell, untold
from regard.decode.tree import Tree
from regard.decode.walk import walk

__all__ = [
    "DecodeConfig",
    "Draw",
    "Hypothesis",
    "Phrases",
    "Required",
    "Rules",
    "Stepper",
    "Tell",
    "Tree",
    "beam",
    "contains",
    "is_of_a_word",
    "untold",
    "walk",
]
