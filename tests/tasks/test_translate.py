"""Translation: what an example, a batch, a loss and a prediction are."""

from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch.nn import functional as F

from regard.data.example import Example
from regard.decode import contains, in_order
from regard.errors import CheckpointError, RecipeError
from regard.fields.axis import Axis
from regard.files.row import Row
from regard.models import Widths
from regard.tasks import Translate, TranslateConfig
from regard.tasks.task import evaluating
from regard.text.tokenizer import BOS, EOS, PAD, UNK
from tiny import endless, rnn, stirred, transformer

LINES = [
    ("the grey heron stands", "der graue reiher steht"),
    ("the heron flies away", "der reiher fliegt fort"),
    ("the grey fog stands", "der graue nebel steht"),
    ("away flies the fog", "fort fliegt der nebel"),
    ("我们 看见 the heron", "wir sehen den reiher"),
]


def row(source: str, target: str | None = None, line: int = 1) -> Row:
    return Row({"source": source} | ({} if target is None else {"target": target}), "pairs.tsv", line)


def fitted(kind: str = "word", **changes: Any) -> Translate:
    size = 400 if kind in ("bpe", "unigram") else 60
    tokenizer = {"kind": kind, "vocab_size": size, "min_frequency": 1}
    config = TranslateConfig.model_validate({"tokenizer": tokenizer, "max_length": 6} | changes)
    return Translate.fit(config, [row(*line) for line in LINES])


@pytest.fixture
def task() -> Translate:
    return fitted()


def test_the_data_decides_the_sizes(task: Translate) -> None:
    assert task.widths == Widths({"vocab": len(task.source.tokenizer)}, {"vocab": len(task.target.tokenizer)})
    joint = fitted(joint=True)
    assert joint.source.tokenizer is joint.target.tokenizer
    assert joint.widths == Widths(
        {"vocab": len(joint.source.tokenizer)}, {"vocab": len(joint.source.tokenizer)}, shared=True
    )
    assert len(joint.source.tokenizer) > max(len(task.source.tokenizer), len(task.target.tokenizer))
    assert joint.tokenizers == {"source": joint.source.tokenizer, "target": joint.target.tokenizer}


def test_an_example_is_marked_at_its_ends(task: Translate) -> None:
    (pair,) = task.encode([row(*LINES[0])])
    assert task.source_ids(pair) == [*task.source.tokenizer.encode(LINES[0][0]).ids, EOS]
    assert pair.arrays["target"].tolist() == [BOS, *task.target.tokenizer.encode(LINES[0][1]).ids, EOS]
    assert task.size(pair) == (5, 5)


def test_an_unknown_target_is_only_begun(task: Translate) -> None:
    (pair,) = task.encode([row("the fog")])
    assert pair.arrays["target"].tolist() == [BOS]
    assert task.size(pair) == (3, 1)


@pytest.mark.parametrize(
    ("n_source", "n_target", "why"),
    [(3, 3, None), (6, 6, None), (7, 3, "too long"), (3, 7, "too long"), (0, 3, "empty"), (3, 0, "empty")],
)
def test_pairs_longer_than_the_limit_or_empty_are_not_learnt_from(
    task: Translate, n_source: int, n_target: int, why: str | None
) -> None:
    """The limit, 6, counts pieces of text and not the marks around them."""
    (pair,) = task.encode([row("the " * n_source, "der " * n_target)])
    assert task.unusable(pair) == why
    assert task.is_answerable(pair) is (n_source > 0)
    assert len(task.source_ids(pair)) == min(n_source, 6) + 1, (
        "what is too long is cut, for prediction and validation"
    )
    assert len(pair.arrays["target"]) == min(n_target, 6) + 2


def test_a_batch_is_padded_and_shifted(task: Translate) -> None:
    pairs = task.encode([row("the fog", "der nebel steht fort"), row("the grey fog stands", "fort")])
    batch = task.collate(pairs)
    assert batch.inputs["ids"].shape == (2, 5)
    assert batch.inputs["lengths"].tolist() == [3, 5]
    assert batch.inputs["ids"][0, 3:].tolist() == [PAD, PAD]
    for example, reads, says in zip(pairs, batch.target_BT.tolist(), batch.labels_BT.tolist(), strict=True):
        length = len(example.arrays["target"]) - 1
        assert reads[:length] == example.arrays["target"][:-1].tolist()
        assert says[:length] == example.arrays["target"][1:].tolist()
        assert not any(reads[length:] + says[length:])
    assert batch.counts == {"tokens": 5 + 2}
    assert batch.keep_BT.sum(1).tolist() == [5, 2]
    assert batch.to(torch.device("cpu")).examples == tuple(pairs)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("config", [transformer(), rnn()], ids=["transformer", "rnn"])
