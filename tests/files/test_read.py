import gzip
import json
import re
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.errors import DataError
from regard.fields.label import Label
from regard.fields.labels import Labels
from regard.fields.tags import Tags, Words
from regard.files.columns import Column
from regard.files.fingerprint import fingerprint
from regard.files.formats import file_format
from regard.files.lines import MAX_LINE_BYTES, SAMPLES, resolve
from regard.files.read import read_rows
from regard.files.row import Row, rows_of

PAIR: dict[str, Column | None] = {"source": None, "target": None}
LABELLED: dict[str, Column | None] = {"text": None, "label": None}


def write(folder: Path, name: str, content: str | bytes) -> str:
    """Writes bytes as they are, text as UTF-8 with its line ends untouched, `.gz` names compressed."""
    data = content.encode() if isinstance(content, str) else content
    (folder / name).write_bytes(gzip.compress(data, mtime=0) if name.endswith(".gz") else data)
    return name


def fields(
    folder: Path, *names: str, columns: dict[str, Column | None], encoding: str = "utf-8"
) -> list[tuple[str, ...]]:
    rows = read_rows(names, columns, encoding=encoding, base=folder)
    return [tuple(row.cells[role] for role in columns) for row in rows]


# The shapes data comes in.


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", "I know.\t我知道。\nGo!\t走开！\n"),
        ("a.tsv", "source\ttarget\nI know.\t我知道。\nGo!\t走开！\n"),
        ("a.tsv", "id\tTGT\tSrc\n1\t我知道。\tI know.\n2\t走开！\tGo!\n"),
        ("a.tsv", "\ufeffI know.\t我知道。\r\nGo!\t走开！\r\n"),
        ("a.tsv", "\ufeffsource\ttarget\r\nI know.\t我知道。\r\n\r\nGo!\t走开！"),
        ("a.csv", "I know.,我知道。\nGo!,走开！\n"),
        ("a.CSV", 'target,source\n我知道。,"I know."\n走开！,Go!\n'),
        (
            "a.jsonl",
            '{"source": "I know.", "target": "我知道。"}\n\n{"tgt": "走开！", "src": "Go!", "n": null}',
        ),
        (
            "a.ndjson",
            '\ufeff{"source": " I know. ", "target": "\\u6211知道。"}\r\n'
            '{"source": "Go!", "target": "走开！"}\r\n',
        ),
    ],
)
def test_records(tmp_path: Path, name: str, content: str, suffix: str) -> None:
    file = write(tmp_path, name + suffix, content)
    assert fields(tmp_path, file, columns=PAIR) == [("I know.", "我知道。"), ("Go!", "走开！")]


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_aligned_text_takes_roles_in_order_of_files(tmp_path: Path, suffix: str) -> None:
    en = write(tmp_path, "train.en" + suffix, "\ufeffI know.\r\n\r\nGo!")
    zh = write(tmp_path, "train.zh" + suffix, "我知道。\n嗨。\n走开！\n")
    assert fields(tmp_path, en, zh, columns=PAIR) == [
        ("I know.", "我知道。"),
        ("", "嗨。"),
        ("Go!", "走开！"),
    ]
    assert fields(tmp_path, en, zh, columns={"source": 2, "target": 1})[0] == ("我知道。", "I know.")


def test_one_role_reads_plain_files_one_after_another(tmp_path: Path) -> None:
    files = [write(tmp_path, "a.txt", "text\ntwo\n"), write(tmp_path, "b.txt", "three")]
    assert fields(tmp_path, *files, columns={"text": None}) == [("text",), ("two",), ("three",)]


def test_shards_each_with_their_own_header(tmp_path: Path) -> None:
    files = [write(tmp_path, "1.tsv", "text\tlabel\na\tx\n"), write(tmp_path, "2.csv", "label,text\ny,b\n")]
    assert fields(tmp_path, *files, columns=LABELLED) == [("a", "x"), ("b", "y")]


