"""The one legend of dimension letters. A tensor's name ends in its shape: `weights_BHQK`.

| letter | meaning | letter | meaning |
|---|---|---|---|
| B | batch (rows) | V | vocabulary |
| Q | query length | C | classes or channels |
| K | key length | P | patches |
| T | length, when Q = K | U | label length (transducer) |
| H | heads | N | items, or real positions of a batch laid end to end |
| G | key/value heads (H = G x group) | S | beams |
| E | head width of queries and keys | L | layers |
| W | head width of values | D | model width |
| F | inner width | R | windows of long texts |
| A | anti-diagonals of a lattice | J | the mean and the quantiles of a forecast |
| Y | horizon: steps that are forecast | | |

Masks are called `keep_*`, True = keep. Hyper-parameters are called as in the papers:
`d_model d_ff n_heads n_layers`; counts begin with `n_`, widths with `d_`.
"""
