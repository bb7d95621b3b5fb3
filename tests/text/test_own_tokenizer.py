"""Whatever regard wrote is read again; what somebody put beside its pieces is not, and never runs."""

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from tokenizers import Tokenizer as Inner

from regard.errors import CheckpointError, DataError
from regard.interop.tokens import FILE, read_tokenizer, write_tokenizer
from regard.text import own_tokenizer
from regard.text.pretokenize import Kind, Space
from regard.text.tokenizer import Tokenizer, TokenizerConfig

TEXTS = {
    False: ["Ein mann , der", "我喜欢学习中文。", "Tom's  dog\nran in 1987!"],
    True: ["我 喜欢 学习 中文 。", "图书馆 在 哪里 ？", "Ein mann"],
}
STYLES = [
    style
    for style in product(get_args(Kind), (False, True), (False, True), get_args(Space))
    if not (style[0] in ("word", "wordpiece") and style[3] == "kept")
]


def learnt(kind: Kind, lowercase: bool = False, segmented: bool = False, space: Space = "one") -> Tokenizer:
    config = TokenizerConfig(kind=kind, vocab_size=300, min_frequency=1, lowercase=lowercase, space=space)
    return Tokenizer.train(config, TEXTS[segmented])


@pytest.mark.parametrize(("kind", "lowercase", "segmented", "space"), STYLES)
def test_all_that_is_learnt_is_read_again(
    tmp_path: Path, kind: Kind, lowercase: bool, segmented: bool, space: Space
) -> None:
    tokenizer = learnt(kind, lowercase, segmented, space)
    tokenizer.save(tmp_path / "tokenizer.json")
    saved = Tokenizer.load(tmp_path / "tokenizer.json")
    write_tokenizer(tokenizer, tmp_path, 7)
    for back in (saved, read_tokenizer(tmp_path / FILE)):
        assert back.names == tokenizer.names
        ids = tokenizer.ids(TEXTS[segmented])
        assert back.ids(TEXTS[segmented]) == ids
        assert list(map(back.decode, ids)) == list(map(tokenizer.decode, ids))


def test_scores_survive_saving_to_the_bit(tmp_path: Path) -> None:
    """The library reads some numbers of JSON as their neighbours, which a resumed run would save."""
    rng = np.random.default_rng(5)
    words = ["".join(rng.choice(list("abcdefghijklm"), size=rng.integers(2, 7))) for _ in range(499)]
    texts = [" ".join(rng.choice(words, size=9)) for _ in range(99)]
    tokenizer = Tokenizer.train(TokenizerConfig(kind="unigram", vocab_size=500), texts)
    for name in ("first.json", "second.json"):
        tokenizer.save(tmp_path / name)
        tokenizer = Tokenizer.load(tmp_path / name)
    assert (tmp_path / "first.json").read_bytes() == (tmp_path / "second.json").read_bytes()


def test_what_an_older_library_left_out_is_as_it_was(tmp_path: Path) -> None:
    tokenizer = learnt("bpe")
    tokenizer.save(tmp_path / "tokenizer.json")
    changed(tmp_path / "tokenizer.json", lambda it: it["model"].pop("ignore_merges"))
    assert Tokenizer.load(tmp_path / "tokenizer.json").is_like(tokenizer)


@pytest.mark.parametrize("lowercase", [False, True])
def test_a_bert_that_is_learnt_here_is_read_again(tmp_path: Path, lowercase: bool) -> None:
    config = TokenizerConfig(kind="wordpiece", vocab_size=99, min_frequency=1, lowercase=lowercase)
    tokenizer = Tokenizer.train_bert(config, TEXTS[False])
    tokenizer.save(tmp_path / "tokenizer.json")
    back = Tokenizer.load(tmp_path / "tokenizer.json")
    assert back.is_like(tokenizer)
    assert back.special == tokenizer.special


