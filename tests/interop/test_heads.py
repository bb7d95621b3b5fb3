"""BERTs that read pairs, give several labels, tag and answer: they leave for Hugging Face and come back."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import regard
from interop.made import asked, reader, rows
from regard.api.trained import Trained
from regard.errors import CheckpointError, RunError
from regard.interop import bert, hf_tagger
from regard.interop.importing import import_folder
from tiny import answerer, classifier, tagger

KINDS: dict[str, Any] = {
    "classify_pair": classifier("bert", "pooler"),
    "multilabel": classifier("bert", "pooler"),
    "tag": tagger("bert", crf=False),
    "answer": answerer("bert", max_positions=15),
}


def made(kind: str, config: Any = None, *, berts: bool = True) -> Trained:
    config = config or KINDS[kind]
    task, model = reader(kind, config, berts=berts)
    return Trained(task, task.config, model, config, {}, torch.device("cpu"))


def theirs(folder: Path, auto: str) -> tuple[Any, Any]:
    model = getattr(transformers, f"AutoModelFor{auto}").from_pretrained(folder, local_files_only=True)
    return model, transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)


@pytest.mark.parametrize("berts", [True, False], ids=["a bert's vocabulary", "ours"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_left_comes_back(tmp_path: Path, kind: str, berts: bool) -> None:
    own = made(kind, berts=berts)
    report = own.export(tmp_path / "out", "hf", asked(kind))
    assert (report.identical, report.n_compared) == (1.0, 24)
    assert report.difference < 2e-5  # summed in another order: last bits depend on the processor
    assert import_folder(tmp_path / "out", tmp_path / "back") == own.task.kind
    back = regard.load(tmp_path / "back", device="cpu")
    assert all(torch.equal(back.model.state_dict()[name], it) for name, it in own.model.state_dict().items())
    assert back.task.widths == own.task.widths
    assert back.predict(asked(kind)) == own.predict(asked(kind))


AUTOS = {"tag": "TokenClassification", "answer": "QuestionAnswering"}


@pytest.mark.parametrize("kind", KINDS)
def test_what_transformers_saved_again_comes_back(tmp_path: Path, kind: str) -> None:
    own = made(kind)
    own.export(tmp_path / "out", "hf", asked(kind, 3))
    for part in theirs(tmp_path / "out", AUTOS.get(kind, "SequenceClassification")):
        part.save_pretrained(tmp_path / "again")
    import_folder(tmp_path / "again", tmp_path / "back")
    assert regard.load(tmp_path / "back", device="cpu").predict(asked(kind)) == own.predict(asked(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_the_card_says_how(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made(kind).export(tmp_path / "out", "hf", asked(kind, 3))
    card = (tmp_path / "out" / "README.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
    monkeypatch.chdir(tmp_path / "out")
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out


def test_words_are_tagged_as_transformers_usually_does(tmp_path: Path) -> None:
    own = made("tag")
    own.export(tmp_path / "out", "hf", asked("tag"))
    model, tokenizer = theirs(tmp_path / "out", "TokenClassification")
    for text in [text for text in map(str, asked("tag", 40)) if len(text.split()) < 6]:
        given = tokenizer(text.split(), is_split_into_words=True, return_tensors="pt")
        best = model(**given).logits[0].argmax(-1).tolist()
        firsts = [given.word_ids().index(number) for number in range(len(text.split()))]
        found = tuple(model.config.id2label[best[place]] for place in firsts)
        assert found == own.predict(text).tags


def test_a_word_of_many_pieces_is_no_reason_to_warn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(transformers.tokenization_utils_base.logger, "warning", said.append)
    made("tag").export(tmp_path / "out", "hf", ["amber " + "a" * 30])
    assert said == []


@pytest.mark.parametrize("berts", [True, False], ids=["a bert's vocabulary", "ours"])
def test_windows_are_those_that_transformers_makes(tmp_path: Path, berts: bool) -> None:
    own = made("answer", berts=berts)
    own.export(tmp_path / "out", "hf", asked("answer", 3))
    _, tokenizer = theirs(tmp_path / "out", "QuestionAnswering")
    for row in rows("answer"):
        row.cells["question"] = "amber"  # they do not cut it where we do
        (question,) = own.task.encode([row])
        batch = own.task.collate([question])
        given = tokenizer(
            row.cells["question"],
            row.cells["context"],
            truncation="only_second",
            stride=own.task_config.overlap,
            return_overflowing_tokens=True,
        )
        for at, (ids, segments) in enumerate(zip(given["input_ids"], given["token_type_ids"], strict=True)):
            length = int(batch.inputs["lengths"][at])
            assert ids == batch.inputs["ids"][at, :length].tolist()
            assert segments == batch.inputs["segments"][at, :length].tolist()
        assert len(given["input_ids"]) == len(question.arrays["lengths"])


REFUSED: dict[str, tuple[str, Any, str]] = {
    "a CRF": (
        "tag",
        tagger("bert"),
        "crf = true has no counterpart in BertForTokenClassification; train with",
    ),
    "a tagger": ("tag", tagger("words", crf=False), "a tagger with a words encoder has no counterpart"),
    "an answerer": ("answer", answerer("words"), "an answerer with a words encoder has no counterpart"),
    "pooling": (
        "classify_pair",
        classifier("bert", "mean"),
        "pooling = 'mean' has no counterpart in BertForSequenceClassification; train with",
    ),
    "several labels": ("multilabel", classifier("words"), "a classifier with a words encoder has no"),
}


@pytest.mark.parametrize(("kind", "config", "sentence"), REFUSED.values(), ids=REFUSED)
def test_what_transformers_does_not_have_stays(tmp_path: Path, kind: str, config: Any, sentence: str) -> None:
    with pytest.raises(RunError, match=f"hf: {sentence}.* export to onnx"):
        made(kind, config, berts=False).export(tmp_path / "out", "hf", asked(kind, 3))
    assert list(tmp_path.iterdir()) == []


def test_another_order_of_tags_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = hf_tagger.hf_bert.label_maps
    monkeypatch.setattr(hf_tagger.hf_bert, "label_maps", lambda names: honest(names[::-1]))
    with pytest.raises(RunError, match="does not answer as the original does"):
        made("tag").export(tmp_path / "out", "hf", asked("tag"))
    assert list(tmp_path.iterdir()) == []


HOSTILE: dict[str, tuple[str, dict[str, Any], str]] = {
    "no kind": ("tag", {"regard_task": {"kind": "tag", "beam": 1}}, "beam: Extra inputs"),
    "tags alike": (
        "tag",
        {"id2label": {"0": "O", "1": "O", "2": "B"}},
        "the label of output 1 is 'O', which another output has too; give each its own in id2label",
    ),
    "a tag without a name": (
        "tag",
        {"id2label": {"0": "", "1": "O", "2": "B"}},
        "output 0 is '', which is no",
    ),
    "another task": (
        "multilabel",
        {"regard_task": {"kind": "classify"}},
        "kind: Input should be 'multilabel'",
    ),
    "no answer": ("answer", {bert.MAY_BE_NONE: "perhaps"}, "is 'perhaps', it should be true or false"),
    "windows": ("answer", {"regard_task": {"kind": "answer", "overlap": 400}}, "must be more than overlap"),
    "too long": (
        "answer",
        {"regard_task": {"kind": "answer"}},
        "max_position_embeddings is 15, but texts may",
    ),
}


@pytest.mark.parametrize(("kind", "changes", "sentence"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_folder_is_one_sentence(
    tmp_path: Path, kind: str, changes: dict[str, Any], sentence: str
) -> None:
    made(kind).export(tmp_path / "hf", "hf", asked(kind, 3))
    path = tmp_path / "hf" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | changes), "utf-8")
    with pytest.raises(CheckpointError, match=sentence) as refused:
        import_folder(tmp_path / "hf", tmp_path / "out")
    assert "\n" not in str(refused.value)
    assert [path.name for path in tmp_path.iterdir()] == ["hf"]


def test_a_tagger_of_others_is_an_encoder_alone(tmp_path: Path) -> None:
    made("tag").export(tmp_path / "hf", "hf", asked("tag", 3))
    path = tmp_path / "hf" / "config.json"
    told = json.loads(path.read_text("utf-8"))
    del told["regard_task"]
    path.write_text(json.dumps(told), "utf-8")
    assert import_folder(tmp_path / "hf", tmp_path / "out") is None
