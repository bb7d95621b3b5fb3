"""Our answerer against transformers' with its weights copied in, and its best span against all pairs."""

from itertools import product
from typing import Any

import pytest
import torch
from transformers import BertForQuestionAnswering

from oracle.test_bert import SHAPES, V, copied, given, shared, theirs
from regard.layers.inputs import tokens
from regard.models import Answerer, AnswererConfig, Bert, BertConfig, Widths
from regard.models.answerer import best_spans


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_scores_equal_transformers(shape: dict[str, Any]) -> None:
    encoder = BertConfig(**shape, dropout=0.0)
    ours = AnswererConfig(encoder=encoder, dropout=0.0).build(Widths({"vocab": V}))
    other = BertForQuestionAnswering(theirs(encoder)).eval()
    assert isinstance(ours, Answerer)
    assert isinstance(ours.encoder, Bert)
    copied(shared(ours.encoder, other.bert))
    copied([(getattr(ours.spans, kind), getattr(other.qa_outputs, kind)) for kind in ("weight", "bias")])
    tokens_BT, lengths_B, keep_BT, segments_BT = given(encoder)
    with torch.no_grad():
        start_BT, end_BT = ours.eval()(tokens(tokens_BT, lengths_B, segments_BT))
        expected = other(tokens_BT, keep_BT.long(), segments_BT)
    torch.testing.assert_close(start_BT[keep_BT], expected.start_logits[keep_BT], rtol=0, atol=1e-5)
    torch.testing.assert_close(end_BT[keep_BT], expected.end_logits[keep_BT], rtol=0, atol=1e-5)
    assert start_BT[~keep_BT].isneginf().all()


@pytest.mark.parametrize("most", [1, 3, 11, 40])
def test_the_best_span_is_the_best_of_all_pairs(most: int) -> None:
    torch.manual_seed(most)
    start_BT, end_BT = torch.randn(2, 29, 11)
    begins_B, ends_B = torch.randint(0, 11, (2, 29)).sort(0).values
    keep_BT = (torch.arange(11) >= begins_B[:, None]) & (torch.arange(11) < ends_B[:, None])
    found = best_spans(start_BT, end_BT, keep_BT, most)
    for row in range(29):
        inside = range(int(begins_B[row]), int(ends_B[row]))
        pairs = [(i, j) for i, j in product(inside, inside) if i <= j < i + most]
        if not pairs:
            assert found.score_B[row] == -torch.inf
            continue
        best = max(pairs, key=lambda pair: start_BT[row, pair[0]] + end_BT[row, pair[1]])
        assert (int(found.first_B[row]), int(found.last_B[row])) == best
