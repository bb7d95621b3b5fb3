"""BERTs of Hugging Face that come, compute what they did there, and leave again; those that must not come."""

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

import regard
from berts import PIECES, SHAPES, TEXTS, their_tokenizer, written
from interop.made import labeller, retensored, texts
from regard.errors import CheckpointError, RunError
from regard.interop import bert, hf_bert
from regard.interop.encoder import read_encoder
from regard.interop.export import export
from regard.interop.importing import import_folder
from regard.layers.inputs import tokens
from regard.text.tokenizer import Tokenizer, TokenizerConfig
from tiny import classifier

HEADS = ("BertModel", "BertForMaskedLM", "BertForTokenClassification")
LABELS = {"id2label": {0: "no", 1: "yes", 2: "perhaps"}}
POSITIONS = "bert.embeddings.position_embeddings.weight"


def their_batch(folder: Path, asked: list[str] | list[tuple[str, str]]) -> dict[str, Any]:
    tokenizer = their_tokenizer(folder)
    return tokenizer(asked, return_tensors="pt", padding=True)


def states(folder: Path, given: dict[str, Any]) -> torch.Tensor:
    lengths_B = given["attention_mask"].sum(-1)
    with torch.no_grad():
        encoded = read_encoder(folder).build()(tokens(given["input_ids"], lengths_B, given["token_type_ids"]))
    found: torch.Tensor = encoded.states_RTD
    return found


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("pairs", [False, True], ids=["texts", "pairs"])
def test_states_are_theirs(tmp_path: Path, shape: dict[str, Any], pairs: bool) -> None:
    model = written(tmp_path, **shape)
    given = their_batch(tmp_path, list(zip(TEXTS, TEXTS[::-1], strict=True)) if pairs else TEXTS)
    keep_BT = given["attention_mask"].bool()
    with torch.no_grad():
        expected = model(**given).last_hidden_state[keep_BT]
    torch.testing.assert_close(states(tmp_path, given)[keep_BT], expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("architecture", HEADS)
def test_a_head_of_another_kind_is_passed_over(tmp_path: Path, architecture: str) -> None:
    model = written(tmp_path / "hf", architecture)
    inner = getattr(model, "bert", model)
    given = their_batch(tmp_path / "hf", TEXTS)
    keep_BT = given["attention_mask"].bool()
    with torch.no_grad():
        expected = inner(**given).last_hidden_state[keep_BT]
    assert not import_folder(tmp_path / "hf", tmp_path / "own"), "nothing that answers"
    for folder in (tmp_path / "hf", tmp_path / "own"):
        torch.testing.assert_close(states(folder, given)[keep_BT], expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("architecture", ["BertModel", "BertForMaskedLM"])
def test_an_encoder_alone_keeps_the_pooler_it_has(tmp_path: Path, architecture: str) -> None:
    written(tmp_path / "hf", architecture)
    import_folder(tmp_path / "hf", tmp_path / "own")
    before, after = (read_encoder(tmp_path / name).tensors for name in ("hf", "own"))
    assert ("pooling.dense.bias" in after) == (architecture == "BertModel")
    assert before.keys() - bert.MASKED_LM.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in after)


def test_the_oldest_names_and_half_precision_are_read(tmp_path: Path) -> None:
    model = written(tmp_path)
    path = tmp_path / "model.safetensors"
    renamed = {
        "bert."
        + name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): it
        for name, it in load_file(path).items()
    }
    save_file({name: tensor.bfloat16() for name, tensor in renamed.items()}, path)
    found = read_encoder(tmp_path).tensors["encoder.embed_norm.weight"]
    assert torch.equal(found, model.embeddings.LayerNorm.weight.bfloat16().float())


def test_an_encoder_alone_answers_nothing_and_says_so(tmp_path: Path) -> None:
    written(tmp_path / "hf")
    import_folder(tmp_path / "hf", tmp_path / "own")
    with pytest.raises(
        RunError, match=r"is only an encoder.*regard embed, or start a training from it with model\.init_from"
    ):
        regard.load(tmp_path / "own")


def logits(model: nn.Module, folder: Path) -> torch.Tensor:
    with torch.no_grad():
        found: torch.Tensor = model(**their_batch(folder, TEXTS)).logits
    return found