def test_columns_by_number_name_and_what_is_left(tmp_path: Path) -> None:
    bare = write(tmp_path, "bare.tsv", "0\tdull .\n1\tfine .\n")
    assert fields(tmp_path, bare, columns={"text": 2, "label": 1}) == [("dull .", "0"), ("fine .", "1")]
    assert fields(tmp_path, bare, columns={"text": 2, "label": None}) == [("dull .", "0"), ("fine .", "1")]
    assert fields(tmp_path, bare, columns={"text": None, "label": 1}) == [("dull .", "0"), ("fine .", "1")]
    named = write(tmp_path, "named.csv", "stars,review\n5,good\n")
    assert fields(tmp_path, named, columns={"text": "review", "label": "stars"}) == [("good", "5")]
    assert fields(tmp_path, named, columns={"text": 2, "label": 1}) == [("good", "5")], (
        "a header, by `review`"
    )


def test_rows_know_where_they_come_from(tmp_path: Path) -> None:
    file = write(tmp_path, "a.csv", 'text,label\n"two\nlines",x\n\nplain,y\n')
    rows = list(read_rows([file], LABELLED, base=tmp_path))
    assert rows == [
        Row({"text": "two\nlines", "label": "x"}, "a.csv", 2),
        Row({"text": "plain", "label": "y"}, "a.csv", 5),
    ]
    assert rows[1].where == "a.csv:5"


def test_csv_quotes(tmp_path: Path) -> None:
    file = write(tmp_path, "a.csv", 'text,label\n"He said ""no"", twice",neg\n')
    assert fields(tmp_path, file, columns=LABELLED) == [('He said "no", twice', "neg")]


def test_tsv_has_no_quoting(tmp_path: Path) -> None:
    file = write(tmp_path, "a.tsv", '"Hi\t嗨\n')
    assert fields(tmp_path, file, columns=PAIR) == [('"Hi', "嗨")]


def test_json_numbers_keep_their_spelling(tmp_path: Path) -> None:
    file = write(tmp_path, "a.jsonl", '{"text": 1.50, "label": 1}\n{"text": 1e3, "label": true}\n')
    assert fields(tmp_path, file, columns=LABELLED) == [("1.50", "1"), ("1e3", "true")]


@settings(deadline=None, max_examples=40)
@given(st.lists(st.text(st.characters(exclude_characters="\0\n\r", codec="utf-8")), min_size=1, max_size=7))
def test_only_lf_and_crlf_end_a_line(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    """Line separators of other alphabets, form feeds and the like must not shift an aligned file."""
    folder = tmp_path_factory.getbasetemp()
    kept = ["x" + text for text in [*texts, "\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e y"]]
    for end in ("\n", "\r\n"):
        file = write(folder, "a.txt", end.join(kept) + end)
        assert fields(folder, file, columns={"text": None}) == [(text.strip(),) for text in kept]


def test_a_lone_carriage_return_ends_nothing(tmp_path: Path) -> None:
    file = write(tmp_path, "a.txt", "one\rstill one\ntwo\r\n")
    assert fields(tmp_path, file, columns={"text": None}) == [("one\rstill one",), ("two",)]


# Encodings.


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("encoding", ["gb18030", "GBK", "big5", "utf-16", "utf-16-be", "utf-32", "utf-8-sig"])
def test_declared_encodings(tmp_path: Path, encoding: str, suffix: str) -> None:
    content = (
        "source\ttarget\r\nI know\t我知道\r\nGo\t走\n"  # U+8D70 and U+6211 hold no byte 0x0A; U+020A does
    )
    if encoding.startswith("utf"):
        content = content.replace("Go", "\u020ao")
    file = write(tmp_path, "a.tsv" + suffix, content.encode(encoding))
    assert fields(tmp_path, file, columns=PAIR, encoding=encoding) == [
        ("I know", "我知道"),
        ("\u020ao" if encoding.startswith("utf") else "Go", "走"),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "fine\nHi 我知道\n".encode("gb18030"),
            r"^a\.txt:2: byte 4 of the line \(0xce\) is not valid utf-8; "
            r'the line is valid gb18030: say so with data\.encoding = "gb18030" in',
        ),
        ("我知道\n".encode("utf-16"), r'a\.txt:1: byte 1 of the line \(0xff\).*data\.encoding = "utf-16"'),
        (
            "一\nna\u00efve\n".encode().replace(b"\xc3\xaf", b"\xef"),
            r"a\.txt:2: byte 3 .*0xef.*declare the encoding .*or convert",
        ),
        ("嗨é".encode()[:-1], r"a\.txt:1: byte 4 of the line \(0xc3\)"),
        (b"ok\n\xed\xa0\x80\n", r"a\.txt:2: byte 1 of the line \(0xed\)"),
        (
            gzip.compress(b"text\n", mtime=0),
            r"a\.txt:1: byte 2 .*gzip-compressed, so its name must end in \.gz",
        ),
        (b"fine\nnot\0fine\n", r"a\.txt:2: holds a NUL character.*utf-16-le"),
    ],
)
def test_wrong_bytes_are_located(tmp_path: Path, content: bytes, message: str) -> None:
    file = write(tmp_path, "a.txt", content)
    with pytest.raises(DataError, match=message):
        fields(tmp_path, file, columns={"text": None})


