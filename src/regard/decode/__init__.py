"""Searches over every model that steps: greedy, sampling, beam."""

from regard.decode.beam import beam
from regard.decode.config import DecodeConfig
from regard.decode.hypothesis import Hypothesis
from regard.decode.left_to_right import greedy, sample
from regard.decode.phrases import Phrases, contains, is_word_character
from regard.decode.required import Required
from regard.decode.rules import Rules
from regard.decode.sampler import Sampler
from regard.decode.step import Step, hypotheses, in_order
from regard.decode.stepper import Stepper
from regard.decode.tree import Tree

__all__ = [
    "DecodeConfig",
    "Hypothesis",
    "Phrases",
    "Required",
    "Rules",
    "Sampler",
    "Step",
    "Stepper",
    "Tree",
    "beam",
    "contains",
    "greedy",
    "hypotheses",
    "in_order",
    "is_word_character",
    "sample",
]