def test_a_classifier_answers_as_it_did(tmp_path: Path) -> None:
    model = written(tmp_path / "hf", "BertForSequenceClassification", **LABELS)
    assert import_folder(tmp_path / "hf", tmp_path / "own")
    own = regard.load(tmp_path / "own", device="cpu")
    expected = logits(model, tmp_path / "hf").softmax(-1)
    for answer, row in zip(own.predict(TEXTS), expected.tolist(), strict=True):
        assert list(answer.probabilities) == ["no", "yes", "perhaps"]
        assert list(answer.probabilities.values()) == pytest.approx(row, abs=1e-5)


BLANKS = ["amber [MASK] cedar", "[MASK]", "Cedar, [MASK] un[MASK]!"]


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("called", ["BertForPreTraining", "BertForMaskedLM"])
def test_a_pretrained_one_fills_blanks_as_it_did(tmp_path: Path, shape: dict[str, Any], called: str) -> None:
    """Also where config.json names but one of the heads that the file holds, as the best known one's does."""
    model = written(tmp_path / "hf", "BertForPreTraining", **shape)
    path = tmp_path / "hf" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {"architectures": [called]}), "utf-8")
    assert import_folder(tmp_path / "hf", tmp_path / "own") == "pretrain"
    own = regard.load(tmp_path / "own", device="cpu")
    assert own.task_config.max_length == 28, "the 31 positions without the three marks of a pair"
    given = their_batch(tmp_path / "hf", BLANKS)
    at = given["input_ids"] == PIECES.index("[MASK]")
    with torch.no_grad():
        likely_NV = model(**given).prediction_logits[at][:, : len(PIECES)].softmax(-1)
    blanks = [blank for filled in own.predict(BLANKS) for blank in filled.blanks]
    assert len(blanks) == len(likely_NV) == 4
    for blank, likely_V in zip(blanks, likely_NV, strict=True):
        for one in blank.candidates:
            assert one.probability == pytest.approx(float(likely_V[one.id]), abs=1e-5)
    report = own.export(tmp_path / "out", "hf", TEXTS)
    assert report.identical == 1.0
    import_folder(tmp_path / "out", tmp_path / "again")
    again = regard.load(tmp_path / "again", device="cpu")
    assert again.predict(BLANKS) == own.predict(BLANKS)
    assert again.task_config == own.task_config


def test_hidden_words_that_the_embeddings_do_not_tell_are_passed_over(tmp_path: Path) -> None:
    written(tmp_path / "hf", "BertForPreTraining", tie_word_embeddings=False)
    assert not import_folder(tmp_path / "hf", tmp_path / "own"), "nothing that answers"


@pytest.mark.parametrize("name", ["cls.predictions.bias", "cls.seq_relationship.weight"])
def test_a_pretrained_head_of_another_shape_is_refused(tmp_path: Path, name: str) -> None:
    written(tmp_path, "BertForPreTraining")
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    save_file(tensors | {name: tensors[name][:1].clone()}, path)
    with pytest.raises(CheckpointError, match=rf"tensor {name} has shape"):
        read_encoder(tmp_path)


@pytest.mark.parametrize(
    "name", ["cls.predictions.bias", "cls.predictions.transform.dense.weight", "cls.seq_relationship.bias"]
)
def test_a_pretrained_head_of_which_a_part_is_missing_is_refused(tmp_path: Path, name: str) -> None:
    written(tmp_path, "BertForPreTraining")
    retensored(lambda tensors: tensors.pop(name))(tmp_path)
    with pytest.raises(CheckpointError, match=rf"tensor {name} is missing, config\.json requires one of"):
        read_encoder(tmp_path)


OUTPUT = "cls.predictions.decoder."


@pytest.mark.parametrize(
    ("change", "answers"),
    [
        (lambda it: {f"{OUTPUT}weight": it["bert.embeddings.word_embeddings.weight"].clone()}, True),
        (lambda it: {f"{OUTPUT}bias": it["cls.predictions.bias"].clone()}, True),
        (lambda it: {f"{OUTPUT}bias": it.pop("cls.predictions.bias")}, True),
        (lambda it: {f"{OUTPUT}weight": it["bert.embeddings.word_embeddings.weight"] + 1}, False),
        (lambda it: {f"{OUTPUT}bias": it["cls.predictions.bias"] + 1}, False),
    ],
    ids=["weights twice", "bias twice", "bias elsewhere", "other weights", "another bias"],
)
def test_an_output_beside_the_embeddings_counts_as_transformers_has_it(
    tmp_path: Path, change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]], answers: bool
) -> None:
    """It ties nothing that the file holds twice and that differs; hidden words are then passed over."""
    written(tmp_path / "hf", "BertForPreTraining")
    before = read_encoder(tmp_path / "hf").tensors
    retensored(lambda tensors: tensors.update(change(tensors)))(tmp_path / "hf")
    assert bool(import_folder(tmp_path / "hf", tmp_path / "own")) == answers
    after = read_encoder(tmp_path / "hf").tensors
    assert before.keys() - after.keys() == (set() if answers else bert.MASKED_LM.keys())
    assert all(torch.equal(before[name], after[name]) for name in after)


