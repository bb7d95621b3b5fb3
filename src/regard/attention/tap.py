"""Taps: attention observed or replaced at a named site; free when nobody looks.

A site is a module; its name is its path in the model. Its `tap` is None, and then attention runs fused.
Inside `with tapped(model, pick)` the sites for which `pick(name)` gives a tap run explicitly, and the tap
sees the weights and may answer with others: drawing, ablation and faithfulness tests are one mechanism.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import torch
from torch import Tensor, nn


class Tap(Protocol):
    def __call__(self, weights_BHQK: Tensor, v_BHKW: Tensor) -> Tensor:
        """The weights to go on with; return the argument to only observe."""


class _Taps(threading.local):
    """The taps of this thread; a model that answers in another thread is not observed."""

    def __init__(self) -> None:
        self.at: dict[Site, Tap] = {}


_TAPS = _Taps()


class Site(nn.Module):
    """A place where attention happens."""

    @property
    def tap(self) -> Tap | None:
        return _TAPS.at.get(self)

    @property
    def scope(self) -> str:
        """What a map of this site cannot show, in a few words; empty where everything is seen."""
        return ""


class Trace:
    """A tap that keeps the weights of every call; repeated calls (RNN steps) follow one another on Q."""

    def __init__(self) -> None:
        self.calls: list[Tensor] = []

    def __call__(self, weights_BHQK: Tensor, v_BHKW: Tensor) -> Tensor:
        self.calls.append(weights_BHQK.detach())
        return weights_BHQK

    @property
    def weights_BHQK(self) -> Tensor:
        return torch.cat(self.calls, dim=2)


class Replace:
    """A tap that replaces the weights by `change(weights_BHQK, offset)`; offset counts earlier query rows."""

    def __init__(self, change: Callable[[Tensor, int], Tensor]) -> None:
        self.change, self.offset = change, 0

    def __call__(self, weights_BHQK: Tensor, v_BHKW: Tensor) -> Tensor:
        changed_BHQK = self.change(weights_BHQK, self.offset)
        self.offset += weights_BHQK.shape[2]
        return changed_BHQK


def sites(model: nn.Module) -> dict[str, Site]:
    """Every place where the model attends, by module path, in the order of definition."""
    return {name: module for name, module in model.named_modules() if isinstance(module, Site)}


@contextmanager
def tapped(model: nn.Module, pick: Callable[[str], Tap | None]) -> Iterator[None]:
    """Sets a tap at every site for which `pick` gives one; afterwards each site is as it was."""
    picked = {site: tap for name, site in sites(model).items() if (tap := pick(name)) is not None}
    before, _TAPS.at = _TAPS.at, _TAPS.at | picked
    try:
        yield
    finally:
        _TAPS.at = before
