"""What must hold for every model, whatever its scores, positions, cells and poolings."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from torch import Tensor, nn
from torch.func import functional_call

from regard.attention import Trace, sites, tapped
from regard.decode import Rules, Sampler, beam, greedy, hypotheses, sample
from regard.fields.padding import NOWHERE
from regard.layers.dropout import Dropout
from regard.layers.heads import smoothed_cross_entropy
from regard.layers.inputs import NO_TAG, tokens
from regard.models import (
    AnswererConfig,
    BertPretrainingConfig,
    ClassifierConfig,
    EncodingConfig,
    GPTConfig,
    RelaterConfig,
    RNNConfig,
    TaggerConfig,
    TransformerConfig,
    Widths,
)
from regard.models.relater import N_MARKS
from regard.runs.store import load_model, save_model
from regard.tasks import (
    Answer,
    AnswerConfig,
    Classify,
    ClassifyConfig,
    LanguageModel,
    LanguageModelConfig,
    Relation,
    RelationConfig,
    Tag,
    TagConfig,
    Translate,
    TranslateConfig,
)
from tiny import (
    DIMS,
    JOINT,
    NGRAMS,
    TAGS,
    Inputs,
    answerer,
    classifier,
    gpt,
    inputs,
    relater,
    rnn,
    stirred,
    tagger,
    to_pretrain,
    transformer,
)

Config = (
    TransformerConfig
    | RNNConfig
    | ClassifierConfig
    | TaggerConfig
    | RelaterConfig
    | AnswererConfig
    | GPTConfig
    | BertPretrainingConfig
)

TRANSLATORS: dict[str, tuple[Config, Widths]] = {
    f"transformer-{position}-{norm}": (transformer(position=position, norm=norm), DIMS)
    for position in ("sinusoidal", "learned", "rotary", "relative", "alibi", "none")
    for norm in ("post", "pre")
}
TRANSLATORS |= {
    "transformer-gelu-untied": (transformer(activation="gelu", tie_embeddings=False), DIMS),
    "transformer-gelu_tanh-joint": (transformer(activation="gelu_tanh"), JOINT),
    "transformer-swiglu-multiquery": (transformer(activation="swiglu", n_kv_heads=1, bias=False), DIMS),
    "transformer-copies": (transformer(copies=True), JOINT),
    "transformer-copies-rotary-pre": (transformer(copies=True, position="rotary", norm="pre"), JOINT),
    "rnn-copies": (rnn(copies=True), JOINT),
    "rnn-copies-none": (rnn(copies=True, attention="none", cell="lstm", n_layers=2), JOINT),
    "rnn-copies-unfed": (rnn(copies=True, attention="dot", order="luong", input_feeding=False), JOINT),
    "rnn-joint-tied": (rnn(d_embed=6), JOINT),
    "rnn-one-way": (rnn(bidirectional=False, d_hidden=5, cell="lstm"), DIMS),
    "rnn-untied": (rnn(d_embed=6, tie_embeddings=False), DIMS),
}
FEEDING: dict[bool | str, str] = {True: "", False: "-unfed", "context": "-context"}
TRANSLATORS |= {
    f"rnn-{cell}-{attention}-{order}{FEEDING[feeding]}-{combine}": (
        rnn(
            cell=cell,
            attention=attention,
            order=order,
            input_feeding=feeding,
            combine=combine,
            n_layers=n_layers,
        ),
        DIMS,
    )
    for cell, attention, order, feeding, combine, n_layers in [
        ("rnn", "none", "bahdanau", True, "concat", 1),
        ("lstm", "none", "luong", True, "add", 2),
        ("gru", "dot", "bahdanau", True, "add", 2),
        ("lstm", "dot", "luong", False, "concat", 1),
        ("lstm", "scaled_dot", "luong", True, "concat", 2),
        ("gru", "scaled_dot", "bahdanau", True, "concat", 1),
        ("gru", "general", "luong", True, "add", 1),
        ("rnn", "general", "luong", False, "concat", 2),
        ("gru", "additive", "bahdanau", True, "concat", 1),
        ("lstm", "additive", "luong", True, "concat", 2),
        ("gru", "additive", "luong", False, "add", 1),
        ("gru", "additive", "luong", "context", "concat", 2),
        ("lstm", "dot", "luong", "context", "add", 1),
    ]
}
TRANSLATORS |= {
    "transformer-window": (transformer(position="rotary", reach={"kind": "window", "left": 1}), DIMS),
    "transformer-chunks": (transformer(position="alibi", reach={"kind": "chunks", "size": 2}), DIMS),
    "transformer-linear": (transformer(reach={"kind": "linear", "size": 2}), DIMS),
    "transformer-landmarks": (transformer(reach={"kind": "landmarks", "size": 2, "n_chunks": 1}), DIMS),
    "transformer-segments": (
        transformer(position="none", reach={"kind": "segments", "size": 2}, norm="pre"),
        DIMS,
    ),
}
CLASSIFIERS: dict[str, tuple[Config, Widths]] = {
    f"classifier-{encoder}-{pooling}": (classifier(encoder, pooling), DIMS)
    for encoder in ("transformer", "rnn", "words", "bert")
    for pooling in ("attention", "first", "mean")
}
CLASSIFIERS["classifier-bert-pooler"] = (classifier("bert", "pooler"), DIMS)
CLASSIFIERS |= {
    f"classifier-transformer-{position}": (classifier("transformer", position=position, norm="pre"), DIMS)
    for position in ("learned", "rotary", "relative", "alibi", "none")
}
CLASSIFIERS["classifier-rnn-one-way"] = (classifier("rnn", bidirectional=False, cell="gru"), DIMS)
CLASSIFIERS |= {
    f"classifier-{encoder}-{reach['kind']}": (classifier(encoder, reach=reach), DIMS)
    for encoder in ("transformer", "bert")
    for reach in (
        {"kind": "window", "left": 1, "n_global": 1},
        {"kind": "chunks", "size": 2, "right_chunks": 1},
        {"kind": "linear"},
        {"kind": "landmarks", "size": 2, "n_chunks": 1},
    )
}
CLASSIFIERS |= {
    f"classifier-{encoder}-ngrams": (classifier(encoder, ngrams=NGRAMS), DIMS)
    for encoder in ("words", "bert")
}
TAGGERS: dict[str, tuple[Config, Widths]] = {
    f"tagger-{encoder}{'-crf' * crf}": (tagger(encoder, crf=crf), DIMS)
    for encoder in ("transformer", "rnn", "words")
    for crf in (True, False)
}
RELATERS: dict[str, tuple[Config, Widths]] = {
    f"relater-{encoder}{'' if entities else '-pooled'}": (relater(encoder, entities=entities), DIMS)
    for encoder in ("transformer", "rnn", "words", "bert")
    for entities in (True, False)
}
ANSWERERS: dict[str, tuple[Config, Widths]] = {
    f"answerer-{encoder}": (answerer(encoder), DIMS) for encoder in ("transformer", "rnn", "words", "bert")
}
CONTINUERS: dict[str, tuple[Config, Widths]] = {
    f"gpt-{position}": (gpt(position=position), JOINT)
    for position in ("learned", "rotary", "sinusoidal", "relative", "alibi", "none")
}
CONTINUERS |= {
    "gpt-untied-swiglu": (gpt(tie_embeddings=False, activation="swiglu", bias=False), JOINT),
    "gpt-post-multiquery": (gpt(norm="post", n_kv_heads=1), JOINT),
}
PRETRAINED: dict[str, tuple[Config, Widths]] = {"bert-pretraining": (to_pretrain(), DIMS)}
READERS = TRANSLATORS | CLASSIFIERS | TAGGERS | RELATERS | ANSWERERS | PRETRAINED
MODELS = READERS | CONTINUERS
LAST_BIAS = "encoder.stack.layers.1.ff_norm.bias"
LEGAL = ("B-LOC", "I-LOC", "O", "B-PER", "B-ORG", "I-ORG", "I-ORG")
"""As many tags as the longest input has words; so is every beginning of it."""


def each(models: dict[str, tuple[Config, Widths]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("config", "widths"), models.values(), ids=models.keys())


def made(config: Config, widths: Widths) -> tuple[nn.Module, Inputs]:
    return stirred(config.build(widths)), given_to(config, widths)


def given_to(config: Config, widths: Widths) -> Inputs:
    found = inputs(widths=widths)
    return found.marked(widths.input["vocab"] - N_MARKS) if isinstance(config, RelaterConfig) else found


def answers(config: Config, model: nn.Module, given: Inputs) -> Tensor:
    """Logits: (B, T, V) of a translator or of what continues its target, (B, C) of a classifier or a
    relater; a tagger's probabilities: (B, 7, C); an answerer's scores to begin and to end: (B, 7, 2)."""
    if isinstance(config, AnswererConfig):
        scores_BT2 = torch.stack(model(tokens(*given.texts, given.segments)), -1)
        shown_BT2 = scores_BT2.masked_fill(scores_BT2.isneginf(), 0.0)
        return nn.functional.pad(shown_BT2, (0, 0, 0, len(LEGAL) - shown_BT2.shape[1]))
    if isinstance(config, TaggerConfig):
        keep_BN = given.words["places"] != NOWHERE
        likely_BNC = model.marginals(model.scores(given.words), keep_BN)
        return nn.functional.pad(likely_BNC, (0, 0, 0, len(LEGAL) - keep_BN.shape[1]))
    if isinstance(config, ClassifierConfig | RelaterConfig):
        return model(tokens(*given.texts))
    if isinstance(config, BertPretrainingConfig):
        return torch.cat(model(hidden(given)), dim=1)
    if isinstance(config, GPTConfig):
        return model(given.target_BT).view(*given.target_BT.shape, -1)
    return model(*given.pairs).view(*given.target_BT.shape, -1)


def hidden(given: Inputs) -> dict[str, Tensor]:
    """Two texts a row, of which the first token is hidden."""
    places_B1 = torch.arange(len(given.lengths_B))[:, None] * given.source_BK.shape[1]
    return {**tokens(*given.texts, given.segments), "places": places_B1}


def loss_of(config: Config, model: nn.Module, given: Inputs) -> Tensor:
    if isinstance(config, AnswererConfig):
        start_BT, end_BT = model(tokens(*given.texts, given.segments))
        first_N = torch.zeros(2 * len(start_BT), dtype=torch.long)
        return nn.functional.cross_entropy(torch.cat([start_BT, end_BT]), first_N)
    if isinstance(config, TaggerConfig):
        legal_N = torch.tensor([TAGS.index(tag) for tag in LEGAL])
        keep_BN = given.words["places"] != NOWHERE
        return model(given.words, legal_N.expand_as(keep_BN).masked_fill(~keep_BN, NO_TAG))
    if isinstance(config, ClassifierConfig | RelaterConfig):
        return nn.functional.cross_entropy(
            model(tokens(*given.texts)), given.target_BT[:, 0] % DIMS.target["classes"]
        )
    if isinstance(config, BertPretrainingConfig):
        (loss, _), scores_B2 = model(hidden(given), smoothed_cross_entropy(given.source_BK[:, 0], 0.0))
        return loss + nn.functional.cross_entropy(scores_B2, given.target_BT[:, 0] % 2)
    keep_BT = torch.arange(given.target_BT.shape[1]) < torch.tensor([5, 2, 1, 3])[:, None]
    labels_N = given.target_BT.roll(1, dims=1)[keep_BT]
    if isinstance(config, GPTConfig):
        return model(given.target_BT, keep_BT, smoothed_cross_entropy(labels_N, 0.1))[0]
    return model(*given.pairs, keep_BT, smoothed_cross_entropy(labels_N, 0.1))[0]


@each(TRANSLATORS | CONTINUERS)
@torch.no_grad()
def test_the_future_does_not_change_the_past(config: Config, widths: Widths) -> None:
    model, given = made(config, widths)
    before_BTV = answers(config, model, given)
    for place in (1, 3):
        other = given.target_BT.clone()
        other[:, place:] = (other[:, place:] + 1) % widths.target["vocab"]
        after_BTV = answers(config, model, Inputs(given.source_BK, given.lengths_B, other))
        torch.testing.assert_close(after_BTV[:, :place], before_BTV[:, :place], rtol=1e-6, atol=1e-6)
        assert (after_BTV[:, place:] - before_BTV[:, place:]).abs().amax(-1).min() > 1e-5


@each(READERS)
@torch.no_grad()
def test_padding_and_company_change_nothing(config: Config, widths: Widths) -> None:
    model, given = made(config, widths)
    together = answers(config, model, given)
    for i in range(len(given.lengths_B)):
        alone = answers(config, model, given.row(i))
        torch.testing.assert_close(together[i : i + 1], alone, rtol=1e-5, atol=1e-5)
    others = given.source_BK.clone()
    absent_BK = torch.arange(others.shape[1]) >= given.lengths_B[:, None]
    others[absent_BK] = (others[absent_BK] + 1) % widths.input["vocab"]
    padded = answers(config, model, Inputs(others, given.lengths_B, given.target_BT))
    torch.testing.assert_close(padded, together, rtol=1e-5, atol=1e-5)


@each(READERS)
@torch.no_grad()
def test_the_last_real_token_counts(config: Config, widths: Widths) -> None:
    """So that the test above cannot pass by ignoring too much."""
    model, given = made(config, widths)
    if isinstance(config, ClassifierConfig) and config.pooling == "first" and config.encoder.kind == "words":
        return
    other = given.source_BK.clone()
    last = (torch.arange(len(other)), given.lengths_B - 1)
    other[last] = (other[last] + 1) % widths.input["vocab"]
    difference = answers(config, model, given) - answers(
        config, model, Inputs(other, given.lengths_B, given.target_BT)
    )
    assert difference.abs().flatten(1).amax(-1).min() > 1e-6


@each(TRANSLATORS)
@torch.no_grad()
def test_stepping_equals_the_whole(config: Config, widths: Widths) -> None:
    model, given = made(config, widths)
    whole_BTV = answers(config, model, given)
    state = model.start(given.sources)
    for place, last_B in enumerate(given.target_BT.unbind(1)):
        logits_BV, state = model.step(last_B, state)
        torch.testing.assert_close(logits_BV, whole_BTV[:, place], rtol=1e-5, atol=1e-5)


@each(TRANSLATORS)
def test_searches_find_the_same_alone_and_in_a_batch(config: Config, widths: Widths) -> None:
    model, given = made(config, widths)
    limits, seeds = [5, 3, 7, 2], [(1,), (2,), (3,), (4,)]
    rules = Rules(3, limits, (0, 1, 2))
    together = hypotheses(beam(model, model.start(given.sources), rules, begin=2, width=2))
    fast = hypotheses(greedy(model, model.start(given.sources), rules, begin=2))
    drawn = hypotheses(sample(model, model.start(given.sources), rules, begin=2, sampler=Sampler(seeds)))
    for i, limit in enumerate(limits):
        alone, rule = given.row(i), replace(rules, limits=[limit])
        (single,) = hypotheses(beam(model, model.start(alone.sources), rule, begin=2, width=2))
        assert [found.ids for found in together[i]] == [found.ids for found in single]
        assert (
            fast[i][0].ids == hypotheses(greedy(model, model.start(alone.sources), rule, begin=2))[0][0].ids
        )
        draw = Sampler([seeds[i]])
        assert (
            drawn[i][0].ids
            == hypotheses(sample(model, model.start(alone.sources), rule, begin=2, sampler=draw))[0][0].ids
        )


@each(MODELS)
@torch.no_grad()
def test_looking_changes_nothing_and_every_site_is_seen(config: Config, widths: Widths) -> None:
    model, given = made(config, widths)
    traces = {name: Trace() for name in sites(model)}
    fused = answers(config, model, given)
    with tapped(model, traces.get):
        torch.testing.assert_close(answers(config, model, given), fused, rtol=1e-5, atol=1e-5)
    n_target = given.target_BT.shape[1]
    for name, trace in traces.items():
        weights_BHQK = trace.weights_BHQK
        looks_at_target = name.startswith(("decoder.", "stack.")) and name.endswith(".self")
        reads_target = looks_at_target or name.startswith(("decoder.", "attention", "copying."))
        n_queries = n_target if reads_target else given.source_BK.shape[1]
        if name.startswith("pooling"):
            n_queries = 1
        assert weights_BHQK.shape[::2] == (len(given.lengths_B), n_queries), name
        unseen = name.startswith("copying.")  # the end mark of a source is not copied
        lengths = [length - unseen for length in given.lengths_B.tolist()]
        if sites(model)[name].scope:  # a reach hides real keys, and all of them from some of the padding
            for row, length in enumerate(lengths):
                n_real = n_queries if looks_at_target else length
                sums_HQ = weights_BHQK[row, :, :n_real].sum(-1)
                torch.testing.assert_close(sums_HQ, torch.ones_like(sums_HQ), msg=name)
            continue
        expected = torch.ones(weights_BHQK.shape[:3])
        expected[[row for row, length in enumerate(lengths) if length == 0]] = 0
        torch.testing.assert_close(weights_BHQK.sum(-1), expected, msg=name)
        for row, length in enumerate(lengths):
            if looks_at_target:
                assert not weights_BHQK[row].triu(1).any(), name
            else:
                assert not weights_BHQK[row, ..., length:].any(), name
                assert (weights_BHQK[row, ..., :length] > 0).all(), name


@each(MODELS)
def test_has_the_sites_it_should(config: Config, widths: Widths) -> None:
    expected = []
    if isinstance(config, TransformerConfig):
        expected += [f"encoder.layers.{i}.self" for i in range(2)]
        expected += [f"decoder.layers.{i}.{kind}" for i in range(2) for kind in ("self", "cross")]
    elif isinstance(config, RNNConfig):
        expected += ["attention"] if config.attention != "none" else []
    elif isinstance(config, GPTConfig):
        expected += [f"stack.layers.{i}.self" for i in range(2)]
    else:
        if config.encoder.kind in ("transformer", "bert"):
            expected += [f"encoder.stack.layers.{i}.self" for i in range(2)]
        if isinstance(config, ClassifierConfig | RelaterConfig) and config.pooling == "attention":
            expected.append("pooling.attention")
    if isinstance(config, TransformerConfig | RNNConfig) and config.copies:
        expected.append("copying.look")
    assert list(sites(config.build(widths))) == expected


class Vocabulary:
    """Stands for a tokenizer where only its size matters."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def save(self, path: Path) -> None:
        path.write_text(str(self.size))

    @classmethod
    def load(cls, path: Path) -> "Vocabulary":
        return cls(int(path.read_text()))


