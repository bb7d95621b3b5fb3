"""The conditional random field: holes, what is forbidden, probabilities."""

from itertools import product

import pytest
import torch

from regard.layers.crf import CRF, Allowed
from regard.layers.inputs import NO_TAG

C = 3
KEEP = torch.tensor([[True, True, True, True], [False, True, False, True], [True, False, False, False]])


def field(*, forbid: bool) -> CRF:
    torch.manual_seed(4)
    allowed = Allowed(
        torch.tensor([True, True, False]),
        torch.tensor([[True, False, True], [True, True, True], [True, True, False]]),
        torch.tensor([True, False, True]),
    )
    crf = CRF(C, allowed if forbid else None).double()
    for weight in crf.parameters():
        torch.nn.init.normal_(weight)
    return crf


def emissions() -> torch.Tensor:
    return torch.randn(*KEEP.shape, C, generator=torch.Generator().manual_seed(7), dtype=torch.float64)


def scored(crf: CRF, emit: torch.Tensor, path: tuple[int, ...]) -> float:
    """Of the tags at one row's kept positions, by hand."""
    begin_C, step_CC, end_C = (weight.detach() for weight in (crf.begin_C, crf.step_CC, crf.end_C))
    may = crf.allowed
    if may is not None and not (may.begin_C[path[0]] and may.end_C[path[-1]]):
        return -torch.inf
    score = float(begin_C[path[0]] + end_C[path[-1]])
    for place, tag in enumerate(path):
        score += float(emit[place, tag])
        if place:
            step = path[place - 1], tag
            allowed = may is None or may.step_CC[step]
            score = score + float(step_CC[step]) if allowed else -torch.inf
    return score


@pytest.mark.parametrize("forbid", [False, True], ids=["open", "forbidding"])
def test_against_all_paths(forbid: bool) -> None:
    crf, emit = field(forbid=forbid), emissions()
    tags_BNT, log_prob_BN = crf.n_best(emit, KEEP, 3)
    assert (crf.best(emit, KEEP) == tags_BNT[:, 0]).all()
    marginals_BTC = crf.marginals(emit, KEEP)
    for row, keep in enumerate(KEEP):
        length = int(keep.sum())
        paths = {path: scored(crf, emit[row, keep], path) for path in product(range(C), repeat=length)}
        scores = torch.tensor(list(paths.values()), dtype=torch.float64)
        log_z = torch.logsumexp(scores, 0)
        ranked = sorted(paths, key=paths.__getitem__, reverse=True)
        for rank in range(min(3, int((scores > -torch.inf).sum()))):
            assert tuple(tags_BNT[row, rank, keep].tolist()) == ranked[rank]
            assert float(log_prob_BN[row, rank]) == pytest.approx(paths[ranked[rank]] - float(log_z))
        likely = torch.zeros(length, C, dtype=torch.float64)
        for path, score in paths.items():
            for place, tag in enumerate(path):
                likely[place, tag] += torch.exp(score - log_z)
        torch.testing.assert_close(marginals_BTC[row, keep], likely)
        gold = torch.full(KEEP.shape, NO_TAG)
        gold[row, keep] = torch.tensor(ranked[1])
        cost = crf(emit[row : row + 1], keep[None], gold[row : row + 1]).detach()
        assert float(cost) == pytest.approx(float(log_z) - paths[ranked[1]])
    assert (tags_BNT[:, 0][~KEEP] == NO_TAG).all()
    assert float(marginals_BTC[~KEEP].abs().sum()) == 0.0


def test_a_hole_is_as_if_the_position_were_not_there() -> None:
    crf, emit = field(forbid=True), emissions()
    tags = torch.tensor([[0, 2, 0, 0], [0, 1, 2, 0], [0, 1, 1, 1]])
    alone = crf(emit[1:2, [1, 3]], torch.ones(1, 2, dtype=torch.bool), tags[1:2, [1, 3]])
    torch.testing.assert_close(crf(emit, KEEP, tags)[1:2], alone)


def test_what_is_forbidden_learns_nothing_and_spoils_nothing() -> None:
    crf, emit = field(forbid=True), emissions().requires_grad_()
    crf(emit, KEEP, torch.tensor([[0, 2, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])).sum().backward()
    assert emit.grad is not None
    assert emit.grad.isfinite().all()
    for name in ("begin_C", "step_CC", "end_C"):
        gradient = getattr(crf, name).grad
        assert gradient.isfinite().all()
        assert (gradient[~getattr(crf.allowed, name)] == 0).all()


@pytest.mark.parametrize("apart", [1, 1000], ids=["near", "far apart"])
def test_a_row_without_positions_costs_nothing(apart: int) -> None:
    crf, emit = field(forbid=False), apart * emissions()
    keep = KEEP & torch.tensor([[True], [False], [True]])
    cost_B = crf(emit, keep, torch.zeros_like(keep, dtype=torch.long)).detach()
    assert float(cost_B[1]) == 0.0
    assert cost_B.isfinite().all()