def test_a_byte_order_mark_does_not_count_as_a_byte_of_the_line(tmp_path: Path) -> None:
    file = write(tmp_path, "a.txt", b"\xef\xbb\xbfab\xff\n")
    with pytest.raises(DataError, match=r"a\.txt:1: byte 3 of the line \(0xff\)"):
        fields(tmp_path, file, columns={"text": None})


def test_utf8_declared_as_something_else(tmp_path: Path) -> None:
    file = write(tmp_path, "a.txt", "嗨。\n")
    with pytest.raises(DataError, match=r'a\.txt:1: .*not valid ascii; .*data\.encoding = "utf-8"'):
        fields(tmp_path, file, columns={"text": None}, encoding="ascii")


def test_truncated_utf16(tmp_path: Path) -> None:
    file = write(tmp_path, "a.txt", "ab\ncd".encode("utf-16")[:-1])
    with pytest.raises(DataError, match=r"a\.txt: cannot be read as utf-16 after line 1"):
        fields(tmp_path, file, columns={"text": None}, encoding="utf-16")


@pytest.mark.parametrize("encoding", ["klingon", "rot13", "base64", "undefined", "a\0b", "../evil", ""])
def test_unknown_encoding(tmp_path: Path, encoding: str) -> None:
    file = write(tmp_path, "a.txt", "text\n")
    with pytest.raises(DataError, match=r"a\.txt: data\.encoding = .* is not a text encoding"):
        fields(tmp_path, file, columns={"text": None}, encoding=encoding)


# Refusals: one sentence, with file, line, value, limit.


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ((3, 5), r"^b has 5 lines but a has 3: b:4 is the first without a partner; the files must"),
        (
            (1_007, 1_003),
            r"^a has 1,007 lines but b has 1,003: a:1004 is the first without a partner; the files must",
        ),
    ],
)
def test_different_line_counts(tmp_path: Path, lengths: tuple[int, int], message: str) -> None:
    for name, length in zip("ab", lengths, strict=True):
        write(tmp_path, name, "x\n" * length)
    with pytest.raises(DataError, match=message):
        fields(tmp_path, "a", "b", columns=PAIR)


@pytest.mark.parametrize("name", ["a.txt", "a.tsv", "a.csv", "a.jsonl", "a.tsv.gz"])
@pytest.mark.parametrize("content", ["", "\ufeff"])
def test_empty_file(tmp_path: Path, name: str, content: str) -> None:
    file = write(tmp_path, name, content)
    with pytest.raises(DataError, match=r"^a\.\w+(\.gz)?: is empty; give a file with at least one record$"):
        fields(tmp_path, file, columns={"text": None})


@pytest.mark.parametrize(
    ("name", "content"), [("a.tsv", "text\tlabel\n"), ("a.csv", "\n\n"), ("a.jsonl", "\n \n")]
)
def test_no_records(tmp_path: Path, name: str, content: str) -> None:
    file = write(tmp_path, name, content)
    with pytest.raises(DataError, match="holds no records, only a header or blank lines"):
        fields(tmp_path, file, columns=LABELLED)