@pytest.fixture
def _plain_vocabularies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.fields.text.Tokenizer", Vocabulary)
    monkeypatch.setattr("regard.tasks.tag.Tokenizer", Vocabulary)
    monkeypatch.setattr("regard.tasks.language_model.Tokenizer", Vocabulary)
    monkeypatch.setattr("regard.tasks.answer.Tokenizer", Vocabulary)


@each({name: model for name, model in MODELS.items() if name not in PRETRAINED})
@pytest.mark.usefixtures("_plain_vocabularies")
def test_comes_back_from_disk_bit_by_bit(config: Config, widths: Widths, tmp_path: Path) -> None:
    model, given = made(config, widths)
    source, target = Vocabulary(widths.input["vocab"]), Vocabulary(widths.target.get("vocab", 0))
    task: Any
    labels = [f"label {i}" for i in range(widths.target.get("classes", 0))]
    if isinstance(config, ClassifierConfig):
        task = Classify.of_vocabulary(ClassifyConfig(max_length=12), source, labels)
    elif isinstance(config, RelaterConfig):
        task = Relation.of_vocabulary(
            RelationConfig(max_length=12), Vocabulary(widths.input["vocab"] - N_MARKS), labels
        )
    elif isinstance(config, TaggerConfig):
        task = Tag.of_vocabulary(TagConfig(max_length=12), source, widths.target["tags"])
    elif isinstance(config, AnswererConfig):
        windows = AnswerConfig(max_length=12, overlap=2, max_question=3)
        task = Answer.of_vocabulary(windows, source, may_be_none=True)
    elif isinstance(config, GPTConfig):
        task = LanguageModel.of_vocabulary(LanguageModelConfig(max_length=12), target)
    else:
        task = Translate.of_vocabularies(
            TranslateConfig(joint=widths.shared, max_length=12),
            source,
            target,  # type: ignore[arg-type]
        )
    save_model(tmp_path / "model", task, task.config, model, config, {})
    with safe_open(tmp_path / "model" / "model.safetensors", "pt") as file:
        assert set(file.keys()) == set(model.state_dict()), "each once, and nothing else"
    _, _, loaded, loaded_config, _ = load_model(tmp_path / "model")
    assert loaded_config == config
    assert not loaded.training
    assert loaded.state_dict().keys() == model.state_dict().keys()
    assert all(torch.equal(loaded.state_dict()[name], tensor) for name, tensor in model.state_dict().items())
    with torch.no_grad():
        assert torch.equal(answers(config, loaded, given), answers(config, model, given))


