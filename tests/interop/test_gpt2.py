"""GPT-2s of Hugging Face that come, continue as they did there, and leave again; those that must not come."""

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

import regard
from gpt2s import END, ODD, SHAPES, their_tokenizer, vocabulary, write_lists, written
from interop.made import retensored, taught
from regard.errors import CheckpointError, RunError
from regard.files.row import Row
from regard.interop import gpt2
from regard.interop.decoder import read_decoder
from regard.interop.export import export
from regard.interop.importing import import_folder
from regard.tasks import LanguageModel, LanguageModelConfig
from tiny import gpt, told

PROMPTS = [text for text in ODD if text.strip()]


def their_prompts() -> list[list[int]]:
    """The ends of odd texts. Less than two pieces tell nothing: they follow an end."""
    tokenizer, found = their_tokenizer(), []
    for text in PROMPTS:
        cut = (tokenizer(text[at:], split_special_tokens=True)["input_ids"] for at in range(len(text)))
        ids = next(ids for ids in cut if len(ids) <= 16)
        found.append(ids if len(ids) > 1 else [vocabulary()[0][END], *ids])
    return found


@torch.no_grad()
def continued(model: Any, prompts: list[list[int]], n_pieces: int) -> list[tuple[int, ...]]:
    """One after another, of what has a piece."""
    never = list(range(len(vocabulary()[0]), model.config.vocab_size)) or None
    settings = {"do_sample": False, "max_new_tokens": n_pieces, "pad_token_id": 0, "suppress_tokens": never}
    end, answers = vocabulary()[0][END], []
    for prompt in prompts:
        read = torch.tensor([prompt])
        (found,) = model.generate(read, attention_mask=torch.ones_like(read), **settings).tolist()
        new = found[len(prompt) :]
        answers.append(tuple(new[: new.index(end)] if end in new else new))
    return answers


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_logits_and_continuations_are_theirs(tmp_path: Path, shape: dict[str, Any]) -> None:
    model = written(tmp_path / "hf", **shape)
    assert import_folder(tmp_path / "hf", tmp_path / "own"), "it answers by itself"
    own = regard.load(tmp_path / "own", device="cpu")
    n = len(vocabulary()[0])
    tokens_BT = torch.randint(0, n, (5, 23))
    with torch.no_grad():
        expected_NV = model(tokens_BT).logits.flatten(0, 1)[:, :n]
        torch.testing.assert_close(own.model(tokens_BT), expected_NV, rtol=0, atol=1e-5)
    prompts = their_prompts()
    texts = [own.task.tokenizer.decode(ids) for ids in prompts]
    found = own.predict(texts, beam=1, max_length=13)
    expected = continued(model, prompts, 13)
    assert [one.ids for one in found] == expected
    decode = their_tokenizer().decode
    for ids, one in zip(prompts, found, strict=True):
        assert decode(ids, skip_special_tokens=True) + one.text == decode(
            [*ids, *one.ids], skip_special_tokens=True
        )


def test_rows_without_a_piece_are_told(tmp_path: Path) -> None:
    written(tmp_path / "hf", more_rows=5)
    remarks: list[str] = []
    import_folder(tmp_path / "hf", tmp_path / "own", remarks.append)
    (remark,) = remarks
    assert "hf: 5 of 336 rows of the embeddings have no token in the vocabulary and are left out" in remark


def test_probabilities_are_theirs(tmp_path: Path) -> None:
    """Of a text's every piece but the first, and bits of its every character."""
    model = written(tmp_path / "hf", n_positions=300)
    import_folder(tmp_path / "hf", tmp_path / "own")
    text = "the grey heron río 雾雾 😀\ndoesn't stand still"
    (tmp_path / "text.txt").write_text(text, "utf-8")
    own = regard.load(tmp_path / "own", device="cpu")
    end = vocabulary()[0][END]
    read = torch.tensor([[end, *their_tokenizer()(text)["input_ids"], end]])
    with torch.no_grad():
        expected = float(model(read, labels=read).loss)
    metrics = own.evaluate(str(tmp_path / "text.txt")).metrics
    assert metrics["loss"] == pytest.approx(expected, rel=1e-5)
    bits = expected * (read.shape[1] - 1) / len(text) / torch.log(torch.tensor(2.0)).item()
    assert metrics["bits_per_char"] == pytest.approx(bits, rel=1e-5)


