"""Tagging: words and their pieces, windows, losses, predictions and what is refused."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.decode import in_order
from regard.errors import CheckpointError, DataError, RecipeError
from regard.fields.axis import Axis
from regard.files.row import Row
from regard.models import Tagger, Widths
from regard.tasks import Tag, TagConfig
from regard.tasks.tag import TagTally
from regard.tasks.task import evaluating
from regard.text.tokenizer import EOS, UNK
from regard.training.evaluate import evaluate
from tiny import stirred, tagger

LINES = [
    ("Anna Berg lives in Rome", "B-PER I-PER O O B-LOC"),
    ("she lives", "O O"),
    ("Rome and Bergen", "B-LOC O B-LOC"),
]


def row(text: str, tags: str | None = None, line: int = 1) -> Row:
    return Row({"text": text} | ({} if tags is None else {"tags": tags}), "names.conll", line)


def fitted(lines: list[tuple[str, str]] = LINES, **changes: Any) -> Tag:
    tokenizer = {"kind": "word", "vocab_size": 60, "min_frequency": 1}
    config = TagConfig.model_validate({"tokenizer": tokenizer, "max_length": 8} | changes)
    return Tag.fit(config, [row(*line, number) for number, line in enumerate(lines, 2)])


def model_for(task: Tag, kind: str = "rnn", **changes: Any) -> Tagger:
    torch.manual_seed(2)
    model = stirred(tagger(kind, **changes).build(task.widths))
    assert isinstance(model, Tagger)
    return model


@pytest.fixture
def task() -> Tag:
    return fitted()


def test_tags_are_sorted_and_their_scheme_decides_the_metric(task: Tag) -> None:
    assert task.labels == ("B-LOC", "B-PER", "I-PER", "O")
    assert fitted(LINES[::-1]).labels == task.labels
    assert (task.tags.scheme, task.metric.name) == ("BIO", "f1")
    assert task.widths == Widths({"vocab": len(task.tokenizer)}, {"tags": [*task.labels]})
    spoken = fitted([("she lives", "PRON VERB")])
    assert (spoken.tags.scheme, spoken.metric.name) == (None, "accuracy")


def test_a_word_is_its_first_piece() -> None:
    task = fitted(tokenizer={"kind": "char", "vocab_size": 60, "min_frequency": 1})
    batch = task.collate(task.encode([row("in Rome", "O B-LOC")]))
    assert batch.inputs["ids"].tolist() == [[*task.tokenizer.ids(["inRome"])[0], EOS]]
    assert batch.inputs["places"].tolist() == [[0, 2]]
    assert [task.labels[tag] for tag in batch.tags_BN[0]] == ["O", "B-LOC"]
    assert batch.counts == {"words": 2}


def test_a_batch_is_padded(task: Tag) -> None:
    batch = task.collate(task.encode([row("she lives"), row("Rome and Bergen")]))
    assert batch.inputs["lengths"].tolist() == [3, 4]
    assert batch.keep_BN.tolist() == [[True, True, False], [True, True, True]]
    assert (
        batch.inputs["ids"].flatten()[batch.inputs["places"][1]].tolist()
        == batch.inputs["ids"][1, :3].tolist()
    )


def test_a_long_sentence_is_read_in_windows_and_decoded_as_a_whole(task: Tag) -> None:
    (example,) = task.encode([row("Anna Berg lives in Rome and " * 4 + "lives")])
    batch = task.collate([example])
    assert batch.inputs["ids"].shape == (6, 9)
    assert batch.inputs["lengths"].max() == 9
    assert batch.keep_BN.sum() == 25
    assert batch.inputs["ids"].flatten()[batch.inputs["places"][0]].tolist() == example.arrays["ids"].tolist()
    model = model_for(task)
    with evaluating(model):
        (answer,) = in_order(task.predict(model, batch))
        scores_BNC = model.scores(batch.inputs)
        best_BN = model.best(scores_BNC, batch.keep_BN)
    assert answer.tags == tuple(task.labels[tag] for tag in best_BN[0].tolist())
    assert len(answer.words) == 25
    assert not answer.cut


def test_a_word_of_absurd_length_is_cut_and_said() -> None:
    task = fitted(tokenizer={"kind": "char", "vocab_size": 60, "min_frequency": 1})
    (example,) = task.encode([row("in " + "Rome" * 9)])
    assert example.arrays["word_lengths"].tolist() == [2, 4]
    model = model_for(task)
    with evaluating(model):
        (answer,) = in_order(task.predict(model, task.collate([example])))
    assert answer.cut
    assert answer.to_json()["input_cut"] is True


@pytest.mark.parametrize("crf", [True, False], ids=["crf", "alone"])
def test_the_loss_is_a_sum_over_words(task: Tag, crf: bool) -> None:
    model = model_for(task, crf=crf)
    examples = task.encode([row(*line) for line in LINES])
    together = task.loss(model, task.collate(examples)).parts["words"].sum
    alone = [task.loss(model, task.collate([example])).parts["words"].sum for example in examples]
    torch.testing.assert_close(together, torch.stack(alone).sum())


@pytest.mark.parametrize("kind", ["rnn", "transformer"])
def test_a_prediction_has_words_tags_spans_and_probabilities(task: Tag, kind: str) -> None:
    model = model_for(task, kind)
    text = "Anna  Berg, lives"
    with evaluating(model):
        (answer,) = in_order(task.predict(model, task.collate(task.encode([row(text)]))))
    assert answer.words == ("Anna", "Berg", ",", "lives")
    assert all(0 < probability <= 1 for probability in answer.probabilities)
    told = answer.to_json()
    assert set(told) == {"text", "words", "tags", "probabilities", "spans"}
    assert told["text"] == answer.text == " ".join(map("/".join, zip(answer.words, answer.tags, strict=True)))
    for span in told["spans"]:
        assert text[span["start"] : span["end"]] == span["text"]


def test_spans_are_those_that_the_tags_mark(task: Tag) -> None:
    """Of a model that always answers the same."""
    model, text = model_for(task), "Anna  Berg in Rome"
    model.best = lambda scores_BNC, keep_BN: torch.tensor([[task.labels.index(tag) for tag in LINES_TAGS]])
    with evaluating(model):
        (answer,) = in_order(task.predict(model, task.collate(task.encode([row(text)]))))
    assert answer.places == ((0, 4), (6, 10), (11, 13), (14, 18))
    assert answer.to_json()["spans"] == [
        {"text": "Anna  Berg", "kind": "PER", "start": 0, "end": 10},
        {"text": "Rome", "kind": "LOC", "start": 14, "end": 18},
    ]
    spoken = fitted([("she lives", "PRON VERB")])
    with evaluating(model):
        ((_, answer),) = spoken.predict(model_for(spoken), spoken.collate(spoken.encode([row(text)])))
    assert "spans" not in answer.to_json()


LINES_TAGS = ("B-PER", "I-PER", "O", "B-LOC")


@pytest.mark.parametrize(
    ("split", "words"),
    [
        ("signs", ["don't", "U", ".", "S", "."]),
        ("spaces", ["don't", "U.S."]),
        ("characters", list("don'tU.S.")),
    ],
)
def test_texts_are_cut_as_asked(task: Tag, split: str, words: list[str]) -> None:
    asked = task.with_settings(split=split)
    model = model_for(task)
    with evaluating(model):
        (answer,) = in_order(asked.predict(model, asked.collate(asked.encode([row("don't U.S.")]))))
    assert list(answer.words) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("हिन्दी भाषा।", ["हिन्दी", "भाषा", "।"]),
        ("می\u200cخواهم.", ["می\u200cخواهم", "."]),
        ("cafe\u0301s (e\u0301!)", ["cafe\u0301s", "(", "e\u0301", "!", ")"]),
        ("I ❤\ufe0f you", ["I", "❤\ufe0f", "you"]),
        ("co\u00adoperate -- well-known", ["co\u00adoperate", "-", "-", "well-known"]),
        ("\ufeffone\u200btwo\u200e \x07 \u200d", ["one", "two"]),
    ],
)
def test_words_of_every_script_stay_whole(task: Tag, text: str, words: list[str]) -> None:
    """Vowel signs and accents are of their word; what nobody sees is no word."""
    asked = task.with_settings(split="signs")
    assert [text[start:end] for start, end in asked.words.parse(text, "x").places] == words


def test_a_space_that_does_not_break_is_of_a_word(task: Tag) -> None:
    """As words of CoNLL have it that hold a space."""
    places = task.with_settings(split="spaces").words.parse("New\u00a0York is \u00a0\tfar", "x").places
    assert places == ((0, 8), (9, 11), (12, 13), (14, 17))


def test_characters_are_known_by_the_training_data() -> None:
    assert fitted([("张 三 说", "B-NAME E-NAME O")]).words.split == "characters"
    assert fitted(split="spaces").words.split == "spaces"
    assert fitted().words.split == "signs"


def test_a_replay_tells_what_was_predicted(task: Tag) -> None:
    model = model_for(task)
    (example,) = task.encode([row("Anna lives in Rome")])
    with evaluating(model):
        (prediction,) = in_order(task.predict(model, task.collate([example])))
        forced = task.force(example, prediction)
        told_1N = task.replay(model, forced)
    assert told_1N[0].exp().tolist() == pytest.approx(prediction.probabilities, rel=1e-5)
    without = task.leave_out(forced, Axis("text", ()), range(1, 3))
    assert without.inputs["ids"].tolist() == [
        [example.arrays["ids"][0], UNK, *example.arrays["ids"][2:], EOS],
        [*example.arrays["ids"][:2], UNK, example.arrays["ids"][3], EOS],
    ]
    with evaluating(model):
        each = [task.replay(model, task.leave_out(forced, Axis("text", ()), range(n, n + 1))) for n in (1, 2)]
        torch.testing.assert_close(task.replay(model, without), torch.cat(each))


def test_pictures_have_the_axes_they_name(task: Tag) -> None:
    model = model_for(task)
    (example,) = task.encode([row("Anna lives in Rome and " * 3)])
    with evaluating(model):
        (prediction,) = in_order(task.predict(model, task.collate([example])))
        axes = task.axes(example, prediction).by_name
        pictures = task.pictures(model, task.force(example, prediction))
    assert [picture.site for picture in pictures] == ["marginals", "transitions"]
    for picture in pictures:
        shape = len(axes[picture.rows].labels), len(axes[picture.columns].labels)
        assert picture.weights_QK.shape == shape
        torch.testing.assert_close(picture.weights_QK.sum(1), torch.ones(shape[0]))
    dead_end = model_for(fitted([("张 三", "B-NAME E-NAME"), ("李", "B-ORG")]))
    steps_CC = dead_end.transitions()
    assert steps_CC is not None
    assert steps_CC.sum(1).tolist() == pytest.approx([1, 0, 1]), "nothing may follow B-ORG here"
    assert axes["text"].labels == ("Anna", "lives", "in", "Rome", "and", "Anna", "lives", "in", "</s>")


def test_tallies_add_up_and_score() -> None:
    said, right = ("B-PER", "I-PER", "O", "B-LOC"), ("B-PER", "O", "O", "B-LOC")
    tally = TagTally(True, [said], [right]) + TagTally(True, [("O", "B-PER")], [("O", "B-PER")])
    scores = tally.metrics()
    assert scores["accuracy"] == pytest.approx(100 * 5 / 6)
    assert scores["f1"] == scores["precision"] == scores["recall"] == pytest.approx(100 * 2 / 3)
    assert tally.by_kind()["LOC"] == {"f1": 100, "precision": 100, "recall": 100, "n": 1}
    assert tally.by_kind()["PER"]["f1"] == pytest.approx(50)
    spoken = TagTally(False, [("NOUN", "VERB")], [("NOUN", "NOUN")])
    assert spoken.metrics() == {"accuracy": 50}
    assert spoken.by_kind()["NOUN"] == pytest.approx({"f1": 200 / 3, "precision": 100, "recall": 50, "n": 2})


def test_comes_back_from_disk(task: Tag, tmp_path: Path) -> None:
    task.save(tmp_path)
    loaded = Tag.load(task.config, tmp_path)
    assert (loaded.labels, loaded.words.split, loaded.widths) == (task.labels, task.words.split, task.widths)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        *(("labels.json", content) for content in ("", "{}", "null", '["O"]', '["O", 3]', '["O", "O"]')),
        *(("words.json", content) for content in ("", "{}", "[1, 2]", "null", '{"split": ["signs"]}')),
    ],
)
def test_a_damaged_folder_is_refused(task: Tag, tmp_path: Path, file: str, content: str) -> None:
    task.save(tmp_path)
    (tmp_path / file).write_text(content)
    with pytest.raises(CheckpointError, match=rf"{file}: .*(cannot be read|should)"):
        Tag.load(task.config, tmp_path)


def test_faults_of_the_data_are_said_with_their_place(task: Tag) -> None:
    with pytest.raises(
        DataError, match=r"names\.conll:7: tag 'B-PRE' does not occur.*; did you mean B-PER\?"
    ):
        task.encode([row("Anna", "B-PRE", 7)])
    with pytest.raises(DataError, match=r"names\.conll:8: I-PER cannot stand after O in BIO tags; mend them"):
        task.encode([row("in Rome", "O I-PER", 7)])
    with pytest.raises(DataError, match=r"names\.conll:2: 3 words but 2 tags; every word needs one"):
        fitted([("Anna Berg lives", "O O")])
    with pytest.raises(DataError, match=r"only one tag \(O\); a tagger needs at least two"):
        fitted([("she lives", "O O")])
    with pytest.raises(DataError, match=r"the training data have no tags; a tagger needs at least two"):
        fitted([("", "")])
    with pytest.raises(DataError, match=r"more than 1,000 different tags look.*data\.columns\.tags"):
        fitted([("word", f"tag{i}") for i in range(1001)])
    with pytest.raises(DataError, match=r"names\.conll:3: a tag of 1,001 characters looks like text"):
        fitted([("she", "O"), ("word", "T" * 1001)])
    with pytest.raises(DataError, match=r"names\.conll:2: a word or a tag is missing between two spaces"):
        fitted([("Anna  Berg", "O  O")])


def test_an_empty_sentence_is_not_learnt_from_and_scored(tmp_path: Path) -> None:
    task = fitted([*LINES, ("", "")])
    task.save(tmp_path)
    assert Tag.load(task.config, tmp_path).labels == ("B-LOC", "B-PER", "I-PER", "O")
    full, empty = task.encode([row(*LINES[1]), row("", "")])
    assert task.unusable(empty)
    model = model_for(task)
    for examples in ([full, empty], [empty]):
        batch = task.collate(examples)
        with evaluating(model):
            tally = task.measure(model, batch, thorough=True)
            assert task.loss(model, batch).shown["words"].isfinite()
        assert tally.gold[-1] == tally.predicted[-1] == ()
        assert 0 <= tally.metrics()["accuracy"] <= 100


def test_a_sentence_may_not_end_inside_a_span_where_ends_are_marked() -> None:
    task = fitted([("张 三 说", "B-NAME E-NAME O")])
    with pytest.raises(DataError, match=r"names\.conll:4: the end of the sentence cannot stand after B-NAME"):
        task.encode([row("说 张", "O B-NAME", 3)])


def test_illegal_sentences_can_be_left_out_of_training_and_are_scored() -> None:
    task = fitted([*LINES, ("Anna", "I-PER")], illegal="skip")
    good, bad = task.encode([row(*LINES[0]), row("Anna", "I-PER")])
    assert task.unusable(good) is None
    assert task.unusable(bad)
    assert task.is_answerable(bad)
    model = model_for(task)
    with evaluating(model):
        assert task.measure(model, task.collate([bad]), thorough=True).gold == [("I-PER",)]


def test_only_legal_sentences_have_a_loss() -> None:
    """One that the scheme forbids has probability 0."""
    task = fitted([*LINES, ("Anna", "I-PER")], illegal="skip")
    good, bad = task.encode([row(*LINES[0]), row("Anna", "I-PER")])
    model = model_for(task)
    (alone, _), (both, tally), (nothing, _) = (
        evaluate(task, model, examples, torch.device("cpu"), thorough=True)
        for examples in ([good], [good, bad], [bad])
    )
    assert both["loss"] == pytest.approx(alone["loss"])
    assert isinstance(tally, TagTally)
    assert len(tally.gold) == 2
    assert nothing["loss"] == 0


def test_a_tagger_has_no_search(task: Tag) -> None:
    with pytest.raises(RecipeError, match="beam: a tagger has no such setting; it has split"):
        task.with_settings(beam=3)
    with pytest.raises(RecipeError, match="split: unknown 'sings'; did you mean signs"):
        task.with_settings(split="sings")
    for wrong in (["signs"], {"split": "signs"}, 3):
        with pytest.raises(RecipeError, match=re.escape(f"split: unknown {wrong!r}; ")):
            task.with_settings(split=wrong)


def test_forbidden_tags_can_be_mended() -> None:
    """IOB1: a span is begun only where it touches another."""
    task = fitted([("Anna Berg in Rome", "I-PER I-PER O I-LOC")] * 3, illegal="mend")
    assert task.tags.scheme == "BIO"
    (sentence,) = task.encode([row("Anna Anna Berg", "I-PER B-PER I-PER")])
    assert [task.labels[tag] for tag in sentence.arrays["tags"]] == ["B-PER", "B-PER", "I-PER"]
    assert task.unusable(sentence) is None
    with pytest.raises(DataError, match="tag 'I-ORG' does not occur in the training data"):
        task.encode([row("Anna", "I-ORG")])
