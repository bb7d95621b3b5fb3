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
    return Tokenizer.of_gpt2(folder)


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
    assert (ours.marks.begin, ours.marks.end, ours.marks.unspoken) == ((), end, {end})
    assert ours.marks.unwritten == ()
    assert OWN.unwritten == (0, 1, 2), "of ours all but the end"
    assert len(ours) == len(vocabulary()[0])


@pytest.mark.parametrize("text", ODD)
def test_odd_texts_are_cut_as_theirs(ours: Tokenizer, theirs: Any, text: str) -> None:
    ids = ours.encode(text).ids
    assert ids == theirs(text, split_special_tokens=True)["input_ids"]
    assert ours.ids([text]) == [ids]
    assert ours.decode(ids) == text
    assert ours.spelt(text).encode("utf-8", "surrogateescape") == text.encode()


@settings(max_examples=200, deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_is_cut_as_theirs_and_comes_back(ours: Tokenizer, theirs: Any, text: str) -> None:
    found = ours.encode(text)
    assert found.ids == theirs(text, split_special_tokens=True)["input_ids"]
    assert ours.decode(found.ids) == text
    assert all(0 <= start <= end <= len(text) for start, end in found.offsets)


def test_a_text_that_spells_the_end_is_a_text(ours: Tokenizer, theirs: Any) -> None:
    assert ours.marks.end in theirs(f"amber {END}")["input_ids"], "transformers reads a mark there"
    assert ours.marks.end not in ours.encode(f"amber {END}").ids


def test_it_comes_back_from_a_run_as_it_was(ours: Tokenizer, tmp_path: Path) -> None:
    ours.save(tmp_path / "tokenizer.json")
    back = Tokenizer.load(tmp_path / "tokenizer.json")
    assert back.is_like(ours)
    assert back.marks == ours.marks


def test_pieces_are_shown_in_letters_of_the_text(ours: Tokenizer) -> None:
    spaced = next(
        piece for piece in vocabulary()[0] if piece.startswith("Ġ") and piece[1:].isascii() and piece[1:]
    )
    assert ours.pieces([vocabulary()[0][spaced]]) == [spaced[1:]]
    assert ours.pieces([*ours.encode("a\n \x00é").ids, ours.marks.end]) == ["a", "⏎", "␣", "\x00", "é", END]
    assert ours.pieces(ours.encode("ő").ids) == ["<0xC5>", "<0x91>"]
    assert ours.decode([ours.marks.end, *ours.encode("é").ids, ours.marks.end]) == "é"


def test_lists_of_pieces_and_merges_are_enough(ours: Tokenizer, tmp_path: Path) -> None:
    write_lists(tmp_path)
    assert Tokenizer.of_gpt2(tmp_path).is_like(ours)
    path = tmp_path / "merges.txt"
    path.write_text(path.read_text("utf-8").removeprefix("#version: 0.2\n").rstrip("\n"), "utf-8")
    assert Tokenizer.of_gpt2(tmp_path).is_like(ours)


def test_merges_may_be_lines_and_the_end_added(ours: Tokenizer, tmp_path: Path) -> None:
    """As the tokenizers library wrote it for years."""

    def change(told: dict[str, Any]) -> None:
        told["model"]["merges"] = [" ".join(pair) for pair in told["model"]["merges"]]
        pieces = [piece for piece in told["model"]["vocab"] if piece != END]
        told["model"]["vocab"] = {piece: number for number, piece in enumerate(pieces)}
        told["added_tokens"][0]["id"] = len(pieces)

    write_tokenizer(tmp_path)
    edited(change)(tmp_path / "tokenizer.json")
    found = Tokenizer.of_gpt2(tmp_path)
    assert found.marks.end == len(ours) - 1
    assert found.pieces(found.encode(ODD[3]).ids) == ours.pieces(ours.encode(ODD[3]).ids)


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
    "another model": (in_model(type="Unigram"), "its model is 'Unigram', that of a GPT-2 is 'BPE'"),
    "another cut": (
        edited(lambda it: it.update(pre_tokenizer={"type": "Split", "pattern": {"Regex": "(a+)+$"}})),
        "its pre_tokenizer is 'Split', that of a GPT-2 is 'ByteLevel'",
    ),
    "no cut": (edited(lambda it: it.update(pre_tokenizer=None)), "its pre_tokenizer is None"),
    "uncut": (
        edited(lambda it: it["pre_tokenizer"].update(use_regex=False)),
        "does not cut texts as a GPT-2",
    ),
    "a space before": (
        edited(lambda it: it["pre_tokenizer"].update(add_prefix_space=True)),
        "does not cut texts as a GPT-2 does",
    ),
    "cleaned": (edited(lambda it: it.update(normalizer={"type": "NFC"})), "does not cut texts as a GPT-2"),
    "a space by the settings": (beside(add_prefix_space=True), "add_prefix_space is True, a GPT-2 adds"),
    "a mark by the settings": (beside(add_bos_token=True), "add_bos_token is True, a GPT-2 adds nothing"),
    "dropout": (in_model(dropout=0.1), "dropout is 0.1, a GPT-2 has none"),
    "prefixes": (in_model(continuing_subword_prefix="##"), "continuing_subword_prefix is '##', a GPT-2 has"),
    "no merging": (in_model(ignore_merges=True), "ignore_merges is True, a GPT-2 has none"),
    "no vocabulary": (in_model(vocab=None), "its vocabulary is not a list of pieces"),
    "words for numbers": (edited(lambda it: it["model"]["vocab"].update(a="7")), "is not a list of pieces"),
    "a gap": (edited(lambda it: it["model"]["vocab"].update(zz=10**9)), "not numbered 0, 1, 2"),
    "no end": (without(END), r"adds '<\|endoftext\|>' to the vocabulary"),
    "no byte": (without("ÿ"), "the vocabulary lacks 'ÿ', which a GPT-2 needs"),
    "a letter of none": (
        edited(lambda it: it["model"]["vocab"].update({"雾": len(it["model"]["vocab"])})),
        "the piece '雾' is not spelt in the letters of bytes",
    ),
    "an added token": (
        edited(lambda it: it["added_tokens"].append({"id": 700, "content": "[PAD]"})),
        r"adds '\[PAD\]' to the vocabulary, which regard cannot",
    ),
    "an added number": (edited(lambda it: it.update(added_tokens=7)), "adds 7 to the vocabulary"),
    "an added word": (edited(lambda it: it.update(added_tokens=[END])), r"adds '<\|endoftext\|>' to"),
    "the end elsewhere": (
        edited(lambda it: it["added_tokens"][0].update(id=3)),
        r"adds '<\|endoftext\|>' to",
    ),
    "no merges": (in_model(merges=None), "its merges are not a list of two pieces each"),
    "a merge of three": (in_model(merges=["a b", "a b c"]), "merge 2 is 'a b c', it should be two pieces"),
    "a merge of numbers": (in_model(merges=[[1, 2]]), r"merge 1 is \[1, 2\], it should be two pieces"),
    "a merge into nothing": (
        in_model(merges=["a ÿ"]),
        "'a' and 'ÿ' are merged, but not all three are pieces",
    ),
    "a merge twice": (in_model(merges=["a m", "a m"]), "the same two pieces are merged twice"),
    "missing": (Path.unlink, r"missing, and there is no vocab\.json"),
}


