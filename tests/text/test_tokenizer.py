"""What goes in comes out, at the place where it stood; and no text becomes a special piece."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import get_args

import pytest
import tokenizers as hf
from hypothesis import given, settings
from hypothesis import strategies as st

from regard import durable
from regard.errors import CheckpointError, DataError
from regard.text.pretokenize import Kind
from regard.text.tokenizer import BOS, EOS, PAD, UNK, Encoded, Tokenizer, TokenizerConfig
from regard.text.vocabulary import BYTES, FIRST_BYTE, SPECIALS

KINDS: tuple[Kind, ...] = get_args(Kind)
EXACT: tuple[Kind, ...] = ("bpe", "unigram")

TEXTS = [
    "two young , white males are outside near many bushes .",
    "ein mann , der in einem blauen hemd auf einer leiter steht , putzt ein fenster .",
    "ein junge in einer roten jacke spielt mit einem hund im schnee .",
    "a man in a blue shirt is standing on a ladder cleaning a window .",
    "Tom's dog isn't here; it ran away in 1987!",
    "我喜欢学习中文。你呢？",
    "他们在公园里散步，天气很好。",
    "我不喜欢这个颜色，你喜欢吗？",
] * 3

TOKENIZERS = {
    kind: Tokenizer.train(TokenizerConfig(kind=kind, vocab_size=467, min_frequency=1), TEXTS)
    for kind in KINDS
}

any_text = st.text(st.characters(exclude_categories=("Cs", "Cc")))
mixed_text = st.lists(
    st.sampled_from(
        [*" \t\n\u3000\u00a0ab1!.,▁#<>/我喜欢。ー", "<pad>", "</s>", "<0xE4>", "ein mann", "##", "é́"]
    )
).map("".join)


def seen(text: str, encoded: Encoded) -> list[str]:
    return [text[start:end] for start, end in encoded.offsets]


@pytest.mark.parametrize("kind", EXACT)
@settings(max_examples=300, deadline=None)
@given(text=any_text | mixed_text)
def test_decoding_gives_the_text_back_but_for_white_space(kind: Kind, text: str) -> None:
    tokenizer = TOKENIZERS[kind]
    ids = tokenizer.encode(text).ids
    assert tokenizer.decode(ids) == " ".join(text.split())
    assert UNK not in ids


@pytest.mark.parametrize("kind", [*EXACT, "char", "word"])
@pytest.mark.parametrize("text", TEXTS[:8])
def test_training_texts_come_back_exactly(kind: Kind, text: str) -> None:
    assert TOKENIZERS[kind].decode(TOKENIZERS[kind].encode(text).ids) == text


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=100, deadline=None)
@given(text=any_text | mixed_text)
def test_no_text_becomes_a_special_piece(kind: Kind, text: str) -> None:
    assert not {PAD, BOS, EOS} & set(TOKENIZERS[kind].encode(text).ids)


@pytest.mark.parametrize("kind", KINDS)
def test_special_names_in_training_and_input_are_plain_text(kind: Kind) -> None:
    hostile = "<pad> <unk> <s> </s> <0x41> ▁x"
    tokenizer = Tokenizer.train(TokenizerConfig(kind=kind, vocab_size=499, min_frequency=1), [hostile] * 5)
    ids = tokenizer.encode(hostile).ids
    assert min(ids) > max(PAD, UNK, BOS, EOS)
    assert tokenizer.decode(ids).replace(" ", "") == hostile.replace(" ", "")


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=150, deadline=None)
@given(text=any_text | mixed_text)
def test_offsets_cover_the_visible_text_in_order(kind: Kind, text: str) -> None:
    encoded = TOKENIZERS[kind].encode(text)
    assert len(encoded.ids) == len(encoded.offsets)
    assert encoded.offsets == sorted(encoded.offsets)
    assert not any(piece[:1].isspace() for piece in seen(text, encoded))
    if kind != "wordpiece":  # which drops characters that cannot be seen
        covered = {place for start, end in encoded.offsets for place in range(start, end)}
        assert covered >= {place for place, character in enumerate(text) if not character.isspace()}


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_of_the_vocabulary_spell_what_they_stand_for(kind: Kind) -> None:
    text = "  ein mann ,\tder  我喜欢 in einem hemd。"
    tokenizer = TOKENIZERS[kind]
    encoded = tokenizer.encode(text)
    labels = [label.replace("␣", "") for label in tokenizer.tokens(encoded.ids)]
    assert seen(text, encoded) == labels


@pytest.mark.parametrize("kind", KINDS)
def test_offsets_are_those_of_the_text_before_it_was_lowercased(kind: Kind) -> None:
    lower = TokenizerConfig(kind=kind, vocab_size=467, min_frequency=1, lowercase=True)
    tokenizer = Tokenizer.train(lower, TEXTS)
    text = "İİ  EIN Mann"
    encoded = tokenizer.encode(text)
    assert "".join(dict(zip(encoded.offsets, seen(text, encoded), strict=True)).values()) == "İİEINMann"
    assert tokenizer.decode(encoded.ids).endswith("ein mann")


@pytest.mark.parametrize("kind", EXACT)
def test_the_bytes_of_a_character_share_its_place(kind: Kind) -> None:
    text = "我 嗨雪éhello"
    encoded = TOKENIZERS[kind].encode(text)
    spelt = [
        (FIRST_BYTE + byte, (place, place + 1))
        for place, character in enumerate(text[:5])
        for byte in character.encode()
        if place > 1
    ]
    first = encoded.ids.index(spelt[0][0])
    assert list(zip(encoded.ids, encoded.offsets, strict=True))[first : first + len(spelt)] == spelt
    assert TOKENIZERS[kind].tokens([spelt[0][0]]) == [BYTES["嗨".encode()[0]]]


def test_unknown_pieces_are_shown_and_located() -> None:
    tokenizer = TOKENIZERS["word"]
    text = "ein zebra steht"
    encoded = tokenizer.encode(text)
    assert tokenizer.tokens(encoded.ids) == ["ein", "<unk>", "steht"]
    assert seen(text, encoded) == ["ein", "zebra", "steht"]
    assert tokenizer.decode(encoded.ids) == "ein <unk> steht"


def test_wordpiece_marks_continuations_and_isolates_ideographs() -> None:
    tokenizer = TOKENIZERS["wordpiece"]
    ids = tokenizer.encode("mannfenster我喜").ids
    names = [tokenizer._inner.id_to_token(i) for i in ids]
    assert names[-2:] == ["我", "喜"]
    assert not names[0].startswith("##")
    assert all(name.startswith("##") for name in names[1:-2])
    assert tokenizer.decode(ids) == "mannfenster 我喜"
    assert "".join(tokenizer.tokens(ids)) == "mannfenster我喜"


def test_a_run_of_hashes_is_not_taken_for_a_continuation() -> None:
    tokenizer = Tokenizer.train(TokenizerConfig(vocab_size=300), ["## ##"] * 5)
    assert tokenizer.tokens(tokenizer.encode("## ##").ids) == ["##", "##"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_equals_its_texts_alone(kind: Kind) -> None:
    texts = ("", *TEXTS[:8], "   ", "嗨 zebra")
    tokenizer = TOKENIZERS[kind]
    alone = [tokenizer.encode(text) for text in texts]
    assert tokenizer.ids(texts) == [each.ids for each in alone]
    assert tokenizer.encode("") == tokenizer.encode(" \n ") == ([], [])


def test_decoding_drops_padding_and_sentence_marks() -> None:
    ids = TOKENIZERS["bpe"].encode("ein mann").ids
    assert TOKENIZERS["bpe"].decode([BOS, *ids, EOS, PAD, PAD]) == "ein mann"


@pytest.mark.parametrize("kind", KINDS)
def test_saving_keeps_everything_and_others_can_read_it(kind: Kind, tmp_path: Path) -> None:
    path, again = tmp_path / "tokenizer.json", tmp_path / "again.json"
    TOKENIZERS[kind].save(path)
    loaded = Tokenizer.load(path)
    loaded.save(again)
    assert path.read_bytes() == again.read_bytes()
    assert len(loaded) == len(TOKENIZERS[kind])
    text = "ein Mann <pad> 嗨"
    assert loaded.encode(text) == TOKENIZERS[kind].encode(text)
    plain = hf.Tokenizer.from_file(str(path))
    assert plain.encode(text).ids == loaded.encode(text).ids
    assert plain.decode(plain.encode(text).ids) == loaded.decode(loaded.encode(text).ids)


def damage_of(path: Path, old: str, new: str) -> None:
    content = path.read_text("utf-8")
    assert old in content
    path.write_text(content.replace(old, new), "utf-8")


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_are_refused(kind: Kind, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    TOKENIZERS[kind].save(path)
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(CheckpointError, match=r"tokenizer\.json: cannot be read as JSON .*; is it truncated"):
        Tokenizer.load(path)


@pytest.mark.parametrize("kind", ["wordpiece", "word", "char"])
def test_a_missing_unknown_piece_is_found_at_once(kind: Kind, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    TOKENIZERS[kind].save(path)
    damage_of(path, '"unk_token": "<unk>"', '"unk_token": "<other>"')
    with pytest.raises(CheckpointError, match="not made by regard"):
        Tokenizer.load(path)


def test_foreign_and_absent_files_are_refused(tmp_path: Path) -> None:
    foreign = hf.Tokenizer(hf.models.WordLevel({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))
    foreign.save(str(tmp_path / "foreign.json"))
    with pytest.raises(CheckpointError, match=r"foreign\.json: this tokenizer was not made by regard"):
        Tokenizer.load(tmp_path / "foreign.json")
    with pytest.raises(CheckpointError, match=r"absent\.json: cannot be read \(No such file"):
        Tokenizer.load(tmp_path / "absent.json")


def test_pieces_that_a_text_could_trigger_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    TOKENIZERS["bpe"].save(path)
    trapped = hf.Tokenizer.from_file(str(path))
    trapped.add_special_tokens([SPECIALS[EOS]])
    trapped.save(str(path))
    with pytest.raises(CheckpointError, match="not made by regard"):
        Tokenizer.load(path)


def test_ids_with_gaps_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    tokenizer = TOKENIZERS["word"]
    tokenizer.save(path)
    damage_of(path, f": {len(tokenizer) - 1}\n", f": {len(tokenizer) + 5}\n")
    with pytest.raises(CheckpointError, match="the ids of its vocabulary are not 0, 1, 2"):
        Tokenizer.load(path)


def test_a_file_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    TOKENIZERS["char"].save(tmp_path / "tokenizer.json")
    monkeypatch.setattr(durable.read_bytes, "__defaults__", (101,))
    with pytest.raises(CheckpointError, match=r"tokenizer\.json: .* larger than 101 bytes"):
        Tokenizer.load(tmp_path / "tokenizer.json")


def test_half_characters_are_refused() -> None:
    with pytest.raises(DataError, match=r"text 2, character 4: U\+D83D is half of a surrogate pair"):
        TOKENIZERS["bpe"].ids(["fine", "abc\ud83d"])


HOSTILE = {
    "one word": "abcdefghij" * 10_000,
    "one letter": "a" * 100_000,
    "one mark": "!" * 100_000,
    "ideographs": "我嗨" * 20_000,
    "accents": "a" + "\u0301" * 50_000,
    "spaces": "a" + " \n" * 50_000 + "b",
    "joined emoji": "👩\u200d" * 20_000,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_take_linear_time(kind: Kind, name: str) -> None:
    """Quadratic time would take minutes for these; the limit is generous because the machine may be busy."""
    started = time.process_time()
    TOKENIZERS[kind].encode(HOSTILE[name])
    assert time.process_time() - started < 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_encodes_without_hanging_or_printing() -> None:
    program = """if True:
        import os
        from regard.text.tokenizer import Tokenizer, TokenizerConfig
        tokenizer = Tokenizer.train(TokenizerConfig(), ["ein mann"] * 50)
        tokenizer.ids(["ein mann"] * 500)
        child = os.fork()
        tokenizer.ids(["ein mann"] * 500)
        if child:
            raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, check=True)
    assert done.stdout + done.stderr == b""
