"""Searches over every model that steps: greedy, sampling, beam."""

from regard.decode.beam import beam
from regard.decode.config import DecodeConfig
from regard.decode.hypothesis import Hypothesis
from regard.decode.left_to_right import greedy, sample
from regard.decode.listener import NOBODY, Listener, among, untold
from regard.decode.phrases import Phrases, contains, is_word_character
from regard.decode.required import Required
from regard.decode.rules import Rules
from regard.decode.sampler import Sampler
from regard.decode.stepper import Stepper
from regard.decode.tree import Tree

__all__ = [
    "NOBODY",
    "DecodeConfig",
    "Hypothesis",
    "Listener",
    "Phrases",
    "Required",
    "Rules",
    "Sampler",
    "Stepper",
    "Tree",
    "among",
    "beam",
    "contains",
    "greedy",
    "is_word_character",
    "sample",
    "untold",
]
