"""What encoders are given and what they give: named tensors of one input in, states out."""

from collections.abc import Mapping
from typing import NamedTuple

from torch import Tensor

from regard.attention import Unpadded

Inputs = Mapping[str, Tensor]
"""By name, padded: `ids` or `pixels`, `lengths`; for two texts `segments`; where words are told apart their
`places` among all states of all rows, −1 where there is no word.
"""


NO_TAG = -1
"""The tag of words that are left out: padding, and what has no loss."""


class Encoded(NamedTuple):
    states_RTD: Tensor
    lengths_R: Tensor
    """How many of the states of each row are real."""
    summary_RD: Tensor | None = None
    """One state for all of each row, of an encoder that has one."""
    unpadded: Unpadded | None = None
    """Where the real states stand, if `states_RTD` holds no others: one row, in training alone."""


def tokens(ids_RT: Tensor, lengths_R: Tensor, segments_RT: Tensor | None = None) -> Inputs:
    """The inputs of an encoder that reads tokens."""
    segments = {} if segments_RT is None else {"segments": segments_RT}
    return {"ids": ids_RT, "lengths": lengths_R, **segments}
