import contextlib
import gzip
import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

import regard
from regard.cli import console
from regard.cli.answers import _write, answers
from regard.files.row import Row
from regard.tasks.prediction import Written
from small_runs import Call
from tiny import continuing

TEXTS = ["一二", "", "三", "  ", "四五六七八"]


def test_answers_arguments_in_their_order(call: Call, translator: Path) -> None:
    answers = [found.text for found in regard.load(translator).predict(["一二三", "四"])]
    assert call("predict", translator, "一二三", "四").stdout == "".join(f"{answer}\n" for answer in answers)


@pytest.mark.parametrize("way", ["input", "file", "gz"])
def test_a_file_or_standard_input_gives_a_line_a_line(
    call: Call, translator: Path, home: Path, way: str
) -> None:
    """Without a line end at its end, and with blank lines, which stay blank."""
    text = "\n".join(TEXTS)
    (home / "in.txt").write_text(text, "utf-8")
    (home / "in.txt.gz").write_bytes(gzip.compress(text.encode()))
    if way == "input":
        result = call("predict", translator, input=text)
    else:
        result = call("predict", translator, "--file", "in.txt" if way == "file" else "in.txt.gz")
    alone = [regard.load(translator).predict(text).text if text.strip() else "" for text in TEXTS]
    assert result.exit_code == 0
    assert result.stdout.split("\n") == [*alone, ""]
    assert result.stderr == ""