def test_old_files_are_read(tmp_path: Path) -> None:
    """Without a prefix, with masks and the tied output beside the weights, in half precision, in lists."""
    written(tmp_path / "new")
    (tmp_path / "old").mkdir()
    tensors = load_file(tmp_path / "new" / "model.safetensors")
    old = {name.removeprefix("transformer."): tensor.half() for name, tensor in tensors.items()}
    for layer in range(2):
        old[f"h.{layer}.attn.bias"] = torch.ones(1, 1, 31, 31)
        old[f"h.{layer}.attn.masked_bias"] = torch.tensor(-1e4)
    old["lm_head.weight"] = old["wte.weight"].clone()
    save_file(old, tmp_path / "old" / "model.safetensors")
    (tmp_path / "old" / "config.json").write_text((tmp_path / "new" / "config.json").read_text())
    write_lists(tmp_path / "old")
    before, after = read_decoder(tmp_path / "new"), read_decoder(tmp_path / "old")
    assert before.config == after.config
    assert before.tokenizer.is_like(after.tokenizer)
    assert before.tensors.keys() == after.tensors.keys()
    assert all(
        torch.equal(before.tensors[name].half().float(), after.tensors[name]) for name in after.tensors
    )


@pytest.mark.parametrize("shape", [{}, SHAPES["untied"]], ids=["tied", "untied"])
def test_what_came_can_leave_and_come_again(tmp_path: Path, shape: dict[str, Any]) -> None:
    written(tmp_path / "hf", **shape)
    import_folder(tmp_path / "hf", tmp_path / "own")
    own = regard.load(tmp_path / "own", device="cpu")
    report = own.export(tmp_path / "out", "hf", PROMPTS)
    assert (report.identical, report.n_compared) == (1.0, len(PROMPTS))
    assert report.difference < 1e-5
    before, after = (load_file(tmp_path / name / "model.safetensors") for name in ("hf", "out"))
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    import_folder(tmp_path / "out", tmp_path / "again")
    again = regard.load(tmp_path / "again", device="cpu")
    assert again.predict(PROMPTS[:3]) == own.predict(PROMPTS[:3])
    assert (again.task_config, again.model_config) == (own.task_config, own.model_config)


def test_what_was_saved_elsewhere_comes_again(tmp_path: Path) -> None:
    """transformers lists the end once more beside the vocabulary."""
    written(tmp_path / "hf")
    import_folder(tmp_path / "hf", tmp_path / "own")
    regard.load(tmp_path / "own", device="cpu").export(tmp_path / "out", "hf", PROMPTS)
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out", local_files_only=True)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out", local_files_only=True)
    model.save_pretrained(tmp_path / "there")
    tokenizer.save_pretrained(tmp_path / "there")
    import_folder(tmp_path / "there", tmp_path / "again")
    before, after = (regard.load(tmp_path / name, device="cpu") for name in ("own", "again"))
    assert before.predict(PROMPTS[:3]) == after.predict(PROMPTS[:3])


def writer(kind: str, config: Any, **changes: Any) -> Any:
    """(task, model) that has learnt a little, with a vocabulary of ours."""
    tokenizer = {"kind": kind, "vocab_size": 60 if kind == "char" else 320, "min_frequency": 1}
    given = {"tokenizer": tokenizer, "max_length": 24} | changes
    rows = [Row({"text": line}, "x", 1) for line in told(90).splitlines() if line]
    task = LanguageModel.fit(LanguageModelConfig.model_validate(given), rows)
    short = [
        Row({"text": text[:20]}, "x", 1) for text in (row.cells["text"] for row in rows) if len(text) > 1
    ]
    return task, taught(config, task, short)


EXPRESSIBLE: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "characters": ("char", gpt(max_positions=25), {}),
    "pieces, untied, lines": (
        "bpe",
        gpt(max_positions=29, tie_embeddings=False, norm_eps=1e-3),
        {"documents": "lines"},
    ),
    "unigram, no bias, one key head": ("unigram", gpt(max_positions=25, bias=False, n_kv_heads=1), {}),
    "one space, paragraphs, relu": (
        "bpe",
        gpt(max_positions=25, activation="relu"),
        {
            "documents": "paragraphs",
            "tokenizer": {"vocab_size": 320, "min_frequency": 1, "space": "one"},
            "decode": {"no_repeat": 2, "min_length": 3, "min_p": 0.1},
        },
    ),
}


