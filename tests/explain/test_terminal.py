from dataclasses import replace
from io import StringIO

import pytest
from rich.cells import cell_len
from rich.console import Console

from regard.explain.assets import CAVEAT
from regard.explain.explanation import Explanation
from regard.explain.terminal import render
from regard.fields.axis import Axis


def printed(explanation: Explanation, width: int, *, colour: bool = False) -> str:
    console = Console(
        file=StringIO(), width=width, force_terminal=colour, color_system="truecolor" if colour else None
    )
    console.print(render(explanation, width))
    return console.file.getvalue()


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_no_line_is_wider_than_the_console(translation, classification, width):
    for explanation in (translation, classification):
        assert max(map(cell_len, printed(explanation, width).splitlines())) <= width


def test_each_target_piece_has_its_three_strongest_sources_in_line(translation):
    lines = [line for line in printed(translation, 80).splitlines() if " ← " in line]
    assert len(lines) == len(translation.maps[-1].rows)
    weights = translation.map(translation.main).head(None)
    assert lines[0].startswith("Yesterday ← 昨天")
    assert [number for number in lines[0].split() if number[0].isdigit()] == [
        f"{weight:.2f}" for weight in sorted(weights[0].tolist(), reverse=True)[:3]
    ]
    assert len({cell_len(line[: line.index("←")]) for line in lines}) == 1
    first_numbers = {cell_len(line[: line.index("0.")]) for line in lines}
    assert len(first_numbers) == 1


def test_a_classification_is_shaded_and_lists_its_strongest_words(classification):
    plain = printed(classification, 80)
    listed = [line.split()[0] for line in plain.splitlines() if "█" in line]
    assert listed[:3] == ["devastating", "warm", "funny"]
    assert "\x1b[" in printed(classification, 80, colour=True)


def test_trust_and_caveat_end_the_picture(translation):
    shown = " ".join(printed(translation, 80).split())
    assert "The weights go 58%" in shown
    assert shown.endswith(CAVEAT)


def test_what_is_no_attention_has_no_caveat_about_it(classification):
    (pooling,) = classification.maps
    measured = replace(classification, maps=(replace(pooling, holds="share"),))
    assert CAVEAT not in " ".join(printed(measured, 80).split())


def test_a_label_cannot_command_the_terminal_or_the_markup(translation):
    hostile = "\x1b]0;owned\x07[red]\u202e"
    map_ = replace(translation.maps[-1], rows=Axis("target", (hostile,) * 11))
    shown = printed(replace(translation, maps=(map_,), main=map_.site, output=hostile), 80)
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "[U+001B]]0;owned[U+0007][red][U+202E]" in shown


def test_a_long_target_is_cut_and_says_so(large):
    assert "… and 7 more" in printed(large(1, 67), 80)