@each(MODELS)
def test_can_be_built_without_memory_and_begun_afresh(config: Config, widths: Widths) -> None:
    """Every module with weights of its own knows how they begin; none is left as the memory was found."""
    with torch.device("meta"):
        model = config.build(widths)
    model.to_empty(device="cpu")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(torch.nan)
    for name, module in model.named_modules():
        if next(module.parameters(recurse=False), None) is not None:
            assert hasattr(module, "reset_parameters"), f"{name or 'the model itself'} cannot begin afresh"
            module.reset_parameters()
    assert not any(parameter.isnan().any() for parameter in model.parameters())


@each(MODELS)
def test_the_seed_decides_the_loss(config: Config, widths: Widths) -> None:
    given = given_to(config, widths)

    def loss(seed: int) -> float:
        torch.manual_seed(seed)
        changes = {"dropout": 0.3}
        if isinstance(config, EncodingConfig):
            changes["encoder"] = config.encoder.model_copy(update={"dropout": 0.3})
        model = config.model_copy(update=changes).build(widths).train()
        return loss_of(config, model, given).item()

    assert loss(1) == loss(1)
    assert loss(1) != loss(2)


@each(MODELS)
def test_training_computes_what_evaluation_does_but_for_dropout(config: Config, widths: Widths) -> None:
    """Whatever is left out in training because it would only cost time."""
    model, given = made(config, widths)
    for module in model.modules():
        if isinstance(module, Dropout | nn.RNNBase):
            setattr(module, "p" if isinstance(module, Dropout) else "dropout", 0.0)

    def gradients() -> dict[str, Tensor]:
        model.zero_grad()
        loss_of(config, model, given).backward()
        return {name: own.grad.clone() for name, own in model.named_parameters() if own.grad is not None}

    still, learning = gradients(), (model.train(), gradients())[1]
    torch.testing.assert_close(learning, still, rtol=1e-4, atol=1e-5)