@pytest.mark.parametrize(("kind", "config", "changes"), EXPRESSIBLE.values(), ids=EXPRESSIBLE)
def test_a_vocabulary_of_ours_leaves_and_comes_back(
    tmp_path: Path, kind: str, config: Any, changes: dict[str, Any]
) -> None:
    task, model = writer(kind, config, **changes)
    texts = [*told(40, seed=3).split("\n"), "a", "amber\nbirch cedar, 雾 delta ember fjord grove heath inlet"]
    texts += ["😀" * 40, "xyz" * 30, "amb" * 9]
    report = export(task, model, config, tmp_path / "out", "hf", texts)
    assert report.identical == 1.0
    assert report.difference < 1e-4
    import_folder(tmp_path / "out", tmp_path / "own")
    back = regard.load(tmp_path / "own", device="cpu")
    assert back.task.tokenizer.names == task.tokenizer.names
    assert back.task.tokenizer.ids(texts) == task.tokenizer.ids(texts)
    assert back.task_config == task.config
    tokens_BT = torch.randint(0, len(task.tokenizer), (3, 7))
    with torch.no_grad():
        torch.testing.assert_close(back.model(tokens_BT), model(tokens_BT), rtol=0, atol=1e-5)


def test_theirs_continues_by_the_card(tmp_path: Path) -> None:
    """Plain `generate` with do_sample=False gives what `regard predict --beam 1` gives."""
    config = gpt(max_positions=25)
    task, model = writer("bpe", config, documents="lines", decode={"max_length": 9})
    export(task, model, config, tmp_path / "out", "hf", ["amber birch cedar"])
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out", local_files_only=True)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out", local_files_only=True)
    given = tokenizer(["amber bir", "jetty", "delta ember </s>"], return_tensors="pt", padding=True)
    assert given["input_ids"][0].tolist().count(task.input.end) == 1, "where a document begins"
    found = theirs.generate(given["input_ids"], attention_mask=given["attention_mask"], do_sample=False)
    own = regard.Trained(task, task.config, model, config, {}, torch.device("cpu"))
    expected = [
        text + one.text
        for text in ("amber bir", "jetty", "delta ember </s>")
        for one in [own.predict(text, beam=1)]
    ]
    assert tokenizer.batch_decode(found, skip_special_tokens=True) == expected


def test_theirs_continues_by_the_settings_of_a_run_that_draws_nothing(tmp_path: Path) -> None:
    config = gpt(max_positions=25)
    decode = {"sample": False, "beam": 3, "length_penalty": 0, "min_length": 4, "max_length": 9}
    task, model = writer("bpe", config, documents="lines", decode=decode | {"no_repeat": 2})
    report = export(task, model, config, tmp_path / "out", "hf", ["amber birch cedar"])
    assert any("no equivalent: decode.no_repeat" in note for note in report.notes), "it counts the prompt"
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out", local_files_only=True)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out", local_files_only=True)
    prompts = ["amber bir", "jetty", "delta ember"]
    given = tokenizer(prompts, return_tensors="pt", padding=True)
    found = theirs.generate(given["input_ids"], attention_mask=given["attention_mask"])
    own = regard.Trained(task, task.config, model, config, {}, torch.device("cpu"))
    expected = [text + own.predict(text, no_repeat=0).text for text in prompts]
    assert tokenizer.batch_decode(found, skip_special_tokens=True) == expected


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"position": "rotary"}, "position = 'rotary' has no counterpart .* train with position = 'learned'"),
        ({"norm": "post"}, "norm = 'post' has no counterpart in GPT2LMHeadModel; train with norm = 'pre'"),
        ({"activation": "swiglu"}, "activation = 'swiglu' .* train with activation = 'gelu_tanh'"),
    ],
)
def test_what_gpt2_does_not_have_stays(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    config = gpt(max_positions=25, d_model=12, n_heads=3, **changes)
    task, model = writer("char", config)
    with pytest.raises(RunError, match=f"hf: {sentence}"):
        export(task, model, config, tmp_path / "out", "hf", ["amber"])
    with pytest.raises(
        RunError, match="onnx: a language model can only be exported to Hugging Face; export to hf"
    ):
        export(task, model, config, tmp_path / "out", "onnx", ["amber"])
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_export_is_caught_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = gpt(max_positions=25)
    task, model = writer("char", config)
    swapped = {tuple(reversed(ours)): theirs for ours, theirs in gpt2.DENSE.items()}
    monkeypatch.setattr(gpt2, "DENSE", swapped)
    with pytest.raises(RunError, match="does not answer as the original does"):
        export(task, model, config, tmp_path / "out", "hf", ["amber birch", "cedar"])
    assert list(tmp_path.iterdir()) == []


def edited(**changes: Any) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | changes), "utf-8")

    return edit


def without(name: str) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        path = folder / "config.json"
        kept = {key: it for key, it in json.loads(path.read_text("utf-8")).items() if key != name}
        path.write_text(json.dumps(kept), "utf-8")

    return edit


