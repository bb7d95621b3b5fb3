"""Our BERT as it is pretrained, against transformers' BertForPreTraining with its weights copied in."""

from typing import Any

import pytest
import torch
from torch import nn
from transformers import BertForPreTraining

from oracle.test_bert import SHAPES, V, copied, given, shared, theirs
from regard.fields.sentences import DOES_NOT, FOLLOWS, NO_PAIR
from regard.layers.inputs import tokens
from regard.models import BertConfig, BertPretraining, BertPretrainingConfig, Widths
from regard.tasks.pretrain import _pair_costs


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_scores_losses_and_gradients_equal_transformers(shape: dict[str, Any]) -> None:
    encoder = BertConfig(**shape, dropout=0.0)
    ours = BertPretrainingConfig(encoder=encoder).build(Widths({"vocab": V}))
    assert isinstance(ours, BertPretraining)
    other = BertForPreTraining(theirs(encoder))
    head = other.cls.predictions
    modules: list[tuple[nn.Module, nn.Module]] = [
        (ours.pooling.dense, other.bert.pooler.dense),
        (ours.hidden, head.transform.dense),
        (ours.hidden_norm, head.transform.LayerNorm),
        (ours.follows, other.cls.seq_relationship),
    ]
    pairs = [(getattr(a, kind), getattr(b, kind)) for a, b in modules for kind in ("weight", "bias")]
    pairs += [*shared(ours.encoder, other.bert), (ours.output_bias, head.bias)]
    assert {id(mine) for mine, _ in pairs} == {id(parameter) for parameter in ours.parameters()}
    assert head.decoder.weight is other.bert.embeddings.word_embeddings.weight, "tied there too"
    copied(pairs)
    tokens_BT, lengths_B, keep_BT, segments_BT = given(encoder)
    is_hidden_BT = keep_BT & (torch.rand(keep_BT.shape) < 0.4)
    is_hidden_BT[0, 0] = True
    at_N = is_hidden_BT.flatten().nonzero().squeeze(1)
    labels_BT = torch.where(is_hidden_BT, torch.randint(1, V, keep_BT.shape), -100)
    follows_B = torch.tensor([FOLLOWS, DOES_NOT, DOES_NOT, NO_PAIR])

    inputs = {**tokens(tokens_BT, lengths_B, segments_BT), "places": at_N[None]}
    found_NV, scores_B2 = ours(inputs)
    expected = other(tokens_BT, keep_BT.long(), segments_BT, labels=labels_BT, next_sentence_label=follows_B)
    close = {"rtol": 0, "atol": 1e-5}
    torch.testing.assert_close(found_NV, expected.prediction_logits[is_hidden_BT], **close)
    torch.testing.assert_close(scores_B2, expected.seq_relationship_logits, **close)
    hidden = nn.functional.cross_entropy(found_NV, labels_BT[is_hidden_BT])
    loss = hidden + _pair_costs(scores_B2, follows_B).sum() / 3
    torch.testing.assert_close(loss, expected.loss, **close)

    loss.backward()
    expected.loss.backward()
    for mine, their in pairs:
        torch.testing.assert_close(mine.grad, their.grad, rtol=1e-4, atol=1e-5)


def test_only_hidden_places_reach_the_vocabulary() -> None:
    from oracle.made import Made

    model = BertPretrainingConfig.model_validate({"encoder": {"d_model": 12, "n_heads": 3}}).build(
        Widths({"vocab": 101})
    )
    tokens_BT = torch.randint(0, 101, (5, 7))
    inputs = tokens(tokens_BT, torch.tensor([7] * 5), torch.zeros_like(tokens_BT))
    places_BM = torch.tensor([[3, -1], [11, -1], [30, -1]])
    with Made() as made:
        model({**inputs, "places": places_BM})
    assert (3, 101) in made.shapes
    assert 5 * 7 * 101 not in made.sizes
