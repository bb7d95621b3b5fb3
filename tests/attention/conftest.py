import pytest
import torch

from regard.attention.cpu import small_kernel


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(20150901)


@pytest.fixture(params=["torch's kernel", "head by head"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a dot product without taps goes through, whatever its size."""
    name: str = request.param
    monkeypatch.setattr(small_kernel, "MIN_ROWS", 0 if name == "head by head" else 1 << 30)
    return name
