"""Looking costs only when somebody looks: no Q×K map per head is made, and memory grows with length only."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from oracle.made import Made
from regard.attention import FULL, Attention, Mask, Trace, attend, causal, padding, tapped

B, H, Q, K, E, W = 3, 7, 29, 31, 5, 11
LENGTHS = torch.tensor([31, 17, 0])
UNSEEN = {
    "no mask": FULL,
    "causal": causal(),
    "padding": padding(LENGTHS),
    "both": causal() & padding(LENGTHS),
}


def dense_sizes(n_queries: int) -> set[int]:
    """Of a map per head; of a mask per head for the whole batch."""
    return {B * H * n_queries * K, H * n_queries * K}


@pytest.mark.parametrize("group", [1, 7])
@pytest.mark.parametrize("n_queries", [Q, K])
@pytest.mark.parametrize("mask", UNSEEN.values(), ids=UNSEEN)
def test_attend_makes_no_map(mask: Mask, n_queries: int, group: int, kernel: str) -> None:
    q = torch.randn(B, H, n_queries, E, requires_grad=True)
    k = torch.randn(B, H // group, K, E, requires_grad=True)
    v = torch.randn(B, H // group, K, W, requires_grad=True)
    with Made() as made:
        attend(q, k, v, mask=mask).sum().backward()
    assert not made.sizes & dense_sizes(n_queries)
    if kernel == "head by head":
        assert made.count("flash_attention") == 0
        return
    assert made.count("flash_attention_for_cpu_backward") == 1
    if not mask.by_query or (mask.is_plain_causal and n_queries == K):
        assert not made.sizes & {n_queries * K, B * n_queries * K}


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("mask", UNSEEN.values(), ids=UNSEEN)
def test_attention_makes_a_map_only_when_tapped(mask: Mask) -> None:
    attention = Attention(H * E, n_heads=H, d_value=W)
    x = torch.randn(B, K, H * E, requires_grad=True)
    with Made() as made:
        attention(x, mask=mask).sum().backward()
    assert not made.sizes & dense_sizes(K)
    with Made() as made, tapped(attention, lambda name: Trace()):
        attention(x, mask=mask).sum().backward()
    assert B * H * K * K in made.sizes


MEASURE = """
import json, sys
from pathlib import Path
import torch
from regard.attention import FULL, Attention, Trace, causal, core, padding, tapped

status, clear = Path("/proc/self/status"), Path("/proc/self/clear_refs")

def resident(field):
    (line,) = [line for line in status.read_text().splitlines() if line.startswith(field)]
    return int(line.split()[1]) * 1024

def extra(length, mask, learn, look=False):
    attention = Attention(32, n_heads=2)
    x = torch.randn(1, length, 32)
    before = resident("VmRSS:")
    clear.write_text("5")  # forget the peak so far
    with torch.set_grad_enabled(learn), tapped(attention, lambda name: Trace() if look else None):
        out = attention(x, mask=mask)
        if learn:
            out.sum().backward()
    return resident("VmHWM:") - before

masks = {
    "no mask": lambda length: FULL,
    "causal": lambda length: causal(),
    "padding": lambda length: padding(torch.tensor([length - 1])),
    "both": lambda length: causal() & padding(torch.tensor([length - 1])),
}
tile, core.TILE_ELEMENTS = core.TILE_ELEMENTS, 1
for mask in masks.values():  # what torch loads at first use is not ours
    extra(16, mask(16), learn=True)
core.TILE_ELEMENTS = tile
peaks = {
    f"{name}, {'forward and backward' if learn else 'forward'}": [
        extra(length, mask(length), learn) for length in (2048, 4096, 8192)
    ]
    for name, mask in masks.items()
    for learn in (False, True)
}
peaks["tapped"] = extra(2048, FULL, learn=False, look=True)
json.dump(peaks, sys.stdout)
"""


@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="Linux tells and resets peak memory there"
)
def test_memory_is_linear_in_length() -> None:
    """Self-attention with two heads, whose map of 8,192 tokens would take 512 MB."""
    # blocks of 64 kB and more go back to the system at once, so that what is resident is what is alive
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": str(1 << 16), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", MEASURE], env=environment, capture_output=True, text=True, check=True
    )
    peaks = json.loads(done.stdout)
    assert peaks.pop("tapped") > 2 * 2048**2 * 4, "the measure must see a map when there is one"
    for name, (at_2048, at_4096, at_8192) in peaks.items():
        assert at_4096 < 2.6 * at_2048, name
        assert at_8192 < 2.6 * at_4096, name
        assert at_8192 < 2 * 8192**2 * 4 / 8, name
