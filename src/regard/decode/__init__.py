"""Searches over every model that steps: greedy, drawn, beams."""

from regard.decode.beam import beam
from regard.decode.config import DecodeConfig
from regard.decode.draw import Draw
from regard.decode.hypothesis import Hypothesis
from regard.decode.listener import NOBODY, Listener, among, untold
from regard.decode.phrases import Phrases, contains, is_of_a_word
from regard.decode.required import Required
from regard.decode.rules import Rules
from regard.decode.stepper import Stepper
from regard.decode.tree import Tree
from regard.decode.walk import walk

__all__ = [
    "NOBODY",
    "DecodeConfig",
    "Draw",
    "Hypothesis",
    "Listener",
    "Phrases",
    "Required",
    "Rules",
    "Stepper",
    "Tree",
    "among",
    "beam",
    "contains",
    "is_of_a_word",
    "untold",
    "walk",
]
