"""Shadow kernels: second implementations, for speed on a CPU and nothing else.

On a CPU small models spend their time on calls, copies and random numbers as much as on arithmetic. Each file
here and in `attention/cpu` says once more, faster, what textbook code elsewhere says first:

| kernel | in place of | where it pays |
|---|---|---|
| `attention.cpu.small_kernel` | scaled_dot_product_attention | many rows with few keys: sentences |
| `attention.cpu.unpadded` | states with padding | training, where a twentieth or more is padding |
| `fused_step` | `Embed` and `Stack`, one token at a time | steps of a search over few rows |
| `output_projection` | F.linear onto the vocabulary | steps of a search over few rows |
| `cross_entropy` | log_softmax over all N×V logits | losses over a vocabulary, on any device |
| `dropout` | F.dropout | every dropout in training |

The first two live there because attention imports nothing of ours but `linear`. All obey one switch:

    with cpu.disabled():  # the textbook path
        model(...)

Results agree to rounding, dropout in distribution; every invariant of the tests is run both ways.
"""

from regard.attention.cpu import disabled, enabled

__all__ = ["disabled", "enabled"]
