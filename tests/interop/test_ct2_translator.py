"""CTranslate2 as the engine: the same answers, what it cannot do, and who says so."""

import tempfile
from pathlib import Path
from typing import Any

import ctranslate2
import pytest
import torch
from torch import Tensor

from regard.api.trained import Trained
from regard.decode import DecodeConfig
from regard.errors import RecipeError, RunError
from regard.interop import ct2
from regard.interop.ct2_translator import EngineChoice
from regard.text.tokenizer import BOS, EOS, PAD, UNK
from tiny import classifier, rnn, transformer, untrained

CPU = torch.device("cpu")
TEXTS = [
    "the grey heron stands still",
    "fog lies on the river",
    "fog",
    "  ",
    "the river stands on the heron " * 3,
    *(f"grey fog {'still ' * n}" for n in range(20)),
]


def with_ct2(own: Trained, wanted: Any = "ct2", **how: Any) -> Trained:
    engines = EngineChoice.resolve(wanted, own.task, own.model, own.model_config, CPU, **how)
    return Trained(own.task, own.task_config, own.model, own.model_config, {}, CPU, engines)


def closing_first(own: Trained) -> Trained:
    """With no share of the probabilities for marks that are never written, as CTranslate2 has it."""
    step = own.model.step

    def closed(last_B: Tensor, state: Any) -> tuple[Tensor, Any]:
        logits_BV, state = step(last_B, state)
        return logits_BV.index_fill(1, torch.tensor([PAD, UNK, BOS]), -torch.inf), state

    own.model.step = closed  # type: ignore[method-assign, assignment]
    return own


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize(("beam", "n_best"), [(1, 1), (4, 1), (4, 4)])
def test_answers_as_the_search_of_our_own(norm: str, beam: int, n_best: int) -> None:
    torch.manual_seed(3)
    own = closing_first(untrained(transformer(norm=norm)))
    ct2 = with_ct2(own)
    search = {"beam": beam, "n_best": n_best, "length_penalty": 0.7}
    ours, theirs = own.predict(TEXTS, **search), ct2.predict(TEXTS, **search)
    assert ct2.answered_by(**search).startswith("CTranslate2 ")
    alike = [(one, other) for one, other in zip(ours, theirs, strict=True) if one.ids == other.ids]
    assert len(alike) >= (len(TEXTS) if beam == 1 else 0.8 * len(TEXTS)), "it may end its beams earlier"
    for one, other in alike:
        never_ended = len(one.ids) + 1 >= own.task_config.decode.limit(0)
        assert other.score == pytest.approx(one.score, abs=0.2 if never_ended else 1e-3)


@pytest.mark.parametrize("beam", [1, 3])
def test_unscored_answers_are_the_same(beam: int) -> None:
    """A beam has scores in any case; alone they are left out, and said to be."""
    torch.manual_seed(3)
    own = closing_first(untrained(transformer()))
    texts = [text for text in TEXTS if text.strip()]
    for trained in (own, with_ct2(own)):
        scored, plain = (trained.predict(texts, beam=beam, scores=wanted) for wanted in (True, False))
        assert [one.ids for one in plain] == [one.ids for one in scored]
        assert all((one.score is None) == (beam == 1) for one in plain)
        assert ("score" in plain[0].to_json()) == (beam > 1)
    with pytest.raises(RecipeError, match=r"n_best \(2\) needs scores"):
        own.predict(texts, n_best=2, scores=False)


def test_each_answer_comes_with_its_place() -> None:
    ct2 = with_ct2(untrained(transformer()))
    assert ct2.predict(TEXTS, beam=2) == [answer for _, answer in sorted(ct2.as_completed(TEXTS, beam=2))]


@pytest.mark.parametrize("beam", [1, 3])
def test_what_is_too_long_for_its_own_text_is_cut_where_ours_is(beam: int) -> None:
    """Though it is asked about together with longer texts, whose answers may be longer."""
    own = closing_first(untrained(transformer()))
    search = {"beam": beam, "max_ratio": 0.5, "length_penalty": 0.0}
    ours, theirs = own.predict(TEXTS, **search), with_ct2(own).predict(TEXTS, **search)
    cut = {
        place
        for place, text in enumerate(TEXTS)
        if len(ours[place].ids) + 1
        == own.task.with_settings(**search).config.decode.limit(len(text.split()) + 1)
    }
    assert len(cut) > 10, "the model seldom ends by itself"
    assert all(len(theirs[place].ids) <= len(ours[place].ids) for place in cut)
    if beam == 1:
        assert [answer.ids for answer in theirs] == [answer.ids for answer in ours]


def test_a_text_as_long_as_may_be_is_answered_too() -> None:
    """Neither engine has places beyond max_length, whatever max_ratio allows."""
    own = untrained(transformer())
    longest = "fog " * 199
    assert len(with_ct2(own).predict(longest, beam=2).ids) < 200


