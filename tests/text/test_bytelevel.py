"""A GPT-2's vocabulary cuts texts as transformers does; and whatever is not one is refused in a sentence."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import pre_tokenizers

from gpt2s import END, ODD, their_tokenizer, vocabulary, write_lists
from regard.errors import CheckpointError
from regard.text.bytelevel import LETTERS
from regard.text.tokenizer import OWN, Tokenizer


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    folder = tmp_path_factory.mktemp("gpt2")
    write_tokenizer(folder)
    return Tokenizer.from_gpt2(folder)


@pytest.fixture(scope="module")
def theirs() -> Any:
    return their_tokenizer()


def write_tokenizer(folder: Path) -> None:
    their_tokenizer().save_pretrained(folder)


def test_every_byte_has_its_letter() -> None:
    assert sorted(LETTERS.values()) == list(range(256))
    assert LETTERS.keys() == set(pre_tokenizers.ByteLevel.alphabet())
    assert (LETTERS["Ġ"], LETTERS["Ċ"], LETTERS["a"]) == (ord(" "), ord("\n"), ord("a"))


def test_the_end_is_where_the_vocabulary_has_it(ours: Tokenizer) -> None:
    end = vocabulary()[0][END]
    assert (ours.special.begin, ours.special.end, ours.special.skipped) == ((), end, {end})
    assert ours.special.not_generated == ()
    assert OWN.not_generated == (0, 1, 2), "of ours all but the end"
    assert len(ours) == len(vocabulary()[0])


@pytest.mark.parametrize("text", ODD)
def test_odd_texts_are_cut_as_theirs(ours: Tokenizer, theirs: Any, text: str) -> None:
    ids = ours.encode(text).ids
    assert ids == theirs(text, split_special_tokens=True)["input_ids"]
    assert ours.ids([text]) == [ids]
    assert ours.decode(ids) == text
    assert ours.surface(text).encode("utf-8", "surrogateescape") == text.encode()


@settings(max_examples=200, deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_is_cut_as_theirs_and_comes_back(ours: Tokenizer, theirs: Any, text: str) -> None:
    found = ours.encode(text)
    assert found.ids == theirs(text, split_special_tokens=True)["input_ids"]
    assert ours.decode(found.ids) == text
    assert all(0 <= start <= end <= len(text) for start, end in found.offsets)


def test_a_text_that_spells_the_end_is_a_text(ours: Tokenizer, theirs: Any) -> None:
    assert ours.special.end in theirs(f"amber {END}")["input_ids"], "transformers reads a mark there"
    assert ours.special.end not in ours.encode(f"amber {END}").ids


def test_it_comes_back_from_a_run_as_it_was(ours: Tokenizer, tmp_path: Path) -> None:
    ours.save(tmp_path / "tokenizer.json")
    back = Tokenizer.load(tmp_path / "tokenizer.json")
    assert back.is_like(ours)
    assert back.special == ours.special


def test_pieces_are_shown_in_letters_of_the_text(ours: Tokenizer) -> None:
    spaced = next(
        piece for piece in vocabulary()[0] if piece.startswith("Ġ") and piece[1:].isascii() and piece[1:]
    )
    assert ours.tokens([vocabulary()[0][spaced]]) == [spaced[1:]]
    assert ours.tokens([*ours.encode("a\n \x00é").ids, ours.special.end]) == ["a", "⏎", "␣", "\x00", "é", END]
    assert ours.tokens(ours.encode("ő").ids) == ["<0xC5>", "<0x91>"]
    assert ours.decode([ours.special.end, *ours.encode("é").ids, ours.special.end]) == "é"


def test_lists_of_pieces_and_merges_are_enough(ours: Tokenizer, tmp_path: Path) -> None:
    write_lists(tmp_path)
    assert Tokenizer.from_gpt2(tmp_path).is_like(ours)
    path = tmp_path / "merges.txt"
    path.write_text(path.read_text("utf-8").removeprefix("#version: 0.2\n").rstrip("\n"), "utf-8")
    assert Tokenizer.from_gpt2(tmp_path).is_like(ours)


def test_merges_may_be_lines_and_the_end_added(ours: Tokenizer, tmp_path: Path) -> None:
    """As the tokenizers library wrote it for years."""

    def change(told: dict[str, Any]) -> None:
        told["model"]["merges"] = [" ".join(pair) for pair in told["model"]["merges"]]
        pieces = [piece for piece in told["model"]["vocab"] if piece != END]
        told["model"]["vocab"] = {piece: number for number, piece in enumerate(pieces)}
        told["added_tokens"][0]["id"] = len(pieces)

    write_tokenizer(tmp_path)
    edited(change)(tmp_path / "tokenizer.json")
    found = Tokenizer.from_gpt2(tmp_path)
    assert found.special.end == len(ours) - 1
    assert found.tokens(found.encode(ODD[3]).ids) == ours.tokens(ours.encode(ODD[3]).ids)


def edited(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def edit(path: Path) -> None:
        told = json.loads(path.read_text("utf-8"))
        change(told)
        path.write_text(json.dumps(told), "utf-8")

    return edit


def in_model(**changes: Any) -> Callable[[Path], None]:
    return edited(lambda told: told["model"].update(changes))


def without(piece: str) -> Callable[[Path], None]:
    """Another stands in its place."""
    return edited(lambda told: told["model"]["vocab"].update(zz=told["model"]["vocab"].pop(piece)))


def beside(**told: Any) -> Callable[[Path], Any]:
    return lambda path: path.with_name("tokenizer_config.json").write_text(json.dumps(told))


HOSTILE: dict[str, tuple[Callable[[Path], Any], str]] = {
    "not JSON": (lambda path: path.write_text("{"), "cannot be read as JSON"),
    "deep": (lambda path: path.write_text("[" * 100_000), "cannot be read as JSON"),
    "a list": (lambda path: path.write_text("[]"), "should hold a JSON object"),
    "not text": (lambda path: path.write_bytes(b"\xff\xfe"), "cannot be read"),
    "another model": (in_model(type="Unigram"), "its model is 'Unigram', but a GPT-2 has 'BPE'"),
    "another cut": (
        edited(lambda it: it.update(pre_tokenizer={"type": "Split", "pattern": {"Regex": "(a+)+$"}})),
        "its pre_tokenizer is 'Split', but a GPT-2 has 'ByteLevel'",
    ),
    "no cut": (edited(lambda it: it.update(pre_tokenizer=None)), "its pre_tokenizer is None"),
    "uncut": (
        edited(lambda it: it["pre_tokenizer"].update(use_regex=False)),
        "cuts them in another way than a GPT-2",
    ),
    "a space before": (
        edited(lambda it: it["pre_tokenizer"].update(add_prefix_space=True)),
        "cuts them in another way than a GPT-2",
    ),
    "cleaned": (
        edited(lambda it: it.update(normalizer={"type": "NFC"})),
        "cuts them in another way than a GPT-2",
    ),
    "a space by the settings": (beside(add_prefix_space=True), "add_prefix_space is True, but a GPT-2 adds"),
    "a mark by the settings": (beside(add_bos_token=True), "add_bos_token is True, but a GPT-2 adds nothing"),
    "dropout": (in_model(dropout=0.1), "dropout is 0.1, but a GPT-2 does not use it"),
    "prefixes": (
        in_model(continuing_subword_prefix="##"),
        "continuing_subword_prefix is '##', but a GPT-2 does not use it",
    ),
    "no merging": (in_model(ignore_merges=True), "ignore_merges is True, but a GPT-2 does not use it"),
    "no vocabulary": (in_model(vocab=None), "its vocabulary is not a table of tokens"),
    "words for numbers": (edited(lambda it: it["model"]["vocab"].update(a="7")), "is not a table of tokens"),
    "a gap": (
        edited(lambda it: it["model"]["vocab"].update(zz=10**9)),
        "the ids of its vocabulary are not 0, 1, 2",
    ),
    "no end": (without(END), r"added_tokens has '<\|endoftext\|>'"),
    "no byte": (without("ÿ"), "the vocabulary lacks 'ÿ', which a GPT-2 needs"),
    "a letter of none": (
        edited(lambda it: it["model"]["vocab"].update({"雾": len(it["model"]["vocab"])})),
        "the token '雾' is not spelt in the byte letters of GPT-2",
    ),
    "an added token": (
        edited(lambda it: it["added_tokens"].append({"id": 700, "content": "[PAD]"})),
        r"added_tokens has '\[PAD\]'",
    ),
    "an added number": (edited(lambda it: it.update(added_tokens=7)), "added_tokens has 7, which is not"),
    "an added word": (
        edited(lambda it: it.update(added_tokens=[END])),
        r"added_tokens has '<\|endoftext\|>'",
    ),
    "the end elsewhere": (
        edited(lambda it: it["added_tokens"][0].update(id=3)),
        r"added_tokens has '<\|endoftext\|>'",
    ),
    "no merges": (in_model(merges=None), "its merges are not a list of pairs of tokens"),
    "a merge of three": (in_model(merges=["a b", "a b c"]), "merge 2 is 'a b c', not a pair of tokens"),
    "a merge of numbers": (in_model(merges=[[1, 2]]), r"merge 1 is \[1, 2\], not a pair of tokens"),
    "a merge into nothing": (
        in_model(merges=["a ÿ"]),
        "merges 'a' and 'ÿ', but they or their merged token are missing",
    ),
    "a merge twice": (in_model(merges=["a m", "a m"]), "lists a merge twice"),
    "missing": (Path.unlink, r"missing, and there is no vocab\.json"),
}


@pytest.mark.parametrize(("harm", "sentence"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_vocabulary_is_one_sentence(
    tmp_path: Path, harm: Callable[[Path], Any], sentence: str
) -> None:
    write_tokenizer(tmp_path)
    harm(tmp_path / "tokenizer.json")
    with pytest.raises(CheckpointError, match=sentence) as refused:
        Tokenizer.from_gpt2(tmp_path)
    assert "\n" not in str(refused.value)


def test_damaged_lists_are_one_sentence(tmp_path: Path) -> None:
    write_lists(tmp_path)
    whole = (tmp_path / "merges.txt").read_text("utf-8")
    (tmp_path / "merges.txt").write_text(whole + "lonely\n", "utf-8")
    with pytest.raises(CheckpointError, match=r"merges\.txt: merge \d+ is 'lonely', not a pair of tokens"):
        Tokenizer.from_gpt2(tmp_path)
    (tmp_path / "merges.txt").unlink()
    with pytest.raises(
        CheckpointError, match=r"merges\.txt: cannot be read \(No such file or directory\); is"
    ):
        Tokenizer.from_gpt2(tmp_path)


def test_a_run_with_another_byte_level_vocabulary_is_refused(ours: Tokenizer, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    ours.save(path)
    edited(lambda it: it["model"]["vocab"].update({"雾": len(ours)}))(path)
    with pytest.raises(CheckpointError, match="the token '雾' is not spelt in the byte letters of GPT-2"):
        Tokenizer.load(path)
    ours.save(path)
    edited(lambda it: it["pre_tokenizer"].update(use_regex=False))(path)
    with pytest.raises(CheckpointError, match="cuts them in another way than a GPT-2"):
        Tokenizer.load(path)