def test_an_output_of_another_shape_is_refused(tmp_path: Path) -> None:
    written(tmp_path, "BertForPreTraining")
    retensored(lambda tensors: tensors.update({f"{OUTPUT}weight": torch.ones(3, 3)}))(tmp_path)
    with pytest.raises(
        CheckpointError, match=rf"tensor {OUTPUT}weight has shape \(3, 3\), config.json requires"
    ):
        read_encoder(tmp_path)


def test_what_came_can_leave_and_come_again(tmp_path: Path) -> None:
    written(tmp_path / "hf", "BertForSequenceClassification", **LABELS)
    import_folder(tmp_path / "hf", tmp_path / "own")
    own = regard.load(tmp_path / "own", device="cpu")
    report = own.export(tmp_path / "out", "hf", TEXTS)
    assert (report.identical, report.n_compared) == (1.0, len(TEXTS))
    assert report.difference < 1e-5
    before, after = (load_file(tmp_path / name / "model.safetensors") for name in ("hf", "out"))
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    import_folder(tmp_path / "out", tmp_path / "again")
    again = regard.load(tmp_path / "again", device="cpu")
    assert again.predict(TEXTS) == own.predict(TEXTS)
    assert again.task_config == own.task_config


@pytest.mark.parametrize(
    ("names", "separator"),
    [(("a", "b", "c"), ","), (("a, b", "c; d", "e"), "|")],
    ids=["plain", "with commas"],
)
def test_several_labels_stay_apart(tmp_path: Path, names: tuple[str, ...], separator: str) -> None:
    several = {"problem_type": bert.SEVERAL_LABELS, "id2label": dict(enumerate(names))}
    written(tmp_path / "hf", "BertForSequenceClassification", **several)
    assert import_folder(tmp_path / "hf", tmp_path / "own") == "multilabel"
    own = regard.load(tmp_path / "own", device="cpu")
    (answer,) = own.predict(["amber birch"], threshold=1e-6)
    assert answer.text == separator.join(names)


def test_long_texts_are_cut_alike(tmp_path: Path) -> None:
    written(tmp_path / "hf", "BertForSequenceClassification", **LABELS)
    import_folder(tmp_path / "hf", tmp_path / "own")
    own = regard.load(tmp_path / "own", device="cpu")
    assert own.task_config.max_length == 29, "the 31 positions without the two marks"
    report = own.export(tmp_path / "out", "hf", ["amber birch " * 40, *TEXTS])
    assert report.difference < 1e-5


def test_a_bert_with_a_vocabulary_of_ours_leaves_and_comes_back(tmp_path: Path) -> None:
    config = classifier("bert", "pooler", max_positions=300)
    task, model = labeller(config)
    report = export(task, model, config, tmp_path / "out", "hf", texts())
    assert report.identical == 1.0
    import_folder(tmp_path / "out", tmp_path / "own")
    back = regard.load(tmp_path / "own", device="cpu")
    assert back.task.labels == task.labels
    for name, tensor in model.state_dict().items():
        assert torch.equal(back.model.state_dict()[name], tensor)


def test_a_vocabulary_of_ours_leaves_room_for_two_marks(tmp_path: Path) -> None:
    """As every model folder with a BERT does, whatever marks it has."""
    config = classifier("bert", "pooler", max_positions=300)
    task, model = labeller(config)
    export(task, model, config, tmp_path / "out", "hf", texts())
    edited(max_position_embeddings=32, regard_task=None)(tmp_path / "out")
    retensored(lambda it: it.update({POSITIONS: it[POSITIONS][:32].clone()}))(tmp_path / "out")
    import_folder(tmp_path / "out", tmp_path / "own")
    assert regard.load(tmp_path / "own", device="cpu").task_config.max_length == 30
    assert read_encoder(tmp_path / "out").max_length == 30


