"""Axes: which units can be left out."""

from regard.fields.axis import Axis, ended


def test_the_end_of_a_text_is_never_left_out() -> None:
    assert ended("text", ("a", "b", "</s>")).free == [0, 1]


def test_every_patch_of_a_picture_can_be_left_out() -> None:
    patches = Axis("image", tuple(map(str, range(16))), unit="patch", grid=(4, 4))
    assert patches.free == list(range(16))


def test_marks_may_stand_anywhere() -> None:
    assert Axis("image", ("class", "0,0", "0,1"), fixed=frozenset({0})).free == [1, 2]