@pytest.mark.parametrize(
    ("name", "content", "columns", "message"),
    [
        (
            "a.tsv",
            "text\tlabel\na\tb\n",
            {"text": "txt"},
            r"^a\.tsv: no column txt; there are text, label; did you mean text\?$",
        ),
        ("a.csv", "id,text\n1,b\n", LABELLED, r"^a\.csv: no column named like label; there are id, text$"),
        ("a.jsonl", '{"id": 7}\n', {"text": "text"}, r"^a\.jsonl:1: no column text; there are id$"),
        ("a.jsonl", '{"text": "a"}\n', {"text": 1}, r"^a\.jsonl:1: no column 1; there are text"),
        ("a.tsv", "Hi\t嗨\nGo\n", PAIR, r"^a\.tsv:2: 1 cell found, 2 needed; a tab must stand between"),
        ("a.csv", "Hi;嗨\n", PAIR, r"^a\.csv:1: 1 cell found, 2 needed; a comma must stand"),
        ("a.tsv", "Hi\t嗨\n", {"source": 0, "target": 1}, r"column 0 for source does not exist"),
        ("a.txt", "Hi\n", {"text": "text"}, r"a\.txt: plain text has no column named text"),
        ("a.txt", "Hi\n", PAIR, r"a\.txt: plain text needs one file for each of source, target, but .* is 1"),
    ],
)
def test_missing_column(
    tmp_path: Path, name: str, content: str, columns: dict[str, Column | None], message: str
) -> None:
    file = write(tmp_path, name, content)
    with pytest.raises(DataError, match=message):
        fields(tmp_path, file, columns=columns)


def test_unprintable_column_names_stay_out_of_messages(tmp_path: Path) -> None:
    file = write(tmp_path, "a.jsonl", '{"\\u001b[31mred\\ud800": 1}\n')
    with pytest.raises(DataError, match=r"there are \[31mred$"):
        fields(tmp_path, file, columns={"text": "text"})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": null}', "text is null; it must be a string, a number, true or false"),
        ('{"text": {"en": "a"}}', "text is an object"),
        ('{"text": ["a"]}', "text is an array"),
        ('{"text": NaN}', "text is not a number"),
        ('{"text": "a\\u0000b"}', "text holds an escaped NUL"),
        ('{"text": "\\ud800"}', "half of a surrogate pair"),
        ('{"text": "a"', "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ('["a"]', "each line must be a JSON object"),
    ],
)
def test_bad_json(tmp_path: Path, line: str, message: str) -> None:
    file = write(tmp_path, "a.jsonl", '{"text": "fine"}\n' + line + "\n")
    with pytest.raises(DataError, match=rf"^a\.jsonl:2: .*{message}"):
        fields(tmp_path, file, columns={"text": None})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": "a", "label": ["b", ["c"]]}', "part 2 of label is an array; it must be a string"),
        ('{"text": "a", "label": ["b", "c\\ud800"]}', "part 2 of label holds an escaped NUL or half"),
        ('{"text": ["a"], "label": ["b"]}', "text is an array"),
    ],
)
def test_bad_lists(tmp_path: Path, line: str, message: str) -> None:
    file = write(tmp_path, "a.jsonl", '{"text": "fine", "label": ["a b", 1.50, true]}\n' + line + "\n")
    rows = read_rows([file], LABELLED, base=tmp_path, fields={"label": Labels(";")})
    assert next(rows).cells["label"] == ["a b", "1.50", "true"]
    with pytest.raises(DataError, match=rf"^a\.jsonl:2: {message}"):
        next(rows)