@pytest.mark.parametrize("more", [0, 5])
def test_rows_without_a_piece_are_told(tmp_path: Path, more: int) -> None:
    written(tmp_path / "hf", vocab_size=len(PIECES) + more)
    remarks: list[str] = []
    import_folder(tmp_path / "hf", tmp_path / "own", remarks.append)
    expected = [
        f"{tmp_path / 'hf'}: 5 of {len(PIECES) + 5} rows of the embeddings have no token in the vocabulary"
    ]
    assert [remark.split(" and are left out")[0] for remark in remarks] == (expected if more else [])


@pytest.mark.parametrize(
    ("kind", "pooling", "sentence"),
    [
        ("bert", "mean", "pooling = 'mean' has no counterpart in BertForSequenceClassification; train with"),
        ("rnn", "mean", "a classifier with a rnn encoder has no counterpart"),
    ],
)
def test_what_transformers_does_not_have_stays(
    tmp_path: Path, kind: str, pooling: str, sentence: str
) -> None:
    config = classifier(kind, pooling, **({"max_positions": 300} if kind == "bert" else {}))
    task, model = labeller(config)
    with pytest.raises(RunError, match=f"hf: {sentence}"):
        export(task, model, config, tmp_path / "out", "hf", texts())
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_export_is_caught_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = classifier("bert", "pooler", max_positions=300)
    task, model = labeller(config)
    swapped = {**bert.LAYER, "self.q": bert.LAYER["self.k"], "self.k": bert.LAYER["self.q"]}
    monkeypatch.setattr(bert, "LAYER", swapped)
    with pytest.raises(RunError, match="does not answer as the original does"):
        export(task, model, config, tmp_path / "out", "hf", texts())
    assert list(tmp_path.iterdir()) == []
    assert hf_bert.correspondence is bert.correspondence


def edited(**changes: Any) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | changes), "utf-8")

    return edit


def truncated(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-9])


def a_pickle(folder: Path) -> None:
    with (folder / "model.safetensors").open("wb") as file:
        pickle.dump({"bert": torch.ones(3)}, file)


