"""The transducer's loss, gradient, occupation and best path beside every path and a plain double loop."""

import pytest
import torch
from torch import Tensor

from oracle.transducers import all_paths, arcs, loop_loss, path_log_prob
from regard.layers.transducer import Joint, Lattice, best_path, lattice, occupation, transducer_loss

B, T, U, V, F = 3, 7, 4, 5, 11
N_FRAMES, N_LABELS = torch.tensor([7, 1, 5]), torch.tensor([3, 2, 0])


def joint(
    dtype: torch.dtype = torch.float64, size: float = 1.0, n_frames: int = T, n_nodes: int = U
) -> Joint:
    generator = torch.Generator().manual_seed(3)
    shapes = [(B, n_frames, F), (B, n_nodes, F), (V, F), (V,)]
    parts = [torch.randn(shape, generator=generator, dtype=torch.float64) * size for shape in shapes]
    return Joint(*(part.to(dtype).requires_grad_() for part in parts))


def labels(n_labels: int = U - 1) -> Tensor:
    return torch.randint(1, V, (B, n_labels), generator=torch.Generator().manual_seed(5))


def log_probs(joint: Joint) -> Tensor:
    """log_probs_BTUV of all nodes at once, by the definition."""
    hidden_BTUF = torch.tanh(joint.encoded_BTF[:, :, None] + joint.predicted_BUF[:, None])
    return torch.log_softmax(hidden_BTUF @ joint.weight_VF.t() + joint.bias_V, dim=-1)


def grads(joint: Joint, loss_B: Tensor) -> list[Tensor]:
    weights_B = torch.linspace(0.5, 2.0, len(loss_B), dtype=loss_B.dtype)
    return list(torch.autograd.grad((weights_B * loss_B).sum(), list(joint)))


def test_every_path() -> None:
    model, labels_BU = joint(), labels()
    arcs_found = lattice(model, labels_BU, N_FRAMES, N_LABELS)
    taken, frames_BU = occupation(arcs_found), best_path(arcs_found)
    loss_B, log_probs_BTUV = transducer_loss(model, labels_BU, N_FRAMES, N_LABELS), log_probs(model).detach()
    for row in range(B):
        n_frames, n_labels = int(N_FRAMES[row]), int(N_LABELS[row])
        paths = list(all_paths(n_frames, n_labels))
        row_labels = labels_BU[row].tolist()
        scores = torch.stack(
            [path_log_prob(log_probs_BTUV[row], row_labels, path, n_frames) for path in paths]
        )
        total = torch.logsumexp(scores, 0)
        torch.testing.assert_close(loss_B[row].detach(), -total)
        torch.testing.assert_close(taken.log_prob_B[row], total)
        by_arc = {False: torch.zeros(T, U), True: torch.zeros(T, U)}
        for path, score in zip(paths, scores, strict=True):
            for t, u, writes in arcs(path, n_frames):
                by_arc[writes][t, u] += float(torch.exp(score - total))
        torch.testing.assert_close(taken.blank_BTU[row].float(), by_arc[False])
        torch.testing.assert_close(taken.label_BTU[row].float(), by_arc[True])
        assert tuple(frames_BU[row, :n_labels].tolist()) == paths[int(scores.argmax())]
        assert not frames_BU[row, n_labels:].any()


def test_gradient_by_differences() -> None:
    labels_BU = labels()

    def loss(*parts: Tensor) -> Tensor:
        return transducer_loss(Joint(*parts), labels_BU, N_FRAMES, N_LABELS, at_once=3)

    assert torch.autograd.gradcheck(loss, tuple(joint()))


@pytest.mark.parametrize("fast_emit", [0.0, 0.3])
def test_double_loop(fast_emit: float) -> None:
    model, labels_BU = joint(), labels()
    found_B = transducer_loss(model, labels_BU, N_FRAMES, N_LABELS, fast_emit=fast_emit)
    expected_B = loop_loss(log_probs(model), labels_BU, N_FRAMES, N_LABELS, fast_emit)
    torch.testing.assert_close(found_B, expected_B)
    torch.testing.assert_close(grads(model, found_B), grads(model, expected_B))