def test_western_bytes_are_told_what_they_may_be(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes("text\tlabel\nun café noir\tx\n".encode("windows-1252"))
    with pytest.raises(
        DataError, match=r'a\.tsv:2: byte 7 of the line \(0xe9\) .* = "windows-1252", "gb18030"'
    ):
        list(read_rows(["a.tsv"], LABELLED, base=tmp_path))


def test_labels_of_a_list_may_hold_anything(tmp_path: Path) -> None:
    file = write(tmp_path, "a.jsonl", '{"text": "a", "label": ["a;b", " ;c", "a;b"]}\n')
    field = Labels(";")
    (row,) = read_rows([file], LABELLED, base=tmp_path, fields={"label": field})
    assert field.split(row.cells["label"]) == ("a;b", ";c")
    assert field.split("b; a;;b") == ("b", "a")


def test_a_tag_in_a_list_is_not_empty(tmp_path: Path) -> None:
    columns = {"text": None, "tags": None}
    file = write(tmp_path, "a.jsonl", '{"tokens": ["", "a b"], "tags": ["O", "B x"]}\n')
    fields = {"text": Words(), "tags": Tags()}
    (row,) = read_rows([file], columns, base=tmp_path, fields=fields)
    assert row.cells == {"text": ["\u00a0", "a\u00a0b"], "tags": ["O", "B\u00a0x"]}
    file = write(tmp_path, "b.jsonl", '{"tokens": ["a", "b"], "tags": ["O", " "]}\n')
    with pytest.raises(DataError, match=r"^b\.jsonl:1: part 2 of tags is empty; give the word a tag"):
        next(read_rows([file], columns, base=tmp_path, fields=fields))


def test_several_labels_where_one_is_wanted(tmp_path: Path) -> None:
    file = write(tmp_path, "a.jsonl", '{"text": "a", "label": ["b"]}\n')
    with pytest.raises(DataError, match=r"^a\.jsonl:1: label is an array; .* are for the task multilabel"):
        next(read_rows([file], LABELLED, base=tmp_path, fields={"label": Label()}))


def test_a_huge_json_number_costs_nothing(tmp_path: Path) -> None:
    file = write(tmp_path, "a.jsonl", '{"text": ' + "9" * 100_003 + "}\n")
    assert fields(tmp_path, file, columns={"text": None}) == [("9" * 100_003,)]


@pytest.mark.parametrize("content", ['a,b\n"open,b\nc,d\n', 'a,b\n"x"y,b\n', 'a,b\n"' + "x\n" * 70_000])
def test_bad_csv(tmp_path: Path, content: str) -> None:
    file = write(tmp_path, "a.csv", content)
    with pytest.raises(DataError, match=r"^a\.csv:2: not valid CSV .*is a quote left open"):
        fields(tmp_path, file, columns=PAIR)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_line_of_ten_megabytes_is_measured_but_not_held(tmp_path: Path, suffix: str) -> None:
    file = write(tmp_path, "a.txt" + suffix, "short\n" + "x" * 10_000_019 + "\nshort\n")
    tracemalloc.start()
    with pytest.raises(
        DataError, match=r"^a\.txt(\.gz)?:2: the line has 10,000,019 bytes, the limit is 1,000,000"
    ):
        fields(tmp_path, file, columns={"text": None})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 * MAX_LINE_BYTES


def test_counting_a_compressed_bomb_ends(tmp_path: Path) -> None:
    file = write(tmp_path, "a.txt.gz", b"x" * 130_000_000)
    with pytest.raises(DataError, match=r"a\.txt\.gz:1: the line has over 100,\d+,\d+ bytes"):
        fields(tmp_path, file, columns={"text": None})


@pytest.mark.parametrize(("char", "width"), [("x", 1), ("é", 2), ("嗨", 3)])
def test_the_limit_counts_bytes_without_the_line_end(tmp_path: Path, char: str, width: int) -> None:
    longest = char * (MAX_LINE_BYTES // width)
    file = write(tmp_path, "a.txt", longest + "\r\n")
    assert fields(tmp_path, file, columns={"text": None}) == [(longest,)]
    file = write(tmp_path, "a.txt", longest + char + "\n")
    with pytest.raises(DataError, match=f"the line has {(len(longest) + 1) * width:,} bytes"):
        fields(tmp_path, file, columns={"text": None})


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-11], lambda data: b"x" + data, lambda data: data[:40] + b"???" + data[43:]]
)
def test_damaged_gzip(tmp_path: Path, damage: object) -> None:
    data = gzip.compress(b"".join(b"%d\n" % (number * 7919 % 10007) for number in range(3001)))
    assert callable(damage)
    (tmp_path / "a.txt.gz").write_bytes(damage(data))
    with pytest.raises(
        DataError, match=r"^a\.txt\.gz: damaged gzip data after line \d+ .*get the file again"
    ):
        fields(tmp_path, "a.txt.gz", columns={"text": None})


