"""What all tests share: a fixed seed, one thread, a real browser. Tiny models and corpora are in tiny.py."""

import shutil
from collections.abc import Iterator

import pytest
import torch
from playwright.sync_api import Browser, sync_playwright

from regard.attention.cpu import small_kernel
from regard.layers import cpu

torch.set_num_threads(1)  # tiny tensors, and bits that do not depend on the machine


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(20170612)


@pytest.fixture(params=[True, False], ids=["cpu", "textbook"])
def cpu_kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[bool]:
    """Every shadow kernel, on tensors of any size; then none of them."""
    if request.param:
        monkeypatch.setattr(small_kernel, "MIN_ROWS", 0)
        yield True
    else:
        with cpu.disabled():
            yield False


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.fail(
            "the page is tested in chromium; install it with: apt-get install chromium (make install-browser)"
        )
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        yield launched
        launched.close()