@pytest.mark.parametrize(("harm", "sentence"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_vocabulary_is_one_sentence(
    tmp_path: Path, harm: Callable[[Path], Any], sentence: str
) -> None:
    write_tokenizer(tmp_path)
    harm(tmp_path / "tokenizer.json")
    with pytest.raises(CheckpointError, match=sentence) as refused:
        Tokenizer.of_gpt2(tmp_path)
    assert "\n" not in str(refused.value)


def test_damaged_lists_are_one_sentence(tmp_path: Path) -> None:
    write_lists(tmp_path)
    whole = (tmp_path / "merges.txt").read_text("utf-8")
    (tmp_path / "merges.txt").write_text(whole + "lonely\n", "utf-8")
    with pytest.raises(CheckpointError, match=r"merges\.txt: merge \d+ is 'lonely', it should be two pieces"):
        Tokenizer.of_gpt2(tmp_path)
    (tmp_path / "merges.txt").unlink()
    with pytest.raises(
        CheckpointError, match=r"merges\.txt: cannot be read \(No such file or directory\); is"
    ):
        Tokenizer.of_gpt2(tmp_path)


def test_a_run_with_another_byte_level_vocabulary_is_refused(ours: Tokenizer, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    ours.save(path)
    edited(lambda it: it["model"]["vocab"].update({"雾": len(ours)}))(path)
    with pytest.raises(CheckpointError, match="the piece '雾' is not spelt in the letters of bytes"):
        Tokenizer.load(path)
    ours.save(path)
    edited(lambda it: it["pre_tokenizer"].update(use_regex=False))(path)
    with pytest.raises(CheckpointError, match="does not cut texts as a GPT-2"):
        Tokenizer.load(path)