def test_files_that_do_not_go_together(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="plain text cannot be mixed with files of records"):
        fields(tmp_path, "a.tsv", "a.txt", columns=PAIR)
    with pytest.raises(DataError, match="no data files are given for source, target"):
        fields(tmp_path, columns=PAIR)


# Paths.


def test_missing_file_names_the_nearest(tmp_path: Path) -> None:
    write(tmp_path, "train.tsv", "a\n")
    with pytest.raises(DataError, match=r"^trian\.tsv: no such file; did you mean train\.tsv\?$"):
        resolve("trian.tsv", tmp_path)
    with pytest.raises(DataError, match=r"^nowhere/at/all: no such file$"):
        resolve("nowhere/at/all", tmp_path)
    (tmp_path / "link.tsv").symlink_to("link.tsv")
    with pytest.raises(DataError, match=r"^link\.tsv: is a link that leads nowhere"):
        resolve("link.tsv", tmp_path)


@pytest.mark.parametrize(
    ("path", "message"), [("", "is a folder"), ("x" * 5003, "cannot be read"), ("a\0b", "no such file")]
)
def test_paths_that_are_no_files(tmp_path: Path, path: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        resolve(path, tmp_path)


def test_relative_paths_start_from_the_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "recipes").mkdir()
    write(tmp_path / "recipes", "a.txt", "a\n")
    monkeypatch.chdir(tmp_path)
    assert resolve("a.txt", tmp_path / "recipes") == tmp_path / "recipes" / "a.txt"
    assert resolve("recipes/a.txt").read_text() == "a\n"
    assert resolve(str(tmp_path / "recipes" / "a.txt"), Path("elsewhere")).is_file()


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "/etc/passwd",
        "tatoeba_cmn_eng/../../errors.py",
        "tatoeba_cmn_eng/README.md",
        "tatoeba_cmn_eng",
        "",
    ],
)
def test_shipped_names_cannot_leave_the_samples(name: str) -> None:
    with pytest.raises(
        DataError, match=r"not shipped with regard; shipped are mr_sentence_polarity/test\.tsv\.gz, .*tatoeba"
    ):
        resolve("regard:" + name)


@pytest.mark.parametrize(
    ("name", "format"),
    [("a.en.gz", "text"), ("A.TSV.GZ", "tsv"), ("tsv", "text"), ("a.ndjson", "jsonl"), ("x.tsv/a", "text")],
)
def test_format_by_suffix(name: str, format: str) -> None:
    assert file_format(name) == format


def test_fingerprint_sees_bytes_order_and_borders(tmp_path: Path) -> None:
    a, b = write(tmp_path, "a", "one\ntwo\n"), write(tmp_path, "b", "three\n")
    c, d = write(tmp_path, "c", "one\n"), write(tmp_path, "d", "two\nthree\n")
    prints = [fingerprint(files, tmp_path) for files in ([a, b], [b, a], [c, d], [a])]
    assert len(set(prints)) == 4
    assert all(len(print) == 64 for print in prints)
    assert fingerprint([write(tmp_path, "e", "one\ntwo\n"), b], tmp_path) == prints[0]


# What is shipped.


@pytest.mark.parametrize(
    ("name", "columns", "sizes"),
    [
        ("tatoeba_cmn_eng", {"source": 2, "target": 1}, (27_153, 1_000, 1_002)),
        ("mr_sentence_polarity", {"text": 2, "label": 1}, (8_530, 1_066, 1_066)),
    ],
)
def test_samples_are_whole_and_documented(
    name: str, columns: dict[str, Column], sizes: tuple[int, ...]
) -> None:
    splits = [
        list(read_rows([f"regard:{name}/{split}.tsv.gz"], columns)) for split in ("train", "valid", "test")
    ]
    assert tuple(map(len, splits)) == sizes
    assert all(all(row.cells.values()) for rows in splits for row in rows)
    readme = (SAMPLES / name / "README.md").read_text(encoding="utf-8")
    assert all(f"{size:,}" in readme for size in sizes)
    assert "CC BY" in readme


