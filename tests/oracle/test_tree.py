"""The record of a search against a search with lists, which says of every beginning what became of it."""

import pytest

from oracle.chain import BEGIN, CONTENT, END, Chain, Next, rescored
from regard.decode import Hypothesis, Rules, Tree, beam

Written = tuple[int, ...]


def plain_fates(
    next_of: Next, width: int, max_length: int, penalty: float, n_best: int
) -> tuple[dict[Written, str], list[Hypothesis]]:
    fates: dict[Written, str] = {}
    live: list[tuple[float, Written]] = [(0.0, ())]
    finished: list[Hypothesis] = []
    for length in range(1, max_length + 1):
        allowed = (END,) if length == max_length else (END, *CONTENT)
        grown = [(p + next_of(ids)[token], ids, token) for p, ids in live for token in allowed]
        best = sorted(grown, reverse=True)[: 2 * width]
        ended = [entry for entry in best[:width] if entry[2] == END]
        opened = [entry for entry in best if entry[2] != END][:width]
        fates |= {(*ids, token): "outranked" for _, ids, token in best}
        fates |= {(*ids, token): "beaten" for _, ids, token in ended}
        fates |= {ids: "went on" for _, ids, _ in (*ended, *opened)}
        found = [*((h.ids, h.log_prob) for h in finished), *((ids, p) for p, ids, _ in ended)]
        finished = rescored(found, penalty)[:width]
        best_open = opened[0][0] / ((5 + length + 1) / 6) ** penalty if opened else None
        over = best_open is None or (len(finished) == width and best_open <= finished[-1].score)
        fates |= {(*ids, token): "too late" if over else "left behind" for _, ids, token in opened}
        if over:
            break
        live = [(p, (*ids, token)) for p, ids, token in opened]
    fates |= {(*answer.ids, END): "answer" for answer in finished[:n_best]}
    return fates, finished[:n_best]


def recorded(chain: Chain, length: int, **options: object) -> tuple[Tree, list[Hypothesis]]:
    tree = Tree(END, float(options.get("length_penalty", 1.0)))  # type: ignore[arg-type]
    rules = Rules(END, [length], (BEGIN,))
    found: list[Hypothesis] = []
    for step in beam(chain, chain.start(), rules, begin=BEGIN, **options):  # type: ignore[arg-type]
        tree.grow(step)
        found += [answer for _, answers in step.ended for answer in answers]
    return tree, found


def written(tree: Tree, number: int) -> Written:
    """With the end."""
    node = tree.nodes[number]
    return (*tree.ids(number), END) if node.token == END else tree.ids(number)


@pytest.mark.parametrize("n_best", [1, 2])
@pytest.mark.parametrize("width", [2, 3, 5])
@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_says_what_the_plain_twin_says(penalty: float, width: int, n_best: int) -> None:
    for length in (1, 2, 7, 11):
        chain = Chain(n_sources=1)
        tree, found = recorded(chain, length, width=width, length_penalty=penalty, n_best=n_best)
        fates, answers = plain_fates(chain.next(0), width, length, penalty, n_best)
        assert [one.ids for one in found] == [one.ids for one in answers]
        told = {written(tree, number): node.fate for number, node in enumerate(tree.nodes)}
        assert told == fates | {(): "went on"}


def test_costs_add_up_along_every_way() -> None:
    chain = Chain(n_sources=1)
    tree, (best, *_) = recorded(chain, 9, width=4, n_best=4)
    next_of = chain.next(0)
    for number, node in enumerate(tree.nodes[1:], 1):
        before = written(tree, node.parent)
        assert node.log_prob == pytest.approx(next_of(before)[node.token], abs=1e-4)
        assert node.total == pytest.approx(tree.nodes[node.parent].total + node.log_prob, abs=1e-4)
        assert node.step == len(written(tree, number))
    (first,) = [node for node in tree.nodes if node.rank == 1]
    assert first.score == pytest.approx(best.score, abs=1e-5)


def test_groups_grow_side_by_side() -> None:
    chain = Chain(n_sources=1)
    tree, found = recorded(chain, 7, width=6, groups=3, diversity=2.0, n_best=6)
    assert {node.group for node in tree.nodes} == {0, 1, 2}
    for number, node in enumerate(tree.nodes[1:], 1):
        assert tree.nodes[node.parent].group == node.group or node.parent == 0, number
    ranked = {node.rank: tree.ids(number) for number, node in enumerate(tree.nodes) if node.rank}
    assert ranked == {rank: one.ids for rank, one in enumerate(found, 1)}