@pytest.mark.parametrize("size", [0.1, 1.0, 40.0], ids=["flat", "usual", "steep"])
def test_single_precision_over_a_long_lattice(size: float) -> None:
    """Steep: all but one way to go on are out of the range of single precision at every node."""
    n_labels = torch.tensor([60, 23, 0])
    narrow, wide = (joint(dtype, size, n_frames=211, n_nodes=61) for dtype in (torch.float32, torch.float64))
    n_frames, labels_BU = torch.tensor([211, 1, 97]), labels(60)
    found_B = transducer_loss(narrow, labels_BU, n_frames, n_labels)
    expected_B = transducer_loss(wide, labels_BU, n_frames, n_labels)
    torch.testing.assert_close(found_B.double(), expected_B, rtol=3e-6, atol=1e-4)
    for found, expected in zip(grads(narrow, found_B), grads(wide, expected_B), strict=True):
        assert float((found - expected).norm()) <= 1e-4 * float(expected.norm())


@pytest.mark.parametrize("at_once", [1, 2, 5, 29])
def test_frames_at_once_change_no_bit(at_once: int) -> None:
    n_frames, n_labels = torch.tensor([29, 11, 23]), torch.tensor([12, 3, 7])
    model, labels_BU = joint(torch.float32, n_frames=29, n_nodes=13), labels(12)
    whole_B = transducer_loss(model, labels_BU, n_frames, n_labels, at_once=29)
    sliced_B = transducer_loss(model, labels_BU, n_frames, n_labels, at_once=at_once)
    assert torch.equal(whole_B, sliced_B)
    for whole, sliced in zip(grads(model, whole_B), grads(model, sliced_B), strict=True):
        assert torch.equal(whole, sliced)


def test_padding_changes_nothing() -> None:
    model, labels_BU = joint(), labels()
    together_B = transducer_loss(model, labels_BU, N_FRAMES, N_LABELS)
    for row in range(B):
        n_frames, n_labels = int(N_FRAMES[row]), int(N_LABELS[row])
        alone = Joint(
            model.encoded_BTF[row : row + 1, :n_frames],
            model.predicted_BUF[row : row + 1, : n_labels + 1],
            *model[2:],
        )
        alone_B = transducer_loss(
            alone, labels_BU[row : row + 1, :n_labels], N_FRAMES[row : row + 1], N_LABELS[row : row + 1]
        )
        torch.testing.assert_close(alone_B, together_B[row : row + 1])
    d_encoded_BTF, d_predicted_BUF, *_ = grads(model, together_B)
    assert not d_encoded_BTF[1, 1:].any()
    assert not d_predicted_BUF[1, 3:].any()


def test_autocast_changes_nothing() -> None:
    model, labels_BU = joint(torch.float32), labels()
    with torch.autocast("cpu", torch.bfloat16):
        inside_B = transducer_loss(model, labels_BU, N_FRAMES, N_LABELS)
    assert torch.equal(inside_B, transducer_loss(model, labels_BU, N_FRAMES, N_LABELS))


def test_labels_that_cannot_be_written() -> None:
    """An arc of probability 0 on every path: the loss is infinite, and nothing is taken."""
    model, labels_BU = joint(), labels()
    found = lattice(model, labels_BU, N_FRAMES, N_LABELS)
    label_BTU = found.label_BTU.clone()
    label_BTU[0, :, 1] = -torch.inf
    taken = occupation(Lattice(found.blank_BTU, label_BTU, N_FRAMES, N_LABELS))
    assert taken.log_prob_B[0] == -torch.inf
    assert not taken.label_BTU[0].any()
    torch.testing.assert_close(taken.blank_BTU[1], occupation(found).blank_BTU[1])