def test_the_loss_is_a_sum_over_real_tokens(config: Any, smoothing: float) -> None:
    task = fitted(label_smoothing=smoothing)
    model = stirred(config.build(task.widths))
    batch = task.collate(task.encode([row(*line) for line in LINES[:2]] + [row("fog", "nebel")]))
    loss = task.loss(model, batch)
    logits_NV = model(batch.inputs, batch.target_BT)
    options = {"reduction": "sum", "ignore_index": PAD}
    labels_N = batch.labels_BT.flatten()
    expected = F.cross_entropy(logits_NV, labels_N, label_smoothing=smoothing, **options)
    torch.testing.assert_close(loss.parts["tokens"].sum, expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(
        loss.shown["tokens"], F.cross_entropy(logits_NV, labels_N, **options), rtol=1e-5, atol=1e-5
    )
    assert not loss.shown["tokens"].requires_grad
    torch.testing.assert_close(loss.objective({"tokens": 12}), expected / 12, rtol=1e-5, atol=1e-5)


def predicted(task: Translate, texts: list[str], config: Any = None) -> tuple[Any, list[Any], list[Example]]:
    model = stirred((config or transformer()).build(task.widths))
    examples = task.encode([row(text) for text in texts])
    with evaluating(model):
        return model, in_order(task.predict(model, task.collate(examples))), examples


def test_predictions_keep_their_order_and_an_empty_line_stays_empty(task: Translate) -> None:
    texts = ["the fog", "", "the grey heron stands", "heron"]
    _, together, _ = predicted(task, texts)
    assert (together[1].text, together[1].ids) == ("", ())
    assert together[1].to_json() == {"text": "", "score": 0.0}
    for text, found in zip(texts, together, strict=True):
        torch.manual_seed(20170612)
        _, (alone,), _ = predicted(task, [text])
        assert alone.ids == found.ids
        assert alone.score == pytest.approx(found.score, abs=1e-4)


@pytest.mark.parametrize("beam", [1, 3])
def test_no_prediction_is_longer_than_the_limit(beam: int) -> None:
    task = fitted(decode={"beam": beam, "max_ratio": 1.0})
    model = stirred(transformer().build(task.widths))
    with torch.no_grad():
        model.embed_target.weight[EOS] = 0  # makes the end unlikely
        model.embed_target.weight[4:] *= 3
    with evaluating(model):
        found = in_order(task.predict(model, task.collate(task.encode([row("the fog"), row("the " * 50)]))))
    assert all(len(one.ids) <= 5 for one in found)
    assert any(len(one.ids) == 5 for one in found)


def test_special_pieces_are_never_predicted(task: Translate) -> None:
    model = stirred(transformer().build(task.widths))
    with torch.no_grad():
        model.embed_target.weight[[PAD, UNK, BOS]] = 5.0
    for beam in (1, 3):
        with evaluating(model):
            (found,) = in_order(
                task.with_settings(beam=beam).predict(model, task.collate(task.encode([row("the fog")])))
            )
        assert not {PAD, UNK, BOS, EOS} & set(found.ids)


def test_the_n_best_are_given_best_first(task: Translate) -> None:
    _, (found,), _ = predicted(task.with_settings(beam=5, n_best=4), ["the grey fog"])
    scores = [found.score, *(other.score for other in found.others)]
    assert len(scores) == 4
    assert scores == sorted(scores, reverse=True)
    assert len({found.ids, *(other.ids for other in found.others)}) == 4
    shown = found.to_json()
    assert [len(shown["others"]), *shown] == [3, "text", "score", "others"]


@pytest.mark.parametrize("kind", ["word", "bpe", "unigram", "char", "wordpiece"])
@pytest.mark.parametrize("config", [transformer(), rnn()], ids=["transformer", "rnn"])
def test_what_is_asked_of_an_answer_is_kept(kind: str, config: Any) -> None:
    task = fitted(kind, max_length=40)
    texts = ["the grey fog", "我们 看见 the heron", "heron"]
    for settings in ({"beam": 1}, {"beam": 4}, {"beam": 4, "groups": 2}, {"sample": True, "n_best": 3}):
        _, found, _ = predicted(task.with_settings(prefix="der nebel", **settings), texts, config)
        assert all(one.text.startswith("der nebel") for one in found)
        plain = predicted(task.with_settings(**settings), texts, config)[1]
        words = sorted({word for one in plain for word in one.text.split() if word.isalpha()})[:3]
        if words:
            _, found, _ = predicted(task.with_settings(must_not=words, **settings), texts, config)
            for one in found:
                assert not any(contains(one.text, word) for word in words), (one.text, words)
        _, found, _ = predicted(task.with_settings(min_length=5, max_length=7, **settings), texts, config)
        assert all(5 <= len(one.ids) <= 7 for one in found)
    phrases = ("nebel", "graue reiher")
    _, found, _ = predicted(task.with_settings(must_include=phrases, beam=3, n_best=2), texts, config)
    for one in (one for best in found for one in (best, *best.others)):
        assert all(contains(one.text, phrase) for phrase in phrases), one.text


@pytest.mark.parametrize("phrase", ["Ω", "naïf", "😀", "der Ω nebel", "naïf😀"])
@pytest.mark.parametrize("config", [transformer(), rnn()], ids=["transformer", "rnn"])
def test_a_word_that_bytes_spell_is_still_a_word(phrase: str, config: Any) -> None:
    """Not the beginning of another, as Ωs has Ω in it but does not say it."""
    task = fitted("bpe", max_length=40).with_settings(must_include=[phrase], beam=4, n_best=4)
    texts = ["the grey fog", "我们 看见 the heron", "heron", "the heron flies away"]
    for _ in range(3):
        _, found, _ = predicted(task, texts, config)
        for one in (one for best in found for one in (best, *best.others)):
            assert contains(one.text, phrase), one.text


def test_what_the_vocabulary_cannot_write_need_not_be_excluded(task: Translate) -> None:
    _, plain, _ = predicted(task, ["the grey fog"])
    torch.manual_seed(20170612)
    _, found, _ = predicted(task.with_settings(must_not=["zzz", "der zzz"]), ["the grey fog"])
    assert found[0].text != "" or plain[0].text == ""


@pytest.mark.parametrize(
    "settings",
    [
        {"beam": 1},
        {"beam": 4, "n_best": 3},
        {"beam": 4, "groups": 2, "n_best": 4},
        {"sample": True, "n_best": 3, "temperature": 2.0},
        {"beam": 3, "must_include": ["nebel"], "must_not": ["reiher"]},
    ],
    ids=str,
)
def test_each_prediction_comes_once_and_when_its_search_has_ended(settings: dict[str, Any]) -> None:
    task = fitted(max_length=40).with_settings(**settings)
    model = endless(stirred(rnn().build(task.widths)))
    batch = task.collate(task.encode([row(text) for text in ("the grey fog", "", "heron", "the heron " * 9)]))
    with evaluating(model):
        answers = list(task.predict(model, batch))
    assert [place for place, _ in answers] == [1, 2, 0, 3], "the shortest first"
    assert [answer.text == "" for answer in in_order(answers)] == [False, True, False, False]


def test_what_breaks_a_promise_is_refused_and_is_no_answer(task: Translate) -> None:
    torn = task.with_settings(must_include=["der der"], no_repeat=1, beam=2)
    model = stirred(rnn().build(torn.widths))
    batch = torn.collate(torn.encode([row("the fog")]))
    with (
        evaluating(model),
        pytest.raises(RecipeError, match=r"must_include: the other settings .* leave no way to write it"),
    ):
        next(torn.predict(model, batch))


def test_draws_are_the_texts_own(task: Translate) -> None:
    texts = ["the grey fog", "heron", "the fog", "the heron flies away"]
    drawing = task.with_settings(sample=True, n_best=3, temperature=2.0)
    model, together, _ = predicted(drawing, texts)
    assert len({one.ids for best in together for one in (best, *best.others)}) > 4
    with evaluating(model):
        for text, found in zip(texts, together, strict=True):
            (alone,) = in_order(drawing.predict(model, drawing.collate(drawing.encode([row(text)]))))
            assert [alone.ids, *(one.ids for one in alone.others)] == [
                found.ids,
                *(one.ids for one in found.others),
            ]
        other = in_order(
            drawing.with_settings(seed=1).predict(model, drawing.collate(drawing.encode([row(texts[0])])))
        )
    assert other[0].ids != together[0].ids or other[0].others != together[0].others


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"prefix": "der nebel steht fort der nebel"},
            r"prefix: has 6 tokens, an output may have 5 here; shorten it, as .* than task\.max_length$",
        ),
        ({"prefix": "der nebel", "must_not": "nebel"}, r"decode\.prefix: contains 'nebel'"),
        ({"must_include": "der nebel", "must_not": "nebel"}, r"must_include: 'der nebel' contains 'nebel'"),
        ({"must_include": "zzz"}, r"must_include: 'zzz' has characters the vocabulary does not know"),
        (
            {"must_include": ["der graue reiher", "wir sehen den"]},
            r"must_include: needs 6 tokens where 5 are left; ask for less, as .* than task\.max_length$",
        ),
        (
            {"must_include": "der graue reiher", "max_length": 2},
            r"needs 3 tokens where 2 .* raise max_length$",
        ),
        ({"prefix": "der graue reiher", "max_length": 2}, r"has 3 tokens, .* 2 here; .* raise max_length$"),
    ],
)
def test_what_cannot_be_kept_is_refused(task: Translate, settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(RecipeError, match=sentence):
        predicted(task.with_settings(**settings), ["the fog"])


def test_a_blank_text_asks_for_nothing_that_could_be_too_much() -> None:
    long = "the grey heron stands away flies the fog"
    task = fitted(max_length=40).with_settings(prefix="der graue reiher steht " * 3)
    with pytest.raises(RecipeError, match=r"prefix: has 12 tokens, an output may have 10 .* max_ratio$"):
        predicted(task.with_settings(max_ratio=0.5), [long, "fog"])
    _, (blank, found, other), _ = predicted(task.with_settings(max_ratio=0.5), ["", long, long])
    assert blank.text == ""
    assert found == other
    assert found.text.startswith("der graue reiher steht der graue")


@pytest.mark.parametrize("thorough", [True, False])
@pytest.mark.parametrize("decode", [{"prefix": "der graue reiher steht " * 3}, {"must_include": "der " * 12}])
def test_a_short_source_ends_no_training(decode: dict[str, Any], thorough: bool) -> None:
    """What is only scored has room for what is asked of it."""
    task = fitted(max_length=40, decode={"max_ratio": 0.5} | decode)
    model, batch = stirred(rnn().build(task.widths)), task.collate(task.encode([row("fog", "nebel")]))
    with evaluating(model):
        with pytest.raises(RecipeError, match=r"12 tokens.* raise max_ratio$"):
            in_order(task.predict(model, batch))
        (written,) = task.texts(model, batch, thorough=thorough)
        (sample,) = task.samples(model, batch.examples, batch.target_BT.device)
        task.measure(model, batch, thorough=thorough)
    wanted = (decode.get("prefix") or decode["must_include"]).strip()
    assert wanted in written
    assert (sample["input"], sample["expected"]) == ("fog", "nebel")
    assert wanted in sample["answer"]


@pytest.mark.parametrize(
    ("decode", "sentence"),
    [
        ({"prefix": "der nebel steht fort der nebel"}, r"prefix: has 6 tokens, an output may have 5"),
        ({"must_include": "der graue reiher", "max_length": 2}, r"needs 3 tokens where 2 .* max_length$"),
        ({"must_include": "zzz"}, r"must_include: 'zzz' has characters the vocabulary does not know"),
    ],
)
def test_what_no_answer_can_keep_is_refused_before_training(decode: dict[str, Any], sentence: str) -> None:
    with pytest.raises(RecipeError, match=sentence):
        fitted(decode=decode)


def test_an_answer_must_have_room_for_its_least_length() -> None:
    assert TranslateConfig.model_validate({"max_length": 64, "decode": {"min_length": 63}})
    with pytest.raises(ValidationError, match=r"min_length \(64\) must be less than max_length \(64\)"):
        TranslateConfig.model_validate({"max_length": 64, "decode": {"min_length": 64}})


def test_another_search_is_another_task(task: Translate) -> None:
    changed = task.with_settings(beam=2, length_penalty=0.5)
    assert (changed.config.decode.beam, changed.config.decode.length_penalty) == (2, 0.5)
    assert task.config.decode.beam == 4
    for settings, sentence in [
        ({"baem": 3}, r"decode\.baem: unknown; did you mean beam\?"),
        ({"beam": 0}, r"decode\.beam: 0 should be greater than or equal to 1"),
        ({"beam": 2, "n_best": 3}, r"n_best \(3\) cannot exceed beam \(2\)"),
        ({"beam": "many"}, r"decode\.beam: 'many' should be a valid integer"),
        ({"groups": 3}, r"groups \(3\) must divide beam \(4\)"),
        ({"groups": 2, "sample": True}, "sample and groups exclude each other"),
        ({"must_include": ["a"], "beam": 1}, "must_include needs a beam of at least 2"),
        ({"must_not": [""]}, r"decode\.must_not\.0: '' "),
        ({"min_length": 9, "max_length": 5}, r"min_length \(9\) exceeds max_length \(5\)"),
        ({"repetition_penalty": 1e-300}, r"decode\.repetition_penalty: 1e-300 should be greater"),
        ({"temperature": 1e-320, "sample": True}, r"decode\.temperature: 1e-320 should be greater"),
        ({"top_p": 0.9}, r"decode\.top_p: 0\.9 is for sampling; add sample=true"),
        ({"must_not": "[" * 100_000}, r"decode\.must_not: .{1,70} is not a list in JSON"),
        ({"seed": "9" * 50}, r"^decode\.seed: 9{12}… is too large"),
        ({"beam": "9" * 10_000}, r"^decode\.beam: .{1,300}$"),
    ]:
        with pytest.raises(RecipeError, match=sentence):
            task.with_settings(**settings)


@pytest.mark.parametrize("config", [transformer(), rnn(), rnn(attention="none")], ids=str)
def test_a_replay_tells_what_the_search_had_found(task: Translate, config: Any) -> None:
    model, predictions, examples = predicted(
        task.with_settings(length_penalty=0.0), ["the grey fog", "heron"], config
    )
    for example, prediction in zip(examples, predictions, strict=True):
        with evaluating(model):
            told_1T = task.replay(model, task.force(example, prediction))
        assert told_1T.shape == (1, len(prediction.ids) + 1)
        assert told_1T.sum().item() == pytest.approx(prediction.score, abs=1e-4)


def test_leaving_out_takes_away_each_piece_once(task: Translate) -> None:
    (example,) = task.encode([row("the grey fog")])
    _, (prediction,), _ = predicted(task, ["the grey fog"])
    forced = task.force(example, prediction)
    batch = task.leave_out(forced, Axis("text", ()), range(3))
    the, grey, fog, end = task.source_ids(example)
    assert batch.inputs["ids"].tolist() == [[grey, fog, end], [the, fog, end], [the, grey, end]]
    assert batch.inputs["lengths"].tolist() == [3, 3, 3]
    assert batch.target_BT.shape == batch.labels_BT.shape == (3, len(prediction.ids) + 1)
    assert (
        task.leave_out(forced, Axis("text", ()), range(1, 3)).inputs["ids"].tolist()
        == batch.inputs["ids"][1:].tolist()
    )


@pytest.mark.parametrize("joint", [True, False])
def test_comes_back_from_disk(joint: bool, tmp_path: Path) -> None:
    task = fitted(joint=joint)
    task.save(tmp_path)
    loaded = Translate.load(task.config, tmp_path)
    assert loaded.widths == task.widths
    before, after = (one.encode([row(*line) for line in LINES]) for one in (task, loaded))
    assert all(
        task.source_ids(a) == task.source_ids(b)
        and a.arrays["target"].tolist() == b.arrays["target"].tolist()
        for a, b in zip(before, after, strict=True)
    )


def test_a_missing_tokenizer_is_said(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"source.tokenizer\.json: cannot be read"):
        Translate.load(TranslateConfig(), tmp_path)


def test_tallies_add_up(task: Translate) -> None:
    model = stirred(transformer().build(task.widths))
    examples = task.encode([row(*line) for line in LINES])
    with evaluating(model):
        whole = task.measure(model, task.collate(examples), thorough=True)
        parts = [task.measure(model, task.collate([example]), thorough=True) for example in examples]
    total = parts[0] + parts[1] + parts[2] + parts[3] + parts[4]
    assert total == whole
    assert total.metrics() == whole.metrics()
    assert set(whole.signatures()) == {"bleu", "chrf"}