class Losing(nn.Module):
    """A model whose forward is its loss."""

    def __init__(self, config: Config, model: nn.Module, given: Inputs) -> None:
        super().__init__()
        self.config, self.model, self.given = config, model, given

    def forward(self) -> Tensor:
        return loss_of(self.config, self.model, self.given)


@each({name: model for name, model in MODELS.items() if name != "transformer-segments"})
def test_gradients_are_those_of_small_differences(config: Config, widths: Widths) -> None:
    """Of all but segments, whose memory nothing is learnt through (tests/attention/test_reach.py)."""
    model, given = made(config, widths)
    model.double()
    names, parameters = zip(*model.named_parameters(), strict=True)
    whole = Losing(config, model, given)

    def loss(flat: Tensor) -> Tensor:
        parts = flat.split([parameter.numel() for parameter in parameters])
        values = {
            f"model.{name}": part.view_as(parameter)
            for name, part, parameter in zip(names, parts, parameters, strict=True)
        }
        return functional_call(whole, values, ())

    flat = torch.cat([parameter.detach().flatten() for parameter in parameters]).requires_grad_()
    assert torch.autograd.gradcheck(loss, flat, fast_mode=True)


@each(MODELS)
def test_every_parameter_learns(config: Config, widths: Widths) -> None:
    model, given = made(config, widths)
    loss_of(config, model.double(), given).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        if name.endswith(".k.bias") and not isinstance(config, RNNConfig):
            continue  # adds the same to every score of a query: softmax cannot see it
        if isinstance(config, AnswererConfig) and name in ("spans.bias", LAST_BIAS):
            continue  # adds the same to every place
        if (
            name.endswith("weight_hh_l1")
            and isinstance(config, ClassifierConfig)
            and config.pooling == "first"
        ):
            continue  # the first state has no past
        assert parameter.grad.abs().max() > 1e-9, name


