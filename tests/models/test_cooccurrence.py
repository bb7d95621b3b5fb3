"""Vectors that are counted: each step beside its definition, and what a pretraining does with them."""

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

import regard
from regard.errors import RecipeError
from regard.models import BertPretraining, cooccurrence
from regard.models.cooccurrence import cooccurrences, ppmi_vectors
from regard.runs.prepare import prepare
from tiny import pretraining

V = 9


def texts(seed: int, n: int = 40) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    ends = np.cumsum(rng.integers(1, 12, n))
    return rng.zipf(1.5, ends[-1]).clip(max=V - 1), ends


def slowly_near(pieces: np.ndarray, ends: np.ndarray, window: int) -> np.ndarray:
    counts_VV = np.zeros((V, V))
    for begin, end in pairwise([0, *ends.tolist()]):
        for i in range(begin, end):
            for j in range(max(begin, i - window), min(end, i + window + 1)):
                counts_VV[pieces[i], pieces[j]] += i != j
    return counts_VV


@pytest.mark.parametrize("window", [1, 3, 50])
def test_what_stands_near_is_counted(window: int) -> None:
    pieces, ends = texts(window)
    by_frequency = np.argsort(-np.bincount(pieces, minlength=V), kind="stable")
    slow_VV = slowly_near(pieces, ends, window)
    assert slow_VV.sum() > 100
    np.testing.assert_array_equal(cooccurrences(pieces, ends, V, window).numpy(), slow_VV[:, by_frequency])


def test_only_common_pieces_are_looked_for_in_a_large_vocabulary(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces, ends = texts(1)
    all_VV = cooccurrences(pieces, ends, V, 3)
    monkeypatch.setattr(cooccurrence, "ROOM", 4 * V)
    torch.testing.assert_close(cooccurrences(pieces, ends, V, 3), all_VV[:, :4], rtol=0, atol=0)


def test_of_a_long_text_parts_are_looked_at_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cooccurrence, "CHUNK", 2)
    monkeypatch.setattr(cooccurrence, "MOST_CHUNKS", 3)
    pieces = np.array([1, 2, 5, 5, 3, 4, 5, 5, 6, 7])
    found_VV = cooccurrences(pieces, np.array([10]), V, 2)
    assert found_VV.sum() == 6, "the pairs of the first, the middle and the last part, both ways"
    assert not found_VV[5].any()


def test_vectors_are_the_singular_ones_of_surprise() -> None:
    """With room for all, V·Vᵀ is made of left vectors and values alone, whatever their signs."""
    pieces, ends = texts(2, 200)
    near_VV = slowly_near(pieces, ends, 3)
    smooth_V = near_VV.sum(0) ** 0.75
    surprise_VV = np.zeros((V, V))
    for i in range(V):
        for j in range(V):
            if near_VV[i, j]:
                chance = near_VV[i].sum() * smooth_V[j] / smooth_V.sum()
                surprise_VV[i, j] = max(0.0, math.log(near_VV[i, j] / chance))
    left_VV, values_V, _ = np.linalg.svd(surprise_VV)
    expected_VV = left_VV * values_V @ left_VV.T
    told = surprise_VV.any(1)
    vectors_VD = ppmi_vectors(pieces, ends, V, 16, window=3).double().numpy()
    assert not vectors_VD[~told].any()
    assert np.square(vectors_VD).sum(1)[told].mean() == pytest.approx(1, rel=1e-5), "as long as Embed's"
    scale = expected_VV.trace() / told.sum()
    np.testing.assert_allclose(scale * vectors_VD @ vectors_VD.T, expected_VV, atol=1e-4)


def test_words_in_the_same_company_are_alike() -> None:
    rng = np.random.default_rng(0)
    rows = [[rng.choice([1, 2]), 3, 4] for _ in range(50)] + [[rng.choice([5, 6]), 7, 8] for _ in range(50)]
    vectors_VD = ppmi_vectors(np.array(rows).ravel(), np.arange(3, 301, 3), V, 4)
    alike_VV = torch.cosine_similarity(vectors_VD[:, None], vectors_VD[None], dim=-1)
    assert alike_VV[1, 2] > 0.9
    assert alike_VV[5, 6] > 0.9
    assert alike_VV[1, 5] < 0.1


def test_texts_of_one_piece_tell_nothing() -> None:
    assert not ppmi_vectors(np.array([1, 2, 3]), np.array([1, 2, 3]), V, 4).any()


def test_drawing_elsewhere_is_not_disturbed() -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    ppmi_vectors(*texts(3), V, 4)
    assert torch.equal(before, torch.get_rng_state())


def counting(folder: Path, **model: str) -> regard.Recipe:
    told = pretraining(folder).model_dump(mode="json")
    return regard.Recipe.parse(told | {"model": told["model"] | {"embeddings": "counted"} | model})


def test_a_pretraining_begins_with_them(tmp_path: Path) -> None:
    recipe = counting(tmp_path)
    with prepare(recipe) as run:
        model, train = run.training.model, run.training.train
        assert isinstance(model, BertPretraining)
        begun_VD = model.encoder.embed.weight.detach().clone()
        documents = train.documents
        counted_VD = ppmi_vectors(documents.values, documents.ends, *begun_VD.shape)
        told_V = counted_VD.any(1)
        torch.testing.assert_close(begun_VD[told_V], counted_VD[told_V])
        assert begun_VD.any(1).all(), "marks, which stand in no document, begin at random"
        assert not told_V.all()
    assert regard.train(recipe, quiet=True).metrics["step"] == 4


def test_one_beginning_is_enough(tmp_path: Path) -> None:
    with pytest.raises(
        RecipeError, match=r"embeddings \(counted\): init_from has its own already; leave one"
    ):
        counting(tmp_path, init_from="some/run")
