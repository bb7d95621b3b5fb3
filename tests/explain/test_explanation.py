import errno
from pathlib import Path

import numpy as np
import pytest

from regard.errors import RegardError
from regard.explain.explanation import NOTEBOOK_LIMIT, AttentionMap, Trust
from regard.fields.axis import Axis


def test_head_none_is_the_mean_over_heads(translation):
    cross = translation.map("decoder.layers.2.cross")
    np.testing.assert_allclose(cross.head(None), sum(cross.head(head) for head in range(4)) / 4, atol=1e-7)
    np.testing.assert_array_equal(cross.head(3), cross.weights_HQK[3])


def test_a_head_that_does_not_exist_is_named_with_those_that_do(translation):
    with pytest.raises(RegardError, match=r"decoder.layers.3.cross has no head 4; its heads are 0 to 3"):
        translation.map(translation.main).head(4)


def test_an_unknown_site_names_the_nearest(translation):
    with pytest.raises(RegardError, match=r"no attention at 'decoder.layer.3.cross'; did you mean decoder"):
        translation.map("decoder.layer.3.cross")


def test_strongest_are_the_largest_weights_in_order(translation):
    links = translation.strongest(5)
    weights = translation.map(translation.main).head(None)
    assert [weight for *_, weight in links] == sorted(weights.ravel().tolist(), reverse=True)[:5]
    assert links[0][:2] == ("I", "我")


def test_labels_must_fit_the_weights():
    with pytest.raises(AssertionError, match=r"self: \(2, 3, 5\) does not fit its labels"):
        AttentionMap(
            "self", "", np.zeros((2, 3, 5), np.float32), Axis("q", ("a",) * 5), Axis("k", ("b",) * 3)
        )


def test_a_trust_score_is_a_number_up_to_one():
    with pytest.raises(AssertionError, match="cannot be nan"):
        Trust("never", float("nan"))


def test_as_json_it_holds_the_weights_and_names_each_axis_once(translation):
    plain, packed = translation.to_json(), translation.to_json(packed=True)
    assert [axis["name"] for axis in plain["axes"]] == ["source", "target", "written so far"]
    for drawn, known in zip(plain["maps"], translation.maps, strict=True):
        np.testing.assert_allclose(drawn["weights"], known.weights_HQK, atol=1e-4)
        assert plain["axes"][drawn["rows"]]["labels"] == list(known.rows.labels)
    assert all("weights" not in drawn and drawn["packed"] for drawn in packed["maps"])


def test_files_hold_what_is_returned(translation, tmp_path):
    page, picture = tmp_path / "a.html", tmp_path / "a.svg"
    assert translation.to_html(page) == page.read_text(encoding="utf-8")
    assert translation.to_svg(picture) == picture.read_text(encoding="utf-8")


def test_a_full_disk_leaves_the_page_that_was_there(translation, tmp_path, monkeypatch):
    files = {tmp_path / "page.html": translation.to_html, tmp_path / "map.svg": translation.to_svg}
    for path, write in files.items():
        write(path)
    before = [path.read_text("utf-8") for path in files]
    real = Path.write_text

    def half(path, text, *more, **named):
        real(path, text[:99], *more, **named)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", half)
    for path, write in files.items():
        with pytest.raises(RegardError, match=r"cannot be written \(No space left on device\)"):
            write(path)
    assert [path.read_text("utf-8") for path in files] == before
    assert sorted(tmp_path.iterdir()) == sorted(files)


def test_a_notebook_shows_the_page_or_if_too_large_the_still_picture(translation, large):
    assert translation._repr_html_().startswith('<iframe sandbox="allow-scripts allow-downloads"')
    still = large(31, 257)._repr_html_()
    assert still.startswith('<img alt="attention"')
    assert len(still) <= NOTEBOOK_LIMIT
