"""Every kind of Transformer, for Hugging Face and CTranslate2: it answers there as here, or is refused."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import SafetensorError

from interop.made import labeller, texts, translated, translator
from regard.errors import RunError
from regard.interop import ct2, hf
from regard.interop.export import Report, export
from tiny import classifier, rnn, transformer

MARIAN: dict[str, Any] = {"max_positions": 40}
KINDS: dict[str, tuple[dict[str, Any], bool]] = {
    "post sinusoidal": ({}, False),
    "joint": ({"activation": "gelu"}, True),
    "untied": ({"tie_embeddings": False}, True),
    "odd width": ({"d_model": 15, "n_encoder_layers": 1, "n_decoder_layers": 3}, False),
    "grouped heads, no bias": ({"n_kv_heads": 1, "bias": False}, False),
    "pre sinusoidal": ({"norm": "pre", "activation": "gelu_tanh"}, True),
    "pre learned": ({"norm": "pre", "position": "learned"}, True),
}
ONLY_CT2: dict[str, tuple[dict[str, Any], bool]] = {
    "pre, two vocabularies": ({"norm": "pre"}, False),
    "post learned": ({"position": "learned"}, False),
    "none, other epsilon": ({"position": "none", "norm_eps": 1e-3}, False),
    "rotary, gated": ({"norm": "pre", "position": "rotary", "activation": "swiglu", "n_kv_heads": 1}, False),
}


def exported(folder: Path, to: str, changes: dict[str, Any], joint: bool, **options: Any) -> Report:
    config = transformer(**MARIAN | changes)
    task, model = translator(config, joint=joint)
    return export(task, model, config, folder / "out", to, texts(), **options)


@pytest.mark.parametrize(("changes", "joint"), KINDS.values(), ids=KINDS)
def test_hugging_face_answers_alike(tmp_path: Path, changes: dict[str, Any], joint: bool) -> None:
    report = exported(tmp_path, "hf", changes, joint)
    assert report.identical == 1.0
    assert report.difference < 1e-4
    assert report.n_bytes == sum(
        path.stat().st_size for path in (tmp_path / "out").rglob("*") if path.is_file()
    )
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(("changes", "joint"), (KINDS | ONLY_CT2).values(), ids=KINDS | ONLY_CT2)
def test_ctranslate2_answers_alike(tmp_path: Path, changes: dict[str, Any], joint: bool) -> None:
    report = exported(tmp_path, "ct2", changes, joint)
    assert report.identical == 1.0
    assert report.difference < 1e-4


REFUSED = [
    ("hf", {"position": "rotary"}, r"norm = 'post' with position = 'rotary' has no counterpart"),
    ("hf", {"position": "learned"}, r"learned ones with norm = 'pre'"),
    ("hf", {"activation": "swiglu"}, r"activation = 'swiglu' .* train with relu or gelu, or export to onnx"),
    ("hf", {"norm_eps": 1e-6}, r"norm_eps = 1e-06 .* train with 1e-05"),
    ("hf", {"norm": "pre"}, r"more than one embedding table .* task\.joint = true"),
    ("hf", {"copies": True}, r"copies = true has no counterpart in Hugging Face's models; train with copies"),
    ("ct2", {"copies": True}, r"copies = true has no counterpart in CTranslate2; train with copies = false"),
    ("ct2", {"position": "alibi"}, r"position = 'alibi' has no counterpart in CTranslate2; train with"),
    ("ct2", {"position": "relative"}, r"position = 'relative' has no counterpart in CTranslate2"),
]


@pytest.mark.parametrize(("to", "changes", "sentence"), REFUSED)
def test_what_has_no_counterpart_is_refused(
    tmp_path: Path, to: str, changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(RunError, match=sentence):
        exported(tmp_path, to, {**changes, "n_heads": 2}, joint=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("to", ["hf", "ct2"])
def test_only_transformers_that_translate_go_there(tmp_path: Path, to: str) -> None:
    task, model = translator(rnn())
    with pytest.raises(RunError, match=f"{to}: a recurrent model has no counterpart .* export to onnx"):
        export(task, model, rnn(), tmp_path / "out", to, texts())
    task, model = labeller(classifier("words"))
    with pytest.raises(RunError, match=f"{to}: a classif.* has no counterpart .* export to onnx"):
        export(task, model, classifier("words"), tmp_path / "out", to, texts())


@pytest.mark.parametrize("to", ["hf", "ct2"])
def test_a_broken_export_is_caught_and_removed(
    tmp_path: Path, to: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = {"hf": hf, "ct2": ct2}[to]
    honest = module.expand_weights

    def dishonest(*arguments: Any) -> Any:
        own, config = honest(*arguments)
        own["decoder.layers.1.cross.v.bias"][3] += 0.5
        return own, config

    monkeypatch.setattr(module, "expand_weights", dishonest)
    with pytest.raises(RunError, match="does not answer as the original does"):
        exported(tmp_path, to, {}, joint=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("to", "writer"), [("hf", "save_file"), ("ct2", "write_tokenizers")])
def test_a_full_disk_leaves_nothing_and_is_told(
    tmp_path: Path, to: str, writer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: Any, **options: Any) -> None:
        raise {"hf": SafetensorError("No space left"), "ct2": OSError(28, "No space left")}[to]

    monkeypatch.setattr({"hf": hf, "ct2": ct2}[to], writer, full)
    with pytest.raises(RunError, match=r"out: cannot be written \(No space left\); make room, or choose"):
        exported(tmp_path, to, {}, joint=False)
    assert list(tmp_path.iterdir()) == []


def test_int8_tells_what_it_costs_and_leaves_the_model_alone(tmp_path: Path) -> None:
    _, model = translator(transformer(**MARIAN))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    report = exported(
        tmp_path, "ct2", {}, False, int8=True, references=[translated(text) for text in texts()]
    )
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert report.engine.endswith("int8")
    assert 1e-4 < report.difference < 1, "rounding is seen, and forgiven"
    assert report.bleu is not None
    assert not (tmp_path / "out" / "exact").exists()


def test_an_existing_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(RunError, match="out: already exists; choose another"):
        exported(tmp_path, "hf", {}, joint=False)
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(
    ("to", "options", "sentence"),
    [
        ("hd", {}, "hd: unknown export target; did you mean hf"),
        ("hf", {"int8": True}, "hf: int8 is only available for ct2"),
    ],
)
def test_wrong_wishes(tmp_path: Path, to: str, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(RunError, match=sentence):
        exported(tmp_path, to, {}, False, **options)


def test_blank_texts_prove_nothing(tmp_path: Path) -> None:
    task, model = translator(transformer())
    with pytest.raises(RunError, match="hf: an export is checked on texts, and there are none"):
        export(task, model, transformer(), tmp_path / "out", "hf", ["", "  "])


SEARCHES: dict[str, dict[str, Any]] = {
    "beams": {"beam": 2, "length_penalty": 0},
    "greedy": {"beam": 1, "no_repeat": 1, "min_length": 3},
    "greedy, of two": {"beam": 1, "no_repeat": 2, "min_length": 9, "max_length": 10, "max_ratio": 9},
    "greedy, rarer": {"beam": 1, "repetition_penalty": 3.0, "min_length": 5},
    "beams that do not repeat": {"beam": 3, "length_penalty": 0, "no_repeat": 1, "min_length": 3},
}


@pytest.mark.parametrize("decode", SEARCHES.values(), ids=SEARCHES)
def test_plain_generate_uses_the_settings_of_the_run(tmp_path: Path, decode: dict[str, Any]) -> None:
    """What a user of the folder gets who asks for nothing in particular; marks in a text are only text."""
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    config = transformer(norm="pre", **MARIAN)
    task, model = translator(config, joint=True, decode=decode)
    report = export(task, model, config, tmp_path / "out", "hf", texts())
    assert "decode." not in " ".join(report.notes)
    theirs = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "out", local_files_only=True)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out", local_files_only=True)
    asked = [*texts(5), "amber </s> birch <pad>"]
    given = tokenizer(asked, return_tensors="pt", padding=True, truncation=True)
    sources = task.source.tokenizer.ids(asked)
    assert [row[: len(ids)] for row, ids in zip(given.input_ids.tolist(), sources, strict=True)] == sources
    with torch.inference_mode():
        found = theirs.generate(input_ids=given.input_ids, attention_mask=given.attention_mask)
    from regard.api.trained import Trained

    ours = Trained(task, task.config, model, config, {}, torch.device("cpu")).predict(asked)
    assert tokenizer.batch_decode(found, skip_special_tokens=True) == [answer.text for answer in ours]


@pytest.mark.parametrize("decode", [own for own in SEARCHES.values() if own["beam"] == 1])
def test_the_card_of_ctranslate2_has_the_settings_of_the_run(tmp_path: Path, decode: dict[str, Any]) -> None:
    from regard.api.trained import Trained

    config = transformer(norm="pre", **MARIAN)
    task, model = translator(config, joint=True, decode=decode)
    report = export(task, model, config, tmp_path / "out", "ct2", texts())
    assert "decode." not in " ".join(report.notes)
    card = (tmp_path / "out" / "README.md").read_text("utf-8")
    code = card.split("```python\n")[1].split("```")[0].replace('"."', repr(str(tmp_path / "out")))
    code = code.replace("tokenizer.json", str(tmp_path / "out" / "tokenizer.json"))
    ours = Trained(task, task.config, model, config, {}, torch.device("cpu"))
    for text in texts(6):
        said: list[str] = []
        exec(code.replace("your text", text), {"print": said.append})
        assert said == [ours.predict(text).text]


@pytest.mark.parametrize(
    ("to", "decode", "lost"),
    [
        ("hf", {"must_not": ["amber"], "groups": 2}, ["groups", "must_not"]),
        ("hf", {"beam": 2, "repetition_penalty": 2.0}, ["repetition_penalty"]),
        ("hf", {"sample": True, "repetition_penalty": 2.0, "top_p": 0.5}, []),
        ("ct2", {"sample": True, "prefix": "rebma"}, ["sample", "prefix"]),
        ("onnx", {"sample": True}, []),
    ],
)
def test_what_of_a_search_stays_is_told(
    tmp_path: Path, to: str, decode: dict[str, Any], lost: list[str]
) -> None:
    config = transformer(norm="pre", **MARIAN)
    task, model = translator(config, joint=True, decode=decode)
    notes = export(task, model, config, tmp_path / "out", to, texts()).notes
    named = ", ".join(f"decode.{name}" for name in lost)
    told = f"not exported, as the target engine has no equivalent: {named}"
    assert [note for note in notes if "decode." in note] == ([told] if lost else [])
