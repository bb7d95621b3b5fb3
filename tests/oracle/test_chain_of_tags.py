"""Sums over paths, best paths and expectations against the list of all paths."""

from itertools import pairwise, product

import pytest
import torch
from torch import Tensor

from regard.layers.chain import best_path, best_paths, bounded, expected, log_partition, path_score

C, T, LENGTHS = 3, 5, (5, 1, 3, 4)
N_BATCH = len(LENGTHS)


def scores(*, forbid: bool, wide: float = 1.0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    emit = torch.randn(N_BATCH, T, C, generator=generator, dtype=torch.float64) * wide
    step = torch.randn(C, C, generator=generator, dtype=torch.float64) * wide
    if forbid:
        step[0, 2] = step[1, 1] = -torch.inf
        emit[:, 0, 2] = -torch.inf
    return emit, step


def all_paths(emit_TC: Tensor, step_CC: Tensor) -> dict[tuple[int, ...], float]:
    found = {}
    for path in product(range(C), repeat=len(emit_TC)):
        said = sum(float(emit_TC[t, tag]) for t, tag in enumerate(path))
        found[path] = said + sum(float(step_CC[a, b]) for a, b in pairwise(path))
    return found


CASES = {
    "open": scores(forbid=False),
    "forbidding": scores(forbid=True),
    "wide": scores(forbid=True, wide=400),
}


@pytest.fixture(params=CASES.values(), ids=CASES)
def case(request: pytest.FixtureRequest) -> tuple[Tensor, Tensor]:
    return request.param


def test_the_sum_over_all_paths_and_its_gradients(case: tuple[Tensor, Tensor]) -> None:
    emit, step = case
    found = expected(emit, torch.tensor(LENGTHS), step)
    for row, length in enumerate(LENGTHS):
        paths = all_paths(emit[row, :length], step)
        log_z = torch.logsumexp(torch.tensor(list(paths.values()), dtype=torch.float64), 0)
        torch.testing.assert_close(found.log_z_B[row], log_z)
        tags, steps = torch.zeros(T, C, dtype=torch.float64), torch.zeros(C, C, dtype=torch.float64)
        for path, score in paths.items():
            probability = torch.exp(score - log_z)
            for t, tag in enumerate(path):
                tags[t, tag] += probability
            for a, b in pairwise(path):
                steps[a, b] += probability
        torch.testing.assert_close(found.tags_BTC[row], tags)
        torch.testing.assert_close(found.steps_BCC[row], steps)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_the_best_paths_in_order(case: tuple[Tensor, Tensor], n: int) -> None:
    emit, step = case
    paths_BNT, scores_BN = best_paths(emit, torch.tensor(LENGTHS), step, n)
    for row, length in enumerate(LENGTHS):
        paths = all_paths(emit[row, :length], step)
        ranked = sorted((score for score in paths.values() if score > -torch.inf), reverse=True)[:n]
        ranked += [-torch.inf] * (n - len(ranked))
        torch.testing.assert_close(scores_BN[row], torch.tensor(ranked, dtype=torch.float64))
        told = [tuple(path[:length]) for path in paths_BNT[row].tolist()]
        real = [path for path, score in zip(told, ranked, strict=True) if score > -torch.inf]
        assert len(set(real)) == len(real)
        for path, score in zip(real, ranked, strict=False):
            assert paths[path] == pytest.approx(score)


def test_the_best_path(case: tuple[Tensor, Tensor]) -> None:
    emit, step = case
    path_BT, score_B = best_path(emit, torch.tensor(LENGTHS), step)
    for row, length in enumerate(LENGTHS):
        paths = all_paths(emit[row, :length], step)
        assert float(score_B[row]) == pytest.approx(max(paths.values()))
        assert paths[tuple(path_BT[row, :length].tolist())] == pytest.approx(max(paths.values()))
        assert (path_BT[row, length:] == path_BT[row, length - 1]).all()


def test_gradients() -> None:
    emit, step = (part.clone().requires_grad_() for part in CASES["open"])
    lengths = torch.tensor(LENGTHS)
    assert torch.autograd.gradcheck(lambda e, s: log_partition(e, lengths, s), (emit, step))


def test_the_score_of_a_path() -> None:
    emit, step = CASES["open"]
    tags = torch.tensor([[2, 0, 1, 1, 2], [1, 9, 9, 9, 9], [0, 0, 2, 9, 9], [1, 2, 0, 1, 9]]) % C
    found = path_score(emit, torch.tensor(LENGTHS), step, tags)
    for row, length in enumerate(LENGTHS):
        path = tuple(tags[row, :length].tolist())
        assert float(found[row]) == pytest.approx(all_paths(emit[row, :length], step)[path])


def test_beginnings_and_endings_count_once() -> None:
    emit, _ = CASES["open"]
    begin, end = torch.tensor([1.0, 2.0, 4.0]).double(), torch.tensor([10.0, 20.0, 40.0]).double()
    added = bounded(emit, torch.tensor(LENGTHS), begin, end) - emit
    for row, length in enumerate(LENGTHS):
        torch.testing.assert_close(added[row].sum(0), begin + end)
        torch.testing.assert_close(added[row, length - 1] - (begin if length == 1 else 0), end)


def test_where_no_path_is_allowed() -> None:
    emit, step = torch.zeros(1, 2, 2), torch.full((2, 2), -torch.inf)
    found = expected(emit, torch.tensor([2]), step)
    assert found.log_z_B.tolist() == [-torch.inf]
    assert float(found.tags_BTC.abs().sum() + found.steps_BCC.abs().sum()) == 0.0
    assert best_path(emit, torch.tensor([2]), step)[1].tolist() == [-torch.inf]
    assert best_paths(emit, torch.tensor([2]), step, 1)[1].tolist() == [[-torch.inf]]
