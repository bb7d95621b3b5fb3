"""Where sentences end."""

import time

import pytest

from regard.text.sentences import sentences

CASES = {
    "marks before spaces": ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
    "not within a word": ("It is 3.5 at example.org now. Yes.", ["It is 3.5 at example.org now.", "Yes."]),
    "line ends are spaces": ("One\ngoes on. Two\n", ["One\ngoes on.", "Two"]),
    "closing signs go along": ('"Stop!" he said. (Why?) So.', ['"Stop!"', "he said.", "(Why?)", "So."]),
    "several marks": ("What?! Well...  Hm.", ["What?!", "Well...", "Hm."]),
    "ideographs need no space": ("我来了。你呢？“好！”他说。", ["我来了。", "你呢？", "“好！”", "他说。"]),
    "none at all": ("no mark here", ["no mark here"]),
    "nothing": (" \n ", []),
}


@pytest.mark.parametrize(("text", "found"), CASES.values(), ids=CASES)
def test_by_marks(text: str, found: list[str]) -> None:
    assert sentences(text, "marks") == found


def test_by_lines() -> None:
    assert sentences("One. Two.\n\n  Three \nFour", "lines") == ["One. Two.", "Three", "Four"]


def test_nothing_is_lost() -> None:
    text = "A b.c d! E?f 。g！ h.\n.. i"
    assert "".join("".join(sentences(text, "marks")).split()) == "".join(text.split())


@pytest.mark.parametrize("run", ["!" * 300_000 + "x", ".'" * 150_000 + "x", "。”" * 150_000])
def test_runs_of_marks_take_linear_time(run: str) -> None:
    began = time.perf_counter()
    sentences(run, "marks")
    assert time.perf_counter() - began < 2
