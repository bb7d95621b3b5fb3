import json
from pathlib import Path

import pytest

from small_runs import Call


def test_prints_the_answers_and_writes_a_page(call: Call, translator: Path, home: Path) -> None:
    result = call("beams", translator, "一二三", "--beam", "3", "--set", "n_best=2")
    assert result.exit_code == 0
    answers = call("predict", translator, "一二三", "--beam", "3", "--top", "2").stdout
    for line in answers.splitlines():
        assert line.split("\t")[2] in result.stdout
    assert "hypotheses in" in result.stdout
    assert result.stdout.splitlines()[-1] == "page  beams.html"
    assert "</html>" in (home / "beams.html").read_text("utf-8")


def test_json_has_every_beginning(call: Call, translator: Path) -> None:
    told = json.loads(call("beams", translator, "一二三", "--json").stdout)
    first, *others = told["nodes"]
    assert first["text"] == ""
    assert all(told["nodes"][one["parent"]]["step"] == one["step"] - 1 for one in others)
    (best,) = [one for one in others if one["rank"] == 1]
    assert best["text"] == call("predict", translator, "一二三").stdout.strip()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["一", "--set", "beam=1"], "error: decode.beam: only a search with a beam of at least 2 has a tree"),
        ([" "], "error: there is nothing to search for: the text is empty"),
    ],
)
def test_what_cannot_be_asked(call: Call, translator: Path, arguments: list[str], said: str) -> None:
    result = call("beams", translator, *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(said)


def test_a_classifier_has_no_beams(call: Call, classifier: Path) -> None:
    result = call("beams", classifier, "good film")
    assert result.exit_code == 2
    assert "classify models do not search" in result.stderr