def changed(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    told = json.loads(path.read_text("utf-8"))
    change(told)
    path.write_text(json.dumps(told), "utf-8")


def replacing(pattern: dict[str, str], content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": pattern, "content": content}


ENDLESS = replacing({"Regex": "(a+)+$"}, "")
DOUBLING = {"type": "Sequence", "normalizers": [replacing({"String": "a"}, "aa")] * 25}
END = {
    "type": "TemplateProcessing",
    "single": [{"Sequence": {"id": "A", "type_id": 0}}] * 1000,
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
    "special_tokens": {},
}
CUT = {"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 0}
PADS = {
    "strategy": {"Fixed": 10**9},
    "direction": "Right",
    "pad_to_multiple_of": None,
    "pad_id": 0,
    "pad_type_id": 0,
    "pad_token": "<pad>",
}
FLAGS = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False) | {"special": True}
BESIDE: dict[str, dict[str, Any]] = {
    "an endless pattern": {"normalizer": ENDLESS},
    "a pattern after ours": {"normalizer": {"type": "Sequence", "normalizers": [ENDLESS]}},
    "a flood": {"normalizer": DOUBLING},
    "no cleaning": {"normalizer": None},
    "an endless cut": {
        "pre_tokenizer": {
            "type": "Split",
            "pattern": {"Regex": "(a+)+$"},
            "behavior": "Isolated",
            "invert": False,
        }
    },
    "no cut": {"pre_tokenizer": None},
    "another joining": {"decoder": ENDLESS},
    "copies": {"post_processor": END},
    "a truncation": {"truncation": CUT},
    "padding": {"padding": PADS},
    "a panic of the library": {"normalizer": {"type": "Precompiled", "precompiled_charsmap": ""}},
    "an added piece": {"added_tokens": [{"id": 3, "content": "</s>"} | FLAGS]},
}
INSIDE: dict[str, tuple[Kind, dict[str, Any]]] = {
    "endless words": ("wordpiece", {"max_input_chars_per_word": 10**9}),
    "other continuations": ("wordpiece", {"continuing_subword_prefix": "@"}),
    "chance": ("bpe", {"dropout": 0.5}),
    "no bytes": ("bpe", {"byte_fallback": False}),
    "another unknown piece": ("unigram", {"unk_id": 0}),
    "no unknown piece": ("word", {"unk_token": "<other>"}),
}


@pytest.mark.parametrize("kind", get_args(Kind))
@pytest.mark.parametrize("parts", BESIDE.values(), ids=BESIDE)
def test_what_stands_beside_the_pieces_is_ours(tmp_path: Path, kind: Kind, parts: dict[str, Any]) -> None:
    path = tmp_path / "tokenizer.json"
    learnt(kind).save(path)
    changed(path, lambda told: told.update(parts))
    with pytest.raises(
        CheckpointError, match=r"tokenizer\.json: this tokenizer was not made by regard; train one"
    ):
        Tokenizer.load(path)


def test_a_panic_of_the_library_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library panics on such a step, and a panic is no Exception."""
    monkeypatch.setattr(own_tokenizer, "_refuse_steps", lambda path, told: None)
    path = tmp_path / "tokenizer.json"
    learnt("bpe").save(path)
    changed(path, lambda told: told.update(BESIDE["a panic of the library"]))
    with pytest.raises(CheckpointError, match=r"tokenizer\.json: not a tokenizer\.json, or a damaged one \("):
        Tokenizer.load(path)


def test_a_panic_while_encoding_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = learnt("char")
    with pytest.raises(BaseException, match="precompiled") as panic:
        Inner.from_str(json.dumps(json.loads(tokenizer._inner.to_str()) | BESIDE["a panic of the library"]))
    assert not isinstance(panic.value, Exception)

    class Panicking:
        def encode(self, *texts: object, **settings: object) -> object:
            raise panic.value

        encode_batch_fast = encode

    monkeypatch.setattr(tokenizer, "_inner", Panicking())
    monkeypatch.setattr(Tokenizer, "_cache", None)
    for encode in (tokenizer.encode, lambda text: tokenizer.ids([text])):
        with pytest.raises(DataError, match="the tokenizers library failed: "):
            encode("a text")


@pytest.mark.parametrize(("kind", "settings"), INSIDE.values(), ids=INSIDE)
def test_settings_of_a_model_are_ours(tmp_path: Path, kind: Kind, settings: dict[str, Any]) -> None:
    path = tmp_path / "tokenizer.json"
    learnt(kind).save(path)
    changed(path, lambda told: told["model"].update(settings))
    with pytest.raises(
        CheckpointError, match=r"tokenizer\.json: this tokenizer was not made by regard; train one"
    ):
        Tokenizer.load(path)


PIECES: dict[str, tuple[Kind, Callable[[dict[str, Any]], Any], str]] = {
    "so long that forgetting it ends the process": (
        "unigram",
        lambda model: model["vocab"].append(["a" * 200_000, -1.0]),
        "a token of 200,000 characters is longer than any word",
    ),
    "no kind of model": (
        "unigram",
        lambda model: model["vocab"].append(["a" * 200_000, -1.0]) or model.pop("type"),
        "a damaged one",
    ),
    "twice": ("unigram", lambda model: model["vocab"].append(model["vocab"][-1]), "each used once"),
    "numbers": ("unigram", lambda model: model["vocab"].append([{}, 7]), "a damaged one"),
    "nothing": (
        "unigram",
        lambda model: model.update(vocab=[{}, [], 7]),
        "does not begin with the special tokens",
    ),
    "bytes missing": (
        "bpe",
        lambda model: model.update(vocab=dict([*model["vocab"].items()][:9]), merges=[]),
        "its vocabulary does not begin with the special tokens of regard",
    ),
    "a merge of none": ("bpe", lambda model: model.update(merges=[["zz", "z"]]), "a damaged one"),
    "a gap": (
        "char",
        lambda model: model["vocab"].update(zz=10**6),
        "the ids of its vocabulary are not 0, 1, 2",
    ),
    "half a character": (
        "char",
        lambda model: model["vocab"].update({"\ud800": len(model["vocab"])}),
        "half of a surrogate pair",
    ),
    "none": ("word", lambda model: model.pop("vocab"), "its vocabulary is not a table of tokens"),
}


@pytest.mark.parametrize(("kind", "change", "sentence"), PIECES.values(), ids=PIECES)
def test_pieces_are_such_as_are_learnt(
    tmp_path: Path, kind: Kind, change: Callable[[dict[str, Any]], Any], sentence: str
) -> None:
    path = tmp_path / "tokenizer.json"
    learnt(kind).save(path)
    changed(path, lambda told: change(told["model"]))
    with pytest.raises(CheckpointError, match=sentence) as refused:
        Tokenizer.load(path)
    assert "\n" not in str(refused.value)


def test_an_odd_list_of_added_pieces_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    learnt("word").save(path)
    changed(path, lambda told: told.update(added_tokens=[{"id": [], "content": {}}]))
    with pytest.raises(CheckpointError, match="a tokenizer, but not one that regard exported"):
        read_tokenizer(path)
