"""The public face: from files to a run folder, to predictions, scores and explanations."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import regard
from mixes import mixes
from regard import durable
from regard.api.trained import Trained
from regard.attention import sites
from regard.errors import DataError, RecipeError, RunError
from regard.files.row import Row
from regard.runs.prepare import prepare
from regard.training.events import Saved
from tiny import (
    classifier,
    classifying,
    endless,
    mirrored,
    planted,
    rnn,
    tagging,
    transformer,
    translating,
    untrained,
)


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return regard.train(translating(tmp_path_factory.mktemp("translator")), quiet=True)


@pytest.fixture(scope="module")
def labeller(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return regard.train(classifying(tmp_path_factory.mktemp("labeller")), quiet=True)


def test_training_leaves_a_whole_run_folder(tmp_path: Path) -> None:
    given = translating(tmp_path, eval_every=2)
    trained = regard.train(given, quiet=True)
    run = tmp_path / "run"
    assert sorted(path.name for path in run.iterdir()) == [
        "checkpoints",
        "identity.json",
        "metrics.jsonl",
        "model",
        "recipe.json",
        "report.html",
        "task",
    ]
    assert regard.Recipe.read(run / "recipe.json") == given
    events = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [(event["event"], event["step"]) for event in events] == [
        ("saved", 0),
        ("step", 1),
        ("step", 2),
        ("evaluated", 2),
        ("saved", 2),
        ("step", 3),
        ("step", 4),
        ("evaluated", 4),
        ("saved", 4),
        ("finished", 4),
    ]
    assert set(trained.metrics["scores"]) == {"valid", "test"}
    assert set(trained.metrics["scores"]["test"]) == {"loss", "bleu", "chrf"}
    assert trained.metrics["stopped_by"] == "max_steps = 4"
    assert trained.metrics["seed"] == 1
    assert not trained.model.training


def test_a_recipe_file_takes_overrides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given = translating(tmp_path)
    (tmp_path / "recipe.json").write_text(given.model_dump_json(), "utf-8")
    trained = regard.train(
        "recipe.json", "run=other run", "train.max_steps=1", "model.n_encoder_layers=1", quiet=True
    )
    assert trained.metrics["step"] == 1
    assert trained.model_config.n_encoder_layers == 1
    assert (tmp_path / "other run" / "model").is_dir()


def test_overrides_of_a_recipe_object_are_not_silently_lost(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"'seed=3'.*recipe file"):
        regard.train(translating(tmp_path), "seed=3", quiet=True)


@pytest.mark.parametrize("made", [translating, tagging])
def test_a_resumed_run_ends_with_the_same_bits(tmp_path: Path, made: Callable[..., regard.Recipe]) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    for folder in (whole, parts):
        folder.mkdir()
    plan = {"eval_every": 2, "average": 2}
    expected = regard.train(made(whole, **plan, max_steps=8), quiet=True)
    with prepare(made(parts, **plan, max_steps=8)) as half:
        for event in half.events():
            if isinstance(event, Saved) and event.step == 4:
                break
    resumed = regard.train(made(parts, **plan, max_steps=8), quiet=True)
    left, right = (load_file(folder / "run" / "model" / "model.safetensors") for folder in (whole, parts))
    assert all(torch.equal(left[name], right[name]) for name in left)
    assert resumed.metrics["scores"] == expected.metrics["scores"]
    journals = [
        [
            {key: entry[key] for key in ("event", "step", "loss", "metrics", "chosen") if key in entry}
            for entry in map(json.loads, (folder / "run" / "metrics.jsonl").read_text().splitlines())
        ]
        for folder in (whole, parts)
    ]
    assert journals[0] == journals[1]


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    given = translating(tmp_path)
    run = Path(given.run)
    run.mkdir()
    (run / "thesis.txt").write_text("mine")
    with pytest.raises(
        RunError, match=r"run: already exists and is not a run \(it has thesis\.txt\); choose"
    ):
        regard.train(given, quiet=True)
    with pytest.raises(RunError, match=r"run: is not a run of regard, so --fresh does not move it"):
        regard.train(given, fresh=True, quiet=True)
    assert [path.name for path in run.iterdir()] == ["thesis.txt"]


def test_a_finished_run_is_not_trained_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = translating(tmp_path, max_steps=1)
    first = regard.train(given, quiet=True)
    before = durable.sha256(tmp_path / "run" / "metrics.jsonl")
    assert regard.train(given).metrics == first.metrics
    assert "training has already finished; start over with --fresh" in capsys.readouterr().err
    assert durable.sha256(tmp_path / "run" / "metrics.jsonl") == before


def test_a_finished_run_whose_data_changed_is_not_taken_for_the_same(tmp_path: Path) -> None:
    given = translating(tmp_path, max_steps=1)
    regard.train(given, quiet=True)
    file = Path(given.data.train[0])
    content = file.read_text("utf-8")
    file.write_text("\n".join(reversed(content.splitlines())) + "\n", "utf-8")
    with pytest.raises(RunError, match=rf"data\.{re.escape(str(file))} has changed since this run began"):
        regard.train(given, quiet=True)
    file.unlink()
    assert regard.train(given, quiet=True).metrics["step"] == 1, "it needs no data any more"


def test_fresh_gives_the_old_run_another_name(tmp_path: Path) -> None:
    given = translating(tmp_path, max_steps=1)
    for _ in range(3):
        regard.train(given, fresh=True, quiet=True)
    folders = sorted(path.name for path in tmp_path.glob("run*"))
    assert folders == ["run", "run.old-1", "run.old-2"]
    for folder in folders:
        assert regard.load(tmp_path / folder, device="cpu").metrics["step"] == 1


def test_saving_into_a_folder_with_other_things_is_refused(translator: Trained, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(RunError, match="already exists and is not empty; choose another"):
        translator.save(tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "mine"
    translator.save(tmp_path / "copy")
    copy = regard.load(tmp_path / "copy", device="cpu")
    texts = ["amber birch", "cedar", "delta ember fjord"]
    assert [found.text for found in copy.predict(texts)] == [
        found.text for found in translator.predict(texts)
    ]
    assert copy.metrics == translator.metrics


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_a_fault_in_any_split_is_found_before_anything_is_written(tmp_path: Path, split: str) -> None:
    given = classifying(tmp_path)
    wrong = "" if split == "train" else "maybe"
    (tmp_path / f"{split}.csv").write_text(f"text,label\nthe heath,no\nthe grove,{wrong}\n", "utf-8")
    with pytest.raises(
        DataError, match=rf"{split}\.csv:3: (the label is empty|label 'maybe' does not occur)"
    ):
        regard.train(given, quiet=True)
    assert not Path(given.run).exists()


def test_without_validation_data_every_twentieth_row_is_held_out(tmp_path: Path) -> None:
    given = translating(tmp_path)
    data = given.data.model_copy(update={"valid": None, "test": None})
    prepared = prepare(given.model_copy(update={"data": data}))
    assert [example.row.line for example in prepared.training.valid] == [20, 40]
    assert len(prepared.training.train) == 41
    assert not {20, 40} & {example.row.line for example in prepared.training.train}


def test_a_label_that_only_a_held_out_row_has_is_said(tmp_path: Path) -> None:
    given = classifying(tmp_path)
    (train,) = given.data.train
    lines = Path(train).read_text("utf-8").splitlines()
    Path(train).write_text("\n".join([*lines[:20], "amber,maybe", *lines[20:]]) + "\n", "utf-8")
    data = given.data.model_copy(update={"valid": None, "test": None})
    with pytest.raises(
        DataError,
        match=r"csv:21: label 'maybe' does not .* \(this row was held out of train .* give data\.valid\)",
    ):
        regard.train(given.model_copy(update={"data": data}), quiet=True)
    assert not Path(given.run).exists()


def test_too_little_data_is_said(tmp_path: Path) -> None:
    given = translating(tmp_path)
    data = given.data.model_copy(update={"train": tuple(mirrored(tmp_path, 19, "few")), "valid": None})
    with pytest.raises(
        DataError,
        match=r"few\.source.*: there are fewer than 20 rows, too few to hold any out for validation",
    ):
        regard.train(given.model_copy(update={"data": data}), quiet=True)


def test_a_device_that_is_not_there_is_said(tmp_path: Path) -> None:
    for device in ("cuda:77", "abacus"):
        with pytest.raises(
            RecipeError, match=rf"train\.device: '{device}' is not available here; use auto or cpu"
        ):
            regard.train(translating(tmp_path, device=device), quiet=True)
    assert not (tmp_path / "run").exists()


def test_one_text_gives_one_prediction_many_give_a_list(translator: Trained) -> None:
    one = translator.predict("amber birch")
    assert translator.predict(["amber birch"])[0].ids == one.ids
    assert translator.predict([]) == []
    assert [found.text for found in translator.predict(iter(["", "amber", ""]))][::2] == ["", ""]


@pytest.mark.parametrize("trained", ["translator", "labeller"])
def test_predictions_keep_the_order_of_the_texts(trained: str, request: pytest.FixtureRequest) -> None:
    model: Trained = request.getfixturevalue(trained)
    texts = ["amber birch cedar delta", "", "knoll", "grove heath", "  ", "knoll", "inlet jetty fjord"] * 3
    together = model.predict(texts)
    assert len(together) == len(texts)
    for text, found in zip(texts, together, strict=True):
        assert found.text == model.predict(text).text


@pytest.mark.parametrize("settings", [{"beam": 1}, {"beam": 3}, {"batch_invariant": True}], ids=str)
def test_each_answer_comes_when_its_own_search_has_ended(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.api.trained.READ_AHEAD", 3)
    trained = untrained(rnn())
    endless(trained.model)
    texts = [f"fog {'lies ' * n}" for n in (17, 3, 11, 0, 7, 29, 2)]
    answers = list(trained.as_completed(texts, **settings))
    assert [place for place, _ in answers] == [1, 2, 0, 3, 4, 5, 6], "the shortest of a chunk first"
    in_order = [answer.ids for _, answer in sorted(answers, key=lambda pair: pair[0])]
    assert in_order == [one.ids for one in trained.predict(texts, **settings)]


def test_a_short_text_waits_for_no_batch_of_long_ones() -> None:
    """Two texts of two thousand pieces fill a batch."""
    trained = untrained(rnn(), max_length=3000)
    texts = ["fog " * 2001, "fog", "fog " * 2000]
    places = [place for place, _ in trained.as_completed(texts, beam=1, max_length=5)]
    assert places[0] == 1
    assert sorted(places) == [0, 1, 2]


def test_answers_come_with_the_places_of_their_texts(labeller: Trained) -> None:
    texts = ["amber birch", "", "knoll amber grove"] * 500
    answers = dict(labeller.as_completed(texts))
    assert labeller.predict(texts) == [answers[place] for place in range(len(texts))]


def test_nothing_of_the_search_is_left_between_two_answers(labeller: Trained) -> None:
    """Whoever takes answers one by one may train meanwhile."""
    labeller.model.train()
    for _ in labeller.as_completed(["amber birch", "knoll"]):
        assert labeller.model.training
        assert torch.is_grad_enabled()
        assert not torch.is_inference_mode_enabled()
    labeller.model.eval()


def test_streaming_waits_for_one_text_only_and_never_for_the_end(labeller: Trained) -> None:
    read: list[int] = []

    def endless() -> Iterator[str]:
        for number in count():
            read.append(number)
            yield f"amber {number}"

    answers = labeller.stream(endless())
    assert not read, "nothing is read before anything is asked"
    next(answers)
    assert len(read) == 1
    for _ in range(50):
        next(answers)
    assert len(read) <= 128
    assert not labeller.model.training


def test_the_search_can_be_changed_and_mistakes_are_said(translator: Trained, labeller: Trained) -> None:
    assert len(translator.predict("amber birch", beam=3, n_best=3).others) == 2
    assert translator.predict("amber birch").others == ()
    with pytest.raises(RecipeError, match=r"decode\.nbest: unknown; did you mean n_best\?"):
        translator.predict("amber", nbest=3)
    with pytest.raises(RecipeError, match="a classifier does not search"):
        labeller.predict("amber", beam=3)


@pytest.mark.parametrize("settings", [{"beam": 1}, {"beam": 4}, {"sample": True}], ids=str)
@pytest.mark.parametrize("config", [transformer(), rnn()], ids=["transformer", "rnn"])
def test_an_answer_can_be_followed(config: Any, settings: dict[str, Any]) -> None:
    trained = untrained(config)
    for text in ("the grey heron stands", "fog", ""):
        heard = list(trained.follow(text, max_ratio=1.5, **settings))
        whole = trained.predict(text, max_ratio=1.5, **settings).text
        assert "".join(heard[-1:]) == whole
        assert all(after.startswith(before) for before, after in pairwise(heard[:-1]))


def test_who_stops_following_stops_the_search() -> None:
    trained = untrained(transformer())
    heard = trained.follow("the grey heron stands still", beam=1, min_length=100, max_ratio=40)
    first = next(heard)
    heard.close()
    assert first
    assert trained.predict("fog").text is not None


def test_what_cannot_be_followed_is_said(labeller: Trained) -> None:
    with pytest.raises(RecipeError, match="only one answer can be followed"):
        list(untrained(transformer()).follow("fog", n_best=2))
    with pytest.raises(RecipeError, match="classify models answer at once"):
        labeller.follow("fog")


def test_an_answer_is_the_same_to_the_bit_in_any_company() -> None:
    assert mixes(300) == 300


def test_models_that_answer_together(tmp_path: Path) -> None:
    runs = []
    for seed in (1, 2):
        (folder := tmp_path / str(seed)).mkdir()
        regard.train(translating(folder).model_copy(update={"seed": seed}), quiet=True)
        runs.append(folder / "run")
    both, each = regard.load(*runs), [regard.load(run) for run in runs]
    example = both.task.encode([Row({"source": "a b c", "target": "c b a"}, "x", 1)])
    batch = both.task.collate(example)
    given = batch.inputs, batch.target_BT
    with torch.no_grad():
        mean = torch.stack([one.model(*given).softmax(-1) for one in each]).mean(0)
        torch.testing.assert_close(both.model(*given).exp(), mean)
        state = both.model.start(batch.inputs)
        for place, last_B in enumerate(batch.target_BT.unbind(1)):
            told_BV, state = both.model.step(last_B, state)
            torch.testing.assert_close(told_BV.exp(), mean[place][None], rtol=1e-4, atol=1e-5)
    assert len(both.predict(["a b", "c"], beam=3)) == 2
    for ask in (lambda: both.explain("a b"), lambda: both.save(tmp_path / "saved")):
        with pytest.raises(RunError, match="one by one"):
            ask()


def test_models_with_other_vocabularies_do_not_answer_together(
    translator: Trained, labeller: Trained, tmp_path: Path
) -> None:
    translator.save(tmp_path / "a")
    labeller.save(tmp_path / "b")
    untrained(transformer()).save(tmp_path / "c")
    with pytest.raises(RunError, match=r"b: only models with an encoder and a decoder answer together"):
        regard.load(tmp_path / "a", tmp_path / "b")
    with pytest.raises(RunError, match=r"c: has another source vocabulary than .*a"):
        regard.load(tmp_path / "a", tmp_path / "c")


def test_models_with_less_room_do_not_answer_together(tmp_path: Path) -> None:
    roomy, tight = (untrained(transformer(position="learned", max_positions=n)) for n in (300, 300))
    roomy.save(tmp_path / "roomy")
    tight.save(tmp_path / "tight")
    config = json.loads((tmp_path / "tight" / "config.json").read_text("utf-8"))
    weights = load_file(tmp_path / "tight" / "model.safetensors")
    config["task"]["max_length"], config["model"]["max_positions"] = 9, 10
    cut = {
        name: tensor[:10].clone() if tensor.shape[:1] == (300,) else tensor
        for name, tensor in weights.items()
    }
    (tmp_path / "tight" / "config.json").write_text(json.dumps(config), "utf-8")
    save_file(cut, tmp_path / "tight" / "model.safetensors")
    with pytest.raises(RunError, match=r"tight: has 10 positions, but texts of .*roomy may have \d+ tokens"):
        regard.load(tmp_path / "roomy", tmp_path / "tight")
    assert regard.load(tmp_path / "tight", tmp_path / "roomy").predict("a b")


def test_evaluation_gives_the_scores_of_the_run(
    translator: Trained, labeller: Trained, tmp_path: Path
) -> None:
    found = translator.evaluate(mirrored(tmp_path, 5, "test"))
    assert found.n_examples == 5
    assert found.metrics == pytest.approx(translator.metrics["scores"]["test"], rel=1e-4)
    assert "tok:13a" in found.signatures["bleu"]

    (path,) = planted(tmp_path, 5, "test")
    lines = [line.split(",") for line in Path(path).read_text().splitlines()[1:]]
    right = sum(labeller.predict(text).text == label for text, label in lines)
    assert labeller.evaluate(path).metrics["accuracy"] == pytest.approx(100 * right / 5)
    assert labeller.evaluate(path).metrics == pytest.approx(labeller.metrics["scores"]["test"], rel=1e-4)


def test_two_models_are_compared_row_by_row(translator: Trained, labeller: Trained, tmp_path: Path) -> None:
    (path,) = planted(tmp_path, 31, "test")
    other = untrained(classifier("words"))
    rows = [line.rsplit(",", 1) for line in Path(path).read_text("utf-8").splitlines()[1:]]
    other.task.label = replace(other.task.label, names=labeller.task.labels)
    one, two = labeller.evaluate(path), other.evaluate(path)
    for found, model in ((one, labeller), (two, other)):
        assert found.tally.predicted == [model.predict(text).text for text, _ in rows]
        low, high = found.intervals["accuracy"]
        assert low <= found.metrics["accuracy"] <= high
    difference = one.against(two)["accuracy"]
    assert difference.value == pytest.approx(one.metrics["accuracy"] - two.metrics["accuracy"])
    assert 0 < difference.p <= 1

    with pytest.raises(DataError, match="the two models were not asked the same"):
        one.against(other.evaluate(planted(tmp_path, 30, "valid")))
    with pytest.raises(RunError, match="models of different tasks are not compared"):
        one.against(translator.evaluate(mirrored(tmp_path, 5, "test")))


def test_metrics_that_are_computed_otherwise_are_not_compared(translator: Trained, tmp_path: Path) -> None:
    one = translator.evaluate(mirrored(tmp_path, 5, "test"))
    other = replace(one, signatures=one.signatures | {"bleu": "tok:zh"})
    assert set(one.against(one)) == {"bleu", "chrf"}
    assert set(one.against(other)) == {"chrf"}


def test_evaluation_takes_columns_and_refuses_unknown_ones(labeller: Trained, tmp_path: Path) -> None:
    path = tmp_path / "odd.tsv"
    path.write_text("1\tno\tgrove heath\n2\tyes\tamber\n", "utf-8")
    assert labeller.evaluate(str(path), {"text": 3, "label": 2}).n_examples == 2
    with pytest.raises(RecipeError, match=r"columns\.lable: unknown; did you mean label\?"):
        labeller.evaluate(str(path), {"lable": 2})


EXPLAINED = {
    "transformer": transformer(),
    "transformer-rotary": transformer(position="rotary"),
    "rnn-bahdanau": rnn(),
    "rnn-luong": rnn(order="luong", attention="general"),
    "rnn-unfed": rnn(order="luong", attention="dot", input_feeding=False),
    "classifier-words": classifier("words"),
    "classifier-rnn": classifier("rnn"),
    "classifier-transformer": classifier("transformer", position="alibi"),
    "classifier-transformer-mean": classifier("transformer", "mean"),
}


@pytest.mark.parametrize("config", EXPLAINED.values(), ids=EXPLAINED.keys())
def test_every_map_of_an_explanation_is_labelled(config: Any) -> None:
    trained = untrained(config)
    text = "the grey fog lies still"
    shown, found = trained.explain(text), trained.predict(text)
    assert shown.output == found.text
    assert [site for site in shown.sites if site != "left-out"] == list(sites(trained.model))
    assert all(site.tap is None for site in sites(trained.model).values())
    source = (*text.split(), "</s>")
    for attention in shown.maps:
        n_heads, n_rows, n_columns = attention.weights_HQK.shape
        assert (n_rows, n_columns) == (len(attention.rows.labels), len(attention.columns.labels))
        assert n_heads == (3 if "layers" in attention.site else 1)
        assert attention.weights_HQK.sum(-1) == pytest.approx(1, abs=1e-5)
        assert attention.columns.labels == source or attention.columns.labels[0] == "<s>"
        if attention.rows.name == "target":
            assert n_rows == len(found.ids) + 1
            assert attention.rows.labels[-1] == "</s>"
        if attention.rows.name == "label":
            assert attention.rows.labels == (found.text,)
    main = shown.map(shown.main)
    assert main.columns.labels == source
    looks_out = main.rows is not main.columns
    assert (shown.trust is not None) == looks_out
    if shown.trust is not None:
        assert shown.trust.score is None or -1 <= shown.trust.score <= 1
    assert shown.to_html()
    assert shown.to_svg()


def test_the_maps_are_those_of_the_answer_given() -> None:
    """The weights of the pooling, computed once more by hand."""
    trained = untrained(classifier("words"))
    model: Any = trained.model
    shown = trained.explain("the grey fog")
    ids = torch.tensor([*trained.task.tokenizer.encode("the grey fog").ids, 3])
    states_TD = model.encoder.embed.weight[ids]
    attention = model.pooling.attention
    scores_T = torch.tanh(states_TD @ attention.k.weight.T + model.pooling.query_D) @ attention.score.v_HE[0]
    assert shown.maps[0].weights_HQK[0, 0] == pytest.approx(scores_T.softmax(0).tolist(), abs=1e-5)


def test_a_given_answer_is_explained_as_it_is() -> None:
    model = untrained(transformer())
    text = "amber birch cedar"
    answer, other = (model.predict(text, beam=4, n_best=2, max_length=n) for n in (2, 4))
    assert answer.text != other.text
    for each in (answer, other):
        explained = model.explain(text, each)
        assert explained.output == each.text
        assert len(explained.map("decoder.layers.0.cross").rows) == len(each.ids) + 1
    assert model.explain(text, beam=4, max_length=2).output == answer.text


def test_what_cannot_be_explained_is_said() -> None:
    with pytest.raises(DataError, match="nothing to explain: the text is empty"):
        untrained(rnn()).explain("  ")
    for config in (rnn(attention="none"), classifier("rnn", "mean")):
        with pytest.raises(DataError, match=r"nothing to show: .* 2 to 127 of them, not 1$"):
            untrained(config).explain("a")


@pytest.mark.parametrize(
    "config",
    [rnn(attention="none"), classifier("rnn", "mean"), classifier("bert", "pooler")],
    ids=["translator", "classifier", "bert"],
)
def test_without_attention_to_the_text_what_spoke_is_measured(config: Any) -> None:
    """The end of the text is never left out."""
    model, text = untrained(config), "the fog lies"
    explained = model.explain(text)
    assert explained.main == "left-out"
    assert explained.trust is not None
    assert explained.trust.sentence.startswith("Measured, not attention")
    weights_K = explained.map("left-out").head(None)[0]
    assert weights_K.sum() == pytest.approx(1, abs=1e-5)
    assert weights_K[-1] == 0


def test_trust_is_measured_where_it_can_be() -> None:
    trained = untrained(rnn())
    assert trained.explain("fog").trust is None, "one piece: nothing to compare"
    assert trained.explain("the fog").trust is not None
    assert trained.explain("fog " * 150).trust is None, "too long to leave out every piece in turn"


def test_the_console_is_quiet_when_asked_and_speaks_otherwise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = classifying(tmp_path, max_steps=1)
    regard.train(given, quiet=True)
    assert capsys.readouterr() == ("", "")
    again = given.model_copy(update={"run": str(tmp_path / "again")})
    regard.train(again)
    said = capsys.readouterr()
    assert said.out == ""
    assert "finished at step 1" in said.err


def test_a_changed_task_is_refused_by_name_before_anything_is_read(tmp_path: Path) -> None:
    given = translating(tmp_path, max_steps=2)
    regard.train(given, quiet=True)
    settings = given.model_dump()
    settings["task"]["joint"] = True
    with pytest.raises(RunError, match=r"recipe\.task\.joint was False and is now True"):
        regard.train(regard.Recipe.parse(settings), quiet=True)