@pytest.mark.parametrize("position", ["sinusoidal", "none"])
def test_a_folder_answers_beyond_the_length_of_the_training(tmp_path: Path, position: str) -> None:
    """As CTranslate2 does by itself, which knows no max_length: as if the model went on."""
    own = untrained(transformer(position=position), max_length=16)
    names = own.task.target.tokenizer.names
    ct2.write(own.task, own.model, own.model_config, tmp_path)
    engine = ctranslate2.Translator(str(tmp_path), inter_threads=1, intra_threads=1)
    ids = torch.randint(4, len(names), (101,), generator=torch.Generator().manual_seed(2))
    source = own.task.source.tokenizer.encode("fog lies").ids
    texts = [own.task.source.tokenizer.names[i] for i in source] + ["</s>"]
    (answer,) = engine.translate_batch([texts], beam_size=1, min_decoding_length=230)
    assert len(answer.hypotheses[0]) >= 230
    (scored,) = engine.score_batch([texts], [[names[i] for i in ids]])
    target_BT = torch.tensor([[BOS, *ids.tolist()]])
    inputs = {"ids": torch.tensor([[*source, EOS]]), "lengths": torch.tensor([len(texts)])}
    logits_BTV = own.model(inputs, target_BT)
    expected_T = (
        logits_BTV.flatten(0, -2).log_softmax(-1).gather(1, torch.tensor([[*ids.tolist(), EOS]]).T)[:, 0]
    )
    assert scored.log_probs == pytest.approx(expected_T.tolist(), abs=1e-3)


@pytest.mark.parametrize("engine", ["builtin", "ct2"])
def test_what_is_longer_than_the_model_can_write_is_refused(engine: str) -> None:
    trained = with_ct2(untrained(transformer()), engine)
    with pytest.raises(RecipeError, match=r"decode\.min_length: 200 tokens .*\(199, one less than task"):
        trained.predict("fog", beam=1, min_length=200)


def test_an_answer_may_be_forced_to_be_longer_than_its_source_allows() -> None:
    ct2 = with_ct2(untrained(transformer()))
    assert len(ct2.predict("fog", beam=1, min_length=30, max_ratio=0.5).ids) >= 30


@pytest.mark.parametrize(
    "decode",
    [
        {"sample": True},
        {"prefix": "llits"},
        {"must_not": ["fog"]},
        {"must_include": ["llits"]},
        {"no_repeat": 2},
        {"repetition_penalty": 1.2},
        {"groups": 2},
        {"batch_invariant": True},
    ],
)
def test_settings_of_our_own_are_never_dropped(decode: dict[str, Any]) -> None:
    own = untrained(transformer())
    (name,) = decode
    assert with_ct2(own, "auto").predict(TEXTS, **decode) == own.predict(TEXTS, **decode)
    assert with_ct2(own, "auto").answered_by(**decode) == f"regard (CTranslate2 has no {name})"
    with pytest.raises(RecipeError, match=f"decode.{name}: CTranslate2 has no such setting"):
        with_ct2(own).predict(TEXTS, **decode)


def test_every_setting_was_thought_of() -> None:
    """A new setting of the search is our own until somebody says otherwise."""
    honoured = {"scores", "beam", "n_best", "length_penalty", "min_length", "max_length", "max_ratio"}
    ct2 = with_ct2(untrained(transformer())).engines.ct2
    assert ct2 is not None
    for name, field in DecodeConfig.model_fields.items():
        changed = DecodeConfig.model_construct(**{name: object()})
        assert (ct2.unsupported(changed) is None) == (name in honoured), (name, field)


@pytest.mark.parametrize("config", [rnn(), classifier("rnn"), transformer(position="alibi")])
def test_a_model_without_a_counterpart(config: Any) -> None:
    own = untrained(config)
    with pytest.raises(RunError, match=r"ct2: .*CTranslate2"):
        with_ct2(own)
    auto = with_ct2(own, "auto")
    assert auto.answered_by().startswith("regard (")
    assert auto.predict("fog") == own.predict("fog")


def test_int8_rounds() -> None:
    own = untrained(transformer())
    rounded = with_ct2(own, int8=True)
    assert rounded.answered_by().endswith("int8")
    assert len(rounded.predict(TEXTS)) == len(TEXTS)
    with pytest.raises(RunError, match="int8: only CTranslate2 supports int8"):
        with_ct2(own, "builtin", int8=True)


def test_no_room_for_its_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> None:
        raise OSError(28, "No space left on device")

    own = untrained(transformer())
    monkeypatch.setattr(tempfile, "TemporaryDirectory", full)
    with pytest.raises(RunError, match=r"ct2: .* cannot be written \(No space left on device\); make room"):
        with_ct2(own)
    assert with_ct2(own, "auto").answered_by().startswith("regard (the temporary folder that hands")


def test_an_engine_nobody_knows() -> None:
    with pytest.raises(RunError, match="engine ct: unknown; did you mean ct2"):
        with_ct2(untrained(transformer()), "ct")