def test_a_bar_does_not_swallow_the_answers(
    call: Call, translator: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`regard predict RUN --file in.txt > out.txt` at a terminal."""
    terminal = Console(file=StringIO(), force_terminal=True, width=80)
    monkeypatch.setattr(console, "ERR", terminal)
    (home / "in.txt").write_text("一二\n三\n", "utf-8")
    result = call("predict", translator, "--file", "in.txt")
    assert result.stdout == call("predict", translator, "一二", "三").stdout
    assert "2/2" in terminal.file.getvalue()  # type: ignore[attr-defined]


def test_blank_lines_have_no_label(call: Call, classifier: Path) -> None:
    first, blank, second = call("predict", classifier, input="good film\n\nbad film\n").stdout.splitlines()
    assert {first, second} <= {"yes", "no"}
    assert blank == ""


def test_json_lines(call: Call, translator: Path, classifier: Path) -> None:
    lines = call("predict", translator, "--json", "--top", "2", input="一二\n\n").stdout.splitlines()
    full, blank = map(json.loads, lines)
    assert full["input"] == "一二"
    assert len(full["others"]) == 1
    assert full["score"] >= full["others"][0]["score"]
    assert blank == {"input": "", "text": ""}
    label = json.loads(call("predict", classifier, "--json", "good film").stdout)
    assert label["probability"] == max(label["probabilities"].values())


def test_n_best_are_numbered_lines(call: Call, translator: Path) -> None:
    result = call("predict", translator, "一二", "三", "--beam", "3", "--top", "3")
    cells = [line.split("\t") for line in result.stdout.splitlines()]
    assert [number for number, _, _ in cells] == ["1"] * 3 + ["2"] * 3
    scores = [float(score) for _, score, _ in cells]
    assert scores[:3] == sorted(scores[:3], reverse=True)
    unscored = call("predict", translator, "一二", "--beam", "1", "--top", "1", "--set", "scores=false")
    assert unscored.stdout.startswith("1\t\t")


def test_no_input_gives_no_output(call: Call, translator: Path) -> None:
    result = call("predict", translator, input="")
    assert (result.exit_code, result.stdout) == (0, "")


def test_the_first_answer_does_not_wait_for_the_second_text(translator: Path) -> None:
    read = []

    def texts() -> Iterator[Row]:
        for text in "一二三四":
            read.append(text)
            yield Row({"source": text}, "x", 1)

    trained = regard.load(translator)
    next(answers(trained, texts(), {}, one_by_one=True))
    assert read == ["一"]
    read.clear()
    next(answers(trained, texts(), {}, one_by_one=False))
    assert read == ["一"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["x", "--file", "y"], "error: the inputs and --file y are both given; give one of them"),
        (["x", "--beam", "0"], "error: decode.beam: "),
        (["x", "--top", "9"], "error: decode: n_best (9) cannot exceed beam (2)"),
        (["--file", "nowhere.txt"], "error: nowhere.txt: no such file"),
    ],
)
def test_what_cannot_be_asked(call: Call, translator: Path, arguments: list[str], said: str) -> None:
    result = call("predict", translator, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(said)


def test_a_classifier_does_not_search(call: Call, classifier: Path) -> None:
    result = call("predict", classifier, "x", "--beam", "3")
    assert result.exit_code == 2
    assert result.stderr == "error: beam: a classifier does not search, so it has no such setting\n"


def test_wrong_bytes_in_standard_input(call: Call, translator: Path) -> None:
    result = call("predict", translator, input=b"\xe4\xb8\x80\n\xff\n")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: standard input:2: byte 1 of the line (0xff) is not valid utf-8")


def test_a_reader_that_leaves_is_no_fault(translator: Path) -> None:
    """`regard predict … | head -1`, where head has left before the end; also without any character set."""
    command = [sys.executable, "-m", "regard", "predict", str(translator), "--json"]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PYTHONIOENCODING": "ascii"},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write("一二\n".encode())
        process.stdin.flush()
        assert b'"input": "\\u4e00\\u4e8c"' in process.stdout.readline()
        process.stdout.close()
        process.stdin.write("一二\n".encode() * 100)
        process.stdin.close()
        assert process.stderr.read() == b""
        process.wait(60)


@pytest.mark.parametrize("run", ["translator", "classifier"])
def test_an_input_that_is_cut_is_told(call: Call, run: str, request: pytest.FixtureRequest) -> None:
    folder = request.getfixturevalue(run)
    result = call("predict", folder, "一 " * 400, "一")
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 2
    assert result.stderr.startswith("1 of the texts longer than ")
    first, second = map(json.loads, call("predict", folder, "一 " * 400, "一", "--json").stdout.splitlines())
    assert first["input_cut"] is True
    assert "input_cut" not in second


def test_an_answer_takes_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    _write(1, Written(text="two\nlines\r\n and\u2028more\x00", score=0.0), top=None)
    assert capsys.readouterr().out == "two lines  and more \n"


def test_json_for_a_terminal_that_knows_no_unicode(translator: Path) -> None:
    command = [sys.executable, "-m", "regard", "predict", str(translator), "--json", "一 é"]
    said = subprocess.run(
        command, capture_output=True, check=True, env=os.environ | {"PYTHONIOENCODING": "ascii"}
    )
    assert json.loads(said.stdout.decode("ascii"))["input"] == "一 é"


@pytest.mark.parametrize("closed", ["<&-", ">&-", ">/dev/full"])
def test_streams_that_are_not_there(translator: Path, closed: str) -> None:
    command = (
        f'"{sys.executable}" -m regard predict "{translator}" {"" if closed == "<&-" else "一"} {closed}'
    )
    said = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert "Traceback" not in said.stderr
    assert said.returncode == (2 if closed == ">/dev/full" else 0)


def test_a_table_laid_out_as_for_training(call: Call, classifier: Path, translator: Path, home: Path) -> None:
    (home / "new.csv").write_text('label,text\n,good film 1\n,"bad, film 2"\n', "utf-8")
    asked = call("predict", classifier, "--file", "new.csv", "--json").stdout
    assert [json.loads(line)["input"] for line in asked.splitlines()] == ["good film 1", "bad, film 2"]
    (home / "new.tsv").write_text("one\t一\ntwo\t二\n", "utf-8")
    asked = call("predict", translator, "--file", "new.tsv", "--json").stdout
    assert [json.loads(line)["input"] for line in asked.splitlines()] == ["一", "二"], (
        "column 2, as in the recipe"
    )


def test_a_header_that_contradicts_the_recipe_is_refused(call: Call, translator: Path, home: Path) -> None:
    (home / "new.tsv").write_text("source\ttarget\n一\tone\n", "utf-8")
    refused = call("predict", translator, "--file", "new.tsv")
    assert refused.exit_code == 2
    assert "new.tsv: column 2 is to be the source, but is named target, and another source" in refused.stderr
    (home / "new.csv").write_text("source,target\n一,one\n", "utf-8")
    told = call("predict", translator, "--file", "new.csv", "--json").stdout
    assert json.loads(told)["input"] == "一", "of another suffix, a file may name its own columns"
    told = call("predict", translator, "--file", "new.tsv", "--column", "source=source", "--json").stdout
    assert json.loads(told)["input"] == "一"
    assert (
        "columns.text: unknown" in call("predict", translator, "-f", "new.tsv", "--column", "text=1").stderr
    )
    assert "only a file" in call("predict", translator, "--column", "source=1", input="一").stderr


def test_a_file_in_another_encoding(call: Call, translator: Path, home: Path) -> None:
    (home / "gb.txt").write_bytes("一二\n三四五六七\n".encode("gb18030"))
    refused = call("predict", translator, "--file", "gb.txt")
    assert refused.exit_code == 2
    assert "--encoding gb18030" in refused.stderr
    asked = call("predict", translator, "--file", "gb.txt", "--encoding", "gb18030", "--json").stdout
    assert json.loads(asked.splitlines()[1])["input"] == "三四五六七"


def test_who_types_sees_the_answer_being_written(call: Call, translator: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "regard", "predict", str(translator)]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL) as process:
        os.close(theirs)
        os.write(ours, "一二三\n\n".encode())
        os.write(ours, b"\x04")
        process.wait(60)
        heard = b""
        with contextlib.suppress(OSError):  # a terminal nobody writes to any more ends with an error
            while more := os.read(ours, 4096):
                heard += more
    expected = call("predict", translator, "一二三").stdout.strip()
    assert heard.decode().replace("\r", "").count(f"{expected}\n") == 1


def test_a_continuation_keeps_its_lines_only_when_it_is_alone(
    call: Call, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("text")
    trained = regard.train(continuing(folder), quiet=True)
    search = {"prefix": "a b\nc", "beam": 1}
    given = [f"--set={name}={value}" for name, value in search.items()]
    text = trained.predict("amber", **search).text
    assert text.startswith("a b\nc")
    assert call("predict", folder / "run", "amber", *given).stdout == text + "\n"
    both = call("predict", folder / "run", "amber", "amber", *given).stdout
    assert both == 2 * (text.replace("\n", " ") + "\n")
    told = json.loads(call("predict", folder / "run", "amber", "--json", *given).stdout)
    assert told["text"] == text
