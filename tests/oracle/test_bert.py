"""Our BERT against transformers' with its weights copied in: states, pooled vectors, logits and gradients."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import BertConfig as TheirConfig
from transformers import BertForSequenceClassification, BertForTokenClassification, BertModel

from regard.layers.inputs import NO_TAG, tokens
from regard.models import Bert, BertConfig, Classifier, ClassifierConfig, Tagger, TaggerConfig, Widths

V = 23
SHAPES: dict[str, dict[str, Any]] = {
    "one layer": {"d_model": 12, "n_heads": 3, "d_ff": 11, "n_layers": 1, "max_positions": 13},
    "two layers, relu": {"d_model": 20, "n_heads": 5, "d_ff": 37, "n_layers": 2, "activation": "relu"},
    "one head, three segments": {
        "d_model": 7,
        "n_heads": 1,
        "d_ff": 31,
        "n_layers": 3,
        "n_segments": 3,
        "activation": "gelu_tanh",
        "norm_eps": 1e-5,
    },
    "a preset": {"preset": "tiny", "n_layers": 1, "d_ff": 96},
}
ACTIVATIONS = {"gelu": "gelu", "gelu_tanh": "gelu_pytorch_tanh", "relu": "relu"}


def theirs(config: BertConfig, **more: Any) -> TheirConfig:
    return TheirConfig(
        vocab_size=V,
        hidden_size=config.d_model,
        num_hidden_layers=config.n_layers,
        num_attention_heads=config.n_heads,
        intermediate_size=config.d_ff,
        hidden_act=ACTIVATIONS[config.activation],
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        max_position_embeddings=config.max_positions,
        type_vocab_size=config.n_segments,
        layer_norm_eps=config.norm_eps,
        **more,
    )


PARTS = {
    "self.q": "attention.self.query",
    "self.k": "attention.self.key",
    "self.v": "attention.self.value",
    "self.o": "attention.output.dense",
    "self_norm": "attention.output.LayerNorm",
    "ff.inner": "intermediate.dense",
    "ff.outer": "output.dense",
    "ff_norm": "output.LayerNorm",
}


def test_which_text_is_which_is_passed_over_where_there_is_one_segment() -> None:
    bert = BertConfig(**SHAPES["one layer"] | {"n_segments": 1}).build({"vocab": V}).eval()
    tokens_BT, lengths_B = torch.randint(V, (3, 7)), torch.tensor([7, 5, 6])
    segments_BT = (torch.arange(7) > 2).long().expand(3, 7)
    torch.testing.assert_close(
        *(bert(tokens(tokens_BT, lengths_B, each)).states_RTD for each in (segments_BT, None))
    )


def shared(bert: Bert, other: BertModel) -> list[tuple[Tensor, Tensor]]:
    """Written out by hand here, so that the bridge's table is not its own witness."""
    tables = other.embeddings
    pairs = [
        (bert.embed.weight, tables.word_embeddings.weight),
        (bert.embed.position.weight, tables.position_embeddings.weight),
        (bert.segment.weight, tables.token_type_embeddings.weight),
    ]
    modules: list[tuple[nn.Module, nn.Module]] = [(bert.embed_norm, tables.LayerNorm)]
    for mine, their in zip(bert.stack.layers, other.encoder.layer, strict=True):
        modules += [(mine.get_submodule(a), their.get_submodule(b)) for a, b in PARTS.items()]
    return pairs + [(getattr(a, kind), getattr(b, kind)) for a, b in modules for kind in ("weight", "bias")]


def copied(pairs: list[tuple[Tensor, Tensor]]) -> None:
    with torch.no_grad():
        for ours, other in pairs:
            other.copy_(torch.randn_like(other) * 0.2)
            ours.copy_(other)


