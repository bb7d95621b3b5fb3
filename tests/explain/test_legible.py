import sys
from unicodedata import category
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.explain.legible import ems, graphemes, shortened, stacks, visible, wrapped


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("river", "river"),
        ("白鹭", "白鹭"),
        ("", "∅"),
        ("  ", "␣␣"),
        ("a\u202eb", "a[U+202E]b"),
        ("\x00", "[U+0000]"),
        ("\x1b[31m", "[U+001B][31m"),
        ("a\nb", "a⏎b"),
        ("\u200b", "[U+200B]"),
        ("\ud800", "[U+D800]"),
        ("\uffff", "[U+FFFF]"),
        ("\u3164", "[U+3164]"),
        ("\u0301", "◌\u0301"),
        ("👨‍👩‍👧", "👨‍👩‍👧"),
        ("a\u200db", "a[U+200D]b"),
    ],
)
def test_visible(text, shown):
    assert visible(text) == shown


@given(st.text(alphabet=st.characters(codec=None), max_size=20))
def test_whatever_goes_in_comes_out_as_encodable_xml_without_hidden_characters(text):
    shown = visible(text)
    element = ElementTree.Element("text")
    element.text = shown
    assert ElementTree.fromstring(ElementTree.tostring(element, encoding="utf-8")).text == shown
    assert not [
        char for char in shown if category(char) in {"Cc", "Cs", "Zl", "Zp"} or char in "\u202e\u2066"
    ]


def test_every_code_point_is_safe_alone():
    for code in range(sys.maxunicode + 1):
        shown = visible(chr(code))
        assert category(shown[0]) not in {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}


def test_chinese_is_twice_as_wide_as_latin_and_stacks():
    assert ems("河边") == 2
    assert ems("ab") < 1.2
    assert stacks("▁河边")
    assert not stacks("river")


def test_graphemes_keep_joined_emoji_and_accents_whole():
    assert graphemes("e\u0301👩‍👧河") == ["e\u0301", "👩‍👧", "河"]


@given(st.text(max_size=60), st.floats(3, 30))
def test_shortened_fits(text, limit):
    assert ems(shortened(text, limit)) <= limit


@given(st.text(alphabet="ab 河。", max_size=80), st.floats(4, 20))
def test_wrapped_lines_fit_and_lose_nothing_but_spaces(text, limit):
    lines = wrapped(text, limit)
    assert all(ems(line) <= limit for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_wrapped_breaks_between_words():
    assert wrapped("the quick brown fox", 6) == ["the quick", "brown fox"]