def truncated(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-9])


def a_pickle(folder: Path) -> None:
    with (folder / "model.safetensors").open("wb") as file:
        pickle.dump({"wte": torch.ones(3)}, file)


def only_a_pickle(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


QKV = "transformer.h.1.attn.c_attn.weight"
HOSTILE: dict[str, tuple[Callable[[Path], Any], str]] = {
    "activation": (
        edited(activation_function="silu"),
        "activation_function 'silu' is not supported",
    ),
    "no activation": (
        edited(activation_function=["gelu"]),
        r"\['gelu'\] is not supported",
    ),
    "scaled by layer": (
        edited(scale_attn_by_inverse_layer_idx=True),
        "scale_attn_by_inverse_layer_idx is True, regard's GPT has False",
    ),
    "unscaled": (edited(scale_attn_weights=False), "scale_attn_weights is False, regard's GPT has True"),
    "upcast": (edited(reorder_and_upcast_attn=True), "reorder_and_upcast_attn is True"),
    "a second memory": (edited(add_cross_attention=True), "add_cross_attention is True"),
    "huge width": (edited(n_embd=10**8, n_inner=17), r"tensor wte.weight has shape \(.*, 14\)"),
    "absurd": (edited(n_embd=10**30), "n_embd: .* too large"),
    "huge depth": (edited(n_layer=10**6), "n_layer: Input should be less than or equal to 512"),
    "a layer more": (edited(n_layer=3), r"tensor h.2.\S+ is missing"),
    "heads": (edited(n_head=3), r"config\.json: n_heads .3. must divide d_model .14."),
    "not a number": (edited(n_embd={}), "n_embd: Input should be a valid integer"),
    "no size": (without("n_layer"), "n_layer is missing"),
    "a vocabulary too large": (
        edited(vocab_size=9),
        "vocabulary has 331 tokens, config.json says",
    ),
    "no vocabulary size": (edited(vocab_size="x"), "config.json says vocab_size 'x'"),
    "more rows than there are": (edited(vocab_size=10**18), r"tensor wte.weight has shape \(331, 14\)"),
    "another end": (edited(eos_token_id=5), "eos_token_id is 5, but EOS of this vocabulary is 259"),
    "ends": (edited(eos_token_id=[259, 5]), r"eos_token_id is \[259, 5\], but EOS of this vocabulary"),
    "fewer positions": (edited(n_positions=30), r"tensor wpe.weight has shape \(31, 14\), .* \(30, 14\)"),
    "a long block": (edited(regard_task={"max_length": 31}), "n_positions is 31, but texts may have 31"),
    "another task": (edited(regard_task={"max_lenght": 31}), "max_lenght: Extra inputs"),
    "truncated": (truncated, "not a readable safetensors file"),
    "a pickle by that name": (a_pickle, r"model\.safetensors: not a readable safetensors file"),
    "a pickle": (only_a_pickle, r"missing; other formats \(pickle\) are not read"),
    "a tensor less": (
        retensored(lambda it: it.pop(QKV)),
        r"h.1.attn.c_attn.weight is missing, .* \(14, 42\)",
    ),
    "a tensor more": (
        retensored(lambda it: it.update({"score.weight": torch.ones(3)})),
        r"tensor score.weight does not belong to this architecture",
    ),
    "a tensor twice": (
        retensored(lambda it: it.update({QKV.removeprefix("transformer."): it[QKV] * 2})),
        "two tensors have the same name except for a prefix",
    ),
    "turned": (
        retensored(lambda it: it.update({QKV: it[QKV].T.contiguous()})),
        r"has shape \(42, 14\), config.json requires \(14, 42\)",
    ),
    "not finite": (retensored(lambda it: it[QKV].fill_(torch.nan)), "numbers that are not finite"),
    "integers": (retensored(lambda it: it.update({QKV: torch.ones(14, 42).int()})), "weight is int32"),
    "damaged merges": (
        lambda folder: (folder / "tokenizer.json").write_text(
            (folder / "tokenizer.json").read_text("utf-8").replace('"merges": [', '"merges": [["a", "ÿ"],'),
            "utf-8",
        ),
        "merges 'a' and 'ÿ', but they or their merged token are missing",
    ),
    "tied to an output that differs": (
        retensored(lambda it: it.update({"lm_head.weight": it["transformer.wte.weight"] + 1})),
        r"tensor lm_head.weight differs from wte.weight, though config.json ties them; set tie_word",
    ),
    "untied without an output": (edited(tie_word_embeddings=False), r"tensor lm_head.weight is missing"),
}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("hf")
    written(folder)
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
