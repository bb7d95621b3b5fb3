"""A BERT's vocabulary cuts texts as transformers does; and whatever is not one is refused in a sentence."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berts import PIECES, TEXTS, their_tokenizer, write_tokenizer
from regard.errors import CheckpointError
from regard.text.tokenizer import Tokenizer
from regard.text.wordpiece import MASK, NEEDED

MARKS = {mark: PIECES.index(mark) for mark in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("bert")
    write_tokenizer(made)
    return made


@pytest.fixture(scope="module")
def ours(folder: Path) -> Tokenizer:
    return Tokenizer.from_bert(folder)


@pytest.fixture(scope="module")
def theirs(folder: Path) -> Any:
    return their_tokenizer(folder)


def test_marks_are_where_the_vocabulary_has_them(ours: Tokenizer) -> None:
    assert ours.special.begin == (MARKS["[CLS]"],)
    assert (ours.special.end, ours.special.unknown) == (MARKS["[SEP]"], MARKS["[UNK]"])
    assert len(ours) == len(PIECES)


@settings(max_examples=200, deadline=None)
@given(text=st.text(st.sampled_from("abcdez AEÉé,!我好\t\u0301")))
def test_texts_are_cut_as_theirs(ours: Tokenizer, theirs: Any, text: str) -> None:
    assert ours.with_special_tokens(ours.encode(text).ids) == theirs(text)["input_ids"]
    assert ours.ids([text]) == [ours.encode(text).ids]


def test_two_texts_have_a_mark_between_them_and_a_segment_each(ours: Tokenizer, theirs: Any) -> None:
    first, second = ours.ids(TEXTS[:2])
    expected = theirs(*TEXTS[:2])
    assert ours.with_special_tokens(first, second) == expected["input_ids"]
    assert ours.segments(first, second) == expected["token_type_ids"]
    assert ours.segments(first) == [0] * (len(first) + 2)


def test_what_a_vocabulary_of_ours_frames_is_as_it_was() -> None:
    from regard.text.tokenizer import EOS, TokenizerConfig

    tokenizer = Tokenizer.train(TokenizerConfig(kind="wordpiece", vocab_size=60, min_frequency=1), TEXTS)
    assert tokenizer.with_special_tokens([7, 8]) == [7, 8, EOS]
    assert tokenizer.segments([7, 8]) == [0, 0, 0]


@pytest.mark.parametrize("mark", MARKS)
def test_no_text_is_a_mark(ours: Tokenizer, mark: str) -> None:
    assert not {*MARKS.values()} - {MARKS["[UNK]"]} & set(ours.encode(f"amber {mark} birch").ids)


def test_it_comes_back_from_a_run_as_it_was(ours: Tokenizer, tmp_path: Path) -> None:
    ours.save(tmp_path / "tokenizer.json")
    back = Tokenizer.load(tmp_path / "tokenizer.json")
    assert back.is_like(ours)
    assert back.special == ours.special


def test_pieces_and_text_show_no_marks(ours: Tokenizer) -> None:
    ids = ours.with_special_tokens(ours.encode("unamber birch").ids)
    assert ours.tokens(ids) == ["[CLS]", "un", "a", "m", "b", "er", "birch", "[SEP]"]
    assert ours.decode(ids) == "unamber birch"


def test_a_list_of_words_is_enough(ours: Tokenizer, theirs: Any, tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES) + "\n", "utf-8")
    assert Tokenizer.from_bert(tmp_path).ids(TEXTS) == ours.ids(TEXTS)
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    assert Tokenizer.from_bert(tmp_path).encode("Amber").ids == [MARKS["[UNK]"]]


def edited(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def edit(path: Path) -> None:
        told = json.loads(path.read_text("utf-8"))
        change(told)
        path.write_text(json.dumps(told), "utf-8")

    return edit


HOSTILE: dict[str, tuple[Callable[[Path], Any], str]] = {
    "not JSON": (lambda path: path.write_text("{"), "cannot be read as JSON"),
    "deep": (lambda path: path.write_text("[" * 100_000), "cannot be read as JSON"),
    "a list": (lambda path: path.write_text("[]"), "should hold a JSON object"),
    "not text": (lambda path: path.write_bytes(b"\xff\xfe"), "cannot be read"),
    "another model": (
        edited(lambda it: it["model"].update(type="BPE")),
        "its model is 'BPE', but a BERT",
    ),
    "a pattern": (
        edited(lambda it: it.update(normalizer={"type": "Replace", "pattern": {"Regex": "(a+)+$"}})),
        "its normalizer is 'Replace', but a BERT has 'BertNormalizer'",
    ),
    "no cutting": (edited(lambda it: it.update(pre_tokenizer=None)), "its pre_tokenizer is None"),
    "no vocabulary": (edited(lambda it: it["model"].pop("vocab")), "its vocabulary is not a table of tokens"),
    "words for numbers": (
        edited(lambda it: it["model"]["vocab"].update(amber="7")),
        "is not a table of tokens",
    ),
    "a gap": (
        edited(lambda it: it["model"]["vocab"].update(zz=10**9)),
        "the ids of its vocabulary are not 0, 1, 2",
    ),
    "no mark": (
        edited(lambda it: it["model"]["vocab"].update(CLS=it["model"]["vocab"].pop("[CLS]"))),
        r"lacks \[CLS\], which a BERT needs",
    ),
    "marks alone": (
        edited(
            lambda it: it["model"].update(vocab={mark: place for place, mark in enumerate((*NEEDED, MASK))})
        ),
        "has only special tokens; is it truncated",
    ),
    "other signs": (
        edited(lambda it: it["model"].update(continuing_subword_prefix="@@")),
        "## as in a BERT",
    ),
    "an added token": (
        edited(lambda it: it["added_tokens"].append({"id": len(PIECES), "content": "[E1]"})),
        r"added_tokens has '\[E1\]'",
    ),
    "a mark without its number": (
        edited(lambda it: it.update(added_tokens=["[PAD]"])),
        r"added_tokens has '\[PAD\]'",
    ),
    "an added number": (edited(lambda it: it.update(added_tokens=7)), "added_tokens has 7, which is not"),
    "an added list": (
        edited(lambda it: it.update(added_tokens=[{"id": 0, "content": []}])),
        "added_tokens has {'id': 0,",
    ),
    "a mark elsewhere": (
        edited(lambda it: it["added_tokens"][0].update(id=3)),
        r"added_tokens has '\[PAD\]'",
    ),
    "endless words": (
        edited(lambda it: it["model"].update(max_input_chars_per_word=10_000)),
        "max_input_chars_per_word is 10000, but regard reads 1 to 1,000",
    ),
    "yes for a number": (
        edited(lambda it: it["model"].update(max_input_chars_per_word=True)),
        "max_input_chars_per_word is True, but regard reads 1 to 1,000",
    ),
    "half a character": (
        edited(lambda it: it["model"]["vocab"].update({"\ud800": len(PIECES)})),
        r"the token '\\ud800' holds half of a surrogate pair",
    ),
    "odd cleaning": (edited(lambda it: it["normalizer"].update(lowercase="x")), "lowercase is 'x'"),
    "missing": (Path.unlink, r"missing, and there is no vocab\.txt"),
}


@pytest.mark.parametrize(("harm", "sentence"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_vocabulary_is_one_sentence(
    tmp_path: Path, harm: Callable[[Path], Any], sentence: str
) -> None:
    write_tokenizer(tmp_path)
    harm(tmp_path / "tokenizer.json")
    with pytest.raises(CheckpointError, match=sentence) as refused:
        Tokenizer.from_bert(tmp_path)
    assert "\n" not in str(refused.value)


def test_a_word_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("\n".join([*PIECES, "amber"]), "utf-8")
    with pytest.raises(CheckpointError, match="each used once"):
        Tokenizer.from_bert(tmp_path)