def only_a_pickle(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def with_tokenizer(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        path = folder / "tokenizer.json"
        told = json.loads(path.read_text("utf-8"))
        change(told)
        path.write_text(json.dumps(told), "utf-8")

    return edit


def a_vocabulary_of_ours_with_a_pattern(folder: Path) -> None:
    Tokenizer.train(TokenizerConfig(kind="word", min_frequency=1), TEXTS).save(folder / "tokenizer.json")
    pattern = {"type": "Replace", "pattern": {"Regex": "(a+)+$"}, "content": ""}
    with_tokenizer(lambda told: told.update(normalizer=pattern))(folder)


QUERY = "bert.encoder.layer.1.attention.self.query.weight"
HOSTILE: dict[str, tuple[Callable[[Path], Any], str]] = {
    "another model": (edited(model_type="roberta"), r"model_type 'roberta' cannot be imported"),
    "relative positions": (edited(position_embedding_type="relative_key"), "relative positions or decoders"),
    "a decoder": (edited(is_decoder=True), "relative positions or decoders"),
    "activation": (edited(hidden_act="silu"), "hidden_act 'silu' is not supported by regard"),
    "no activation": (edited(hidden_act={"a": 1}), "hidden_act {'a': 1} is not supported by regard"),
    "architectures": (edited(architectures=5, id2label={"0": "\ud800"}), "holds half of a surrogate pair"),
    "huge width": (
        edited(hidden_size=10**8),
        r"tensor embeddings.word_embeddings.weight has shape \(.*, 14\)",
    ),
    "absurd": (edited(hidden_size=10**30), "hidden_size: .* too large"),
    "huge depth": (edited(num_hidden_layers=10**6), "num_hidden_layers: Input should be less than"),
    "a layer more": (edited(num_hidden_layers=3), r"tensor encoder.layer.2.\S+ is missing"),
    "heads": (edited(num_attention_heads=3), "n_heads .3. must divide d_model .14."),
    "not a number": (edited(intermediate_size="x"), "intermediate_size: Input should be a valid integer"),
    "vocabulary": (
        edited(vocab_size=9),
        f"vocabulary has {len(PIECES)} tokens, config.json says",
    ),
    "no vocabulary": (edited(vocab_size=None), r"config\.json says vocab_size None"),
    "labels": (
        edited(problem_type="regression"),
        "a regression with 3 outputs, but regard's classifiers have",
    ),
    "fewer labels than outputs": (
        edited(id2label={"0": "a", "1": "b"}),
        r"id2label is \{'0': 'a', '1': 'b'\}, but the model has 3 outputs; name each of them, from 0 to 2",
    ),
    "a list of labels": (
        edited(id2label=["a", "b", "c"]),
        r"id2label is \['a', 'b', 'c'\], but the model has",
    ),
    "labels alike": (
        edited(id2label={"0": "a", "1": "b", "2": "a"}),
        "the label of output 2 is 'a', which another output has too; give each its own in id2label",
    ),
    "a label without a name": (
        edited(id2label={"0": "a", "1": "", "2": "b"}),
        "the label of output 1 is '', which is not a name; give each its own in id2label",
    ),
    "endless words": (
        with_tokenizer(lambda told: told["model"].update(max_input_chars_per_word=10**9)),
        "max_input_chars_per_word is 1000000000, but regard reads 1 to 1,000",
    ),
    "a pattern": (
        a_vocabulary_of_ours_with_a_pattern,
        r"tokenizer\.json: its model is " r"'WordLevel', but a BERT",
    ),
    "task": (edited(regard_task={"beam": 1}), "beam: Extra inputs"),
    "too long": (
        edited(regard_task={"max_length": 30}),
        "max_position_embeddings is 31, but texts may have 30",
    ),
    "truncated": (truncated, r"model\.safetensors: not a readable safetensors file"),
    "a pickle by that name": (a_pickle, r"model\.safetensors: not a readable safetensors file"),
    "a pickle": (only_a_pickle, r"missing; other formats \(pickle\) are not read"),
    "in several files": (
        lambda folder: (folder / "model.safetensors").rename(folder / "model-00001-of-00001.safetensors"),
        "missing, because the weights are split into several files; save them as one",
    ),
    "a tensor less": (retensored(lambda it: it.pop(QUERY)), r"tensor encoder.layer.1.\S+ is missing"),
    "a tensor more": (
        retensored(lambda it: it.update(x=torch.ones(3))),
        "tensor x does not belong to this architecture",
    ),
    "another shape": (retensored(lambda it: it.update({QUERY: torch.ones(3, 14)})), r"has shape \(3, 14\)"),
    "another pooler": (
        retensored(lambda it: it.update({"bert.pooler.dense.bias": torch.ones(3)})),
        r"tensor pooler.dense.bias has shape \(3,\)",
    ),
    "half a pooler": (
        retensored(lambda it: it.pop("bert.pooler.dense.bias")),
        "tensor pooler.dense.bias is missing",
    ),
    "half a head that answers": (
        retensored(lambda it: it.update({"qa_outputs.weight": torch.ones(2, 14)})),
        "tensor qa_outputs.bias is missing",
    ),
    "beyond any machine": (edited(vocab_size=2**62), "vocab_size is 4611686018427387904, too large"),
    "beyond any number": (edited(vocab_size=10**30), "vocab_size is 10{30}, too large for any machine"),
    "not finite in a byte": (
        retensored(lambda it: it.update({QUERY: it[QUERY].fill_(torch.nan).to(torch.float8_e4m3fn)})),
        "numbers that are not finite",
    ),
    "not finite": (retensored(lambda it: it[QUERY].fill_(torch.nan)), "numbers that are not finite"),
    "integers": (
        retensored(lambda it: it.update({QUERY: torch.ones(14, 14).int()})),
        "query.weight is int32, but weights are floating-point",
    ),
    "no head": (
        retensored(lambda it: [it.pop(f"classifier.{kind}") for kind in ("weight", "bias")]),
        "single_label_classification with 0 outputs",
    ),
}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("hf")
    written(folder, "BertForSequenceClassification", **LABELS)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(("harm", "sentence"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_folder_is_one_sentence(
    tmp_path: Path, good: dict[str, bytes], harm: Callable[[Path], Any], sentence: str
) -> None:
    folder = tmp_path / "hf"
    folder.mkdir()
    for name, content in good.items():
        (folder / name).write_bytes(content)
    harm(folder)
    with pytest.raises(CheckpointError, match=sentence) as refused:
        import_folder(folder, tmp_path / "out")
    assert "\n" not in str(refused.value)
    assert [path.name for path in tmp_path.iterdir()] == ["hf"]


def test_an_existing_folder_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="already exists; choose another"):
        import_folder(tmp_path / "hf", tmp_path)