def test_tatoeba_keeps_attribution_and_shares_no_sentence_between_splits() -> None:
    columns = {"english": 1, "chinese": 2, "attribution": 3}
    splits = [
        list(read_rows([f"regard:tatoeba_cmn_eng/{split}.tsv.gz"], columns))
        for split in ("train", "valid", "test")
    ]
    assert all(row.cells["attribution"].startswith("CC-BY 2.0 (France)") for rows in splits for row in rows)
    for role in ("english", "chinese"):
        train, valid, test = ({row.cells[role] for row in rows} for rows in splits)
        assert train.isdisjoint(valid | test)
        assert valid.isdisjoint(test)


def test_reading_is_lazy(tmp_path: Path) -> None:
    file = write(tmp_path, "a.jsonl", json.dumps({"text": "first"}) + "\nbroken\n")
    rows = read_rows([file], {"text": None}, base=tmp_path)
    assert next(rows).cells == {"text": "first"}
    with pytest.raises(DataError, match=r"a\.jsonl:2"):
        next(rows)


@pytest.mark.parametrize(
    ("file", "content", "kept", "faults"),
    [
        ("a.tsv", "one\t1\ntwo\nthree\t3\n", ["one", "three"], ["a.tsv:2: 1 cell found, 2 needed"]),
        (
            "a.jsonl",
            '{"source": "a", "target": "b"}\n[]\n{"source": 1}\n{',
            ["a"],
            ["a.jsonl:2: each line must be", "a.jsonl:3: no column", "a.jsonl:4: not valid JSON"],
        ),
        (
            "a.tsv",
            "one\t1\nt\udcffo\t2\n\0\t3\n",
            ["one", "t\ufffdo", "\ufffd"],
            ["a.tsv:2: byte 2", "a.tsv:3: holds a NUL"],
        ),
        (
            "a.tsv",
            "x" * (MAX_LINE_BYTES + 1) + "\none\t1\n",
            ["one"],
            ["a.tsv:1: the line has 1,000,001 bytes", "a.tsv:1: 1 cell"],
        ),
    ],
    ids=["cells", "objects", "bytes", "length"],
)
def test_faults_can_be_noted_instead(
    tmp_path: Path, file: str, content: str, kept: list[str], faults: list[str]
) -> None:
    (tmp_path / file).write_bytes(content.encode("utf-8", "surrogateescape"))
    noted: list[DataError] = []
    rows = list(read_rows([file], PAIR, base=tmp_path, refuse=noted.append))
    assert [row.cells["source"] for row in rows] == kept
    assert len(noted) == len(faults)
    assert all(str(fault).startswith(start) for fault, start in zip(noted, faults, strict=True))


def test_what_is_asked_becomes_rows() -> None:
    assert [row.cells for row in rows_of(["a", {"text": "b"}], "text")] == [{"text": "a"}, {"text": "b"}]
    (row,) = rows_of([{"context": "c", "question": "q"}], "question", "context")
    assert list(row.cells.items()) == [("question", "q"), ("context", "c")]


@pytest.mark.parametrize(
    ("asked", "roles", "said"),
    [
        (7, ("text",), "input 1: the text must be a string, not 7"),
        ("q", ("question", "context"), 'input 1: give question and context, as in {"question": "…", '),
        ({"question": "q"}, ("question", "context"), "input 1: give question and context"),
        ({"question": "q", "context": 3}, ("question", "context"), "input 1: the context must be a string"),
        (
            {"question": "q", "context": "a\udc00"},
            ("question", "context"),
            "input 1, character 2 of the context: U+DC00 is half of a surrogate pair",
        ),
    ],
)
def test_what_cannot_be_asked(asked: Any, roles: tuple[str, ...], said: str) -> None:
    with pytest.raises(DataError, match=re.escape(said)):
        rows_of([asked], *roles)