NAMES: dict[str, tuple[Config, str]] = {
    "transformer": (
        transformer(n_encoder_layers=1, n_decoder_layers=1, norm="pre", tie_embeddings=False),
        """embed_target.weight embed_source.weight
        encoder.layers.0.self.{q,k,v,o}.{weight,bias} encoder.layers.0.self_norm.{weight,bias}
        encoder.layers.0.ff.{inner,outer}.{weight,bias} encoder.layers.0.ff_norm.{weight,bias}
        encoder.norm.{weight,bias}
        decoder.layers.0.self.{q,k,v,o}.{weight,bias} decoder.layers.0.self_norm.{weight,bias}
        decoder.layers.0.cross.{q,k,v,o}.{weight,bias} decoder.layers.0.cross_norm.{weight,bias}
        decoder.layers.0.ff.{inner,outer}.{weight,bias} decoder.layers.0.ff_norm.{weight,bias}
        decoder.norm.{weight,bias} output.weight""",
    ),
    "rnn": (
        rnn(n_layers=2),
        """output_bias embed_target.weight embed_source.weight
        encoder.network.{weight,bias}_{ih,hh}_l{0,1}{,_reverse}
        attention.score.v_HE attention.{q,k}.{weight,bias}
        cells.enter.{weight,bias} cells.extra.weight cells.cells.{0,1}.recur.{weight,bias}
        cells.between.0.{weight,bias} bridge.{weight,bias} combine.{weight,bias} output.weight""",
    ),
    "gpt": (
        gpt(n_layers=1, tie_embeddings=False),
        """embed.weight embed.position.weight
        stack.layers.0.self.{q,k,v,o}.{weight,bias} stack.layers.0.self_norm.{weight,bias}
        stack.layers.0.ff.{inner,outer}.{weight,bias} stack.layers.0.ff_norm.{weight,bias}
        stack.norm.{weight,bias} output.weight""",
    ),
    "classifier": (
        classifier("rnn", n_layers=1),
        """encoder.embed.weight encoder.recurrent.network.{weight,bias}_{ih,hh}_l0{,_reverse}
        pooling.query_D pooling.attention.score.v_HE pooling.attention.k.weight output.{weight,bias}""",
    ),
    "tagger": (
        tagger("rnn", n_layers=1),
        """encoder.embed.weight encoder.recurrent.network.{weight,bias}_{ih,hh}_l0{,_reverse}
        output.{weight,bias} crf.{begin_C,step_CC,end_C}""",
    ),
    "bert-pretraining": (
        to_pretrain(n_layers=1),
        """encoder.embed.weight encoder.embed.position.weight encoder.segment.weight
        encoder.embed_norm.{weight,bias}
        encoder.stack.layers.0.self.{q,k,v,o}.{weight,bias} encoder.stack.layers.0.self_norm.{weight,bias}
        encoder.stack.layers.0.ff.{inner,outer}.{weight,bias} encoder.stack.layers.0.ff_norm.{weight,bias}
        pooling.dense.{weight,bias} hidden.{weight,bias} hidden_norm.{weight,bias} output_bias
        follows.{weight,bias}""",
    ),
    "relater": (
        relater("rnn", encoder={"kind": "rnn", "n_layers": 1}),
        """encoder.embed.{weight,marks} encoder.recurrent.network.{weight,bias}_{ih,hh}_l0{,_reverse}
        pooling.query_D pooling.attention.score.v_HE pooling.attention.k.weight hidden.{weight,bias}
        output.{weight,bias}""",
    ),
    "bert": (
        classifier("bert", "pooler", n_layers=1),
        """encoder.embed.weight encoder.embed.position.weight encoder.segment.weight
        encoder.embed_norm.{weight,bias}
        encoder.stack.layers.0.self.{q,k,v,o}.{weight,bias} encoder.stack.layers.0.self_norm.{weight,bias}
        encoder.stack.layers.0.ff.{inner,outer}.{weight,bias} encoder.stack.layers.0.ff_norm.{weight,bias}
        pooling.dense.{weight,bias} output.{weight,bias}""",
    ),
}


def spelt_out(pattern: str) -> Iterator[str]:
    """a.{b,c} → a.b, a.c: as a shell does it."""
    head, brace, rest = pattern.partition("{")
    if not brace:
        yield head
        return
    choices, _, tail = rest.partition("}")
    for choice in choices.split(","):
        yield from spelt_out(head + choice + tail)


@pytest.mark.parametrize(("config", "names"), NAMES.values(), ids=NAMES.keys())
def test_weights_keep_their_names(config: Config, names: str) -> None:
    """Checkpoints of users depend on them: a change here needs a new format_version."""
    expected = {name for pattern in names.split() for name in spelt_out(pattern)}
    assert set(config.build(DIMS).state_dict()) == expected


@each(MODELS)
def test_names_are_paths_in_the_bare_model(config: Config, widths: Widths) -> None:
    model = config.build(widths)
    counted = {name for name, _ in model.named_buffers() if name.startswith("ngrams.")}
    assert [name for name in model.state_dict() if name not in counted] == [
        name for name, _ in model.named_parameters()
    ]
    for name in model.state_dict():
        assert name in counted or model.get_parameter(name).requires_grad
        assert not {"module", "_orig_mod", "_fsdp_wrapped_module"} & set(name.split("."))