def given(config: BertConfig) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Tokens, lengths, which are real, segments: rows of unequal length. Theirs never learns piece 0."""
    lengths_B = torch.tensor([9, 4, 1, 6])
    tokens_BT = torch.randint(1, V, (4, 9))
    segments_BT = torch.randint(0, config.n_segments, (4, 9))
    return tokens_BT, lengths_B, torch.arange(9) < lengths_B[:, None], segments_BT


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_states_and_gradients_equal_transformers(shape: dict[str, Any]) -> None:
    config = BertConfig(**shape, dropout=0.0)
    ours, other = config.build({"vocab": V}), BertModel(theirs(config), add_pooling_layer=False)
    pairs = shared(ours, other)
    assert {id(mine) for mine, _ in pairs} == {id(parameter) for parameter in ours.parameters()}
    assert {id(their) for _, their in pairs} == {id(parameter) for parameter in other.parameters()}
    copied(pairs)
    tokens_BT, lengths_B, keep_BT, segments_BT = given(config)
    for segments in (segments_BT, None):
        found = ours(tokens(tokens_BT, lengths_B, segments)).states_RTD[keep_BT]
        expected = other(tokens_BT, keep_BT.long(), segments).last_hidden_state[keep_BT]
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
    found.pow(3).mean().backward()
    expected.pow(3).mean().backward()
    for mine, their in pairs:
        torch.testing.assert_close(mine.grad, their.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_classifier_equals_transformers(shape: dict[str, Any]) -> None:
    encoder = BertConfig(**shape, dropout=0.0)
    ours = ClassifierConfig(encoder=encoder, pooling="pooler", dropout=0.0).build(
        Widths({"vocab": V}, {"classes": 3})
    )
    assert isinstance(ours, Classifier)
    other = BertForSequenceClassification(theirs(encoder, num_labels=3)).eval()
    heads = [(ours.pooling.dense, other.bert.pooler.dense), (ours.output, other.classifier)]
    assert isinstance(ours.encoder, Bert)
    copied(shared(ours.encoder, other.bert))
    copied([(getattr(a, kind), getattr(b, kind)) for a, b in heads for kind in ("weight", "bias")])
    tokens_BT, lengths_B, keep_BT, segments_BT = given(encoder)
    with torch.no_grad():
        found = ours.eval()(tokens(tokens_BT, lengths_B, segments_BT))
        expected = other(tokens_BT, keep_BT.long(), segments_BT).logits
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_tagger_equals_transformers(shape: dict[str, Any]) -> None:
    encoder = BertConfig(**shape, dropout=0.0)
    widths = Widths({"vocab": V}, {"tags": ("B", "I", "O")})
    ours = TaggerConfig(encoder=encoder, crf=False, dropout=0.0).build(widths).eval()
    assert isinstance(ours, Tagger)
    other = BertForTokenClassification(theirs(encoder, num_labels=3)).eval()
    assert isinstance(ours.encoder, Bert)
    copied(shared(ours.encoder, other.bert))
    copied([(getattr(ours.output, kind), getattr(other.classifier, kind)) for kind in ("weight", "bias")])
    tokens_BT, lengths_B, keep_BT, _ = given(encoder)
    labels_BT = torch.randint(0, 3, tokens_BT.shape)
    places_BN = torch.arange(tokens_BT.numel()).view_as(tokens_BT)
    inputs = tokens(tokens_BT, lengths_B) | {"places": places_BN}
    expected = other(tokens_BT, keep_BT.long(), labels=labels_BT.masked_fill(~keep_BT, -100))
    found_BNC = ours.scores(inputs)
    torch.testing.assert_close(found_BNC[keep_BT], expected.logits[keep_BT], rtol=0, atol=1e-5)
    cost = ours(inputs, labels_BT.masked_fill(~keep_BT, NO_TAG)) / keep_BT.sum()
    torch.testing.assert_close(cost, expected.loss, rtol=1e-5, atol=1e-5)


def test_presets_are_the_papers() -> None:
    """BERT-base has 110 M parameters with 30,522 tokens, the pooler's 0.6 M included."""
    with torch.device("meta"):
        model = BertConfig(preset="base").build({"vocab": 30_522})
    n_parameters = sum(parameter.numel() for parameter in model.parameters()) + 768 * 769
    assert n_parameters == 109_482_240, "as transformers counts its own"
    tiny = BertConfig(preset="tiny", n_layers=5)
    assert (tiny.d_model, tiny.n_heads, tiny.d_ff, tiny.n_layers) == (128, 2, 512, 5)
