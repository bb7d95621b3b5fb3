"""Time stamps in their many spellings."""

import random
from datetime import datetime, timedelta

import pytest

from regard.files.stamps import NUMBER, SECOND, Stamp, is_date, stamp, written

EPOCH = datetime(1970, 1, 1)
FORMS = (
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S.%f",
    "%Y/%m/%d %H:%M:%S",
    "%Y%m%dT%H%M%S",
    "%d.%m.%Y %H:%M:%S",
)


@pytest.mark.parametrize("form", FORMS)
def test_dates_are_read_as_python_reads_them(form: str) -> None:
    rng = random.Random(form)
    for _ in range(50):
        moment = EPOCH + timedelta(seconds=rng.randrange(-(10**9), 4 * 10**9))
        assert stamp(moment.strftime(form)) == Stamp((moment - EPOCH) // timedelta(microseconds=1), "")


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("2016-7-1", "2016-07-01 00:00:00"),
        ("2016-07", "2016-07-01"),
        ("20160701", "2016-07-01"),
        ("2016-07-01 13:05", "2016-07-01T13:05:00"),
        (" 1.7.2016 ", "2016-07-01"),
    ],
)
def test_what_is_left_out_is_the_first(text: str, same: str) -> None:
    assert is_date(text)
    assert stamp(text) == stamp(same)


@pytest.mark.parametrize(
    ("text", "zone"),
    [
        ("2016-07-01T00:00Z", "+00:00"),
        ("2016-07-01 00:00 +0200", "+02:00"),
        ("2016-07-01T00:00-05", "-05:00"),
    ],
)
def test_a_zone_is_kept_and_changes_no_clock(text: str, zone: str) -> None:
    plain = stamp("2016-07-01")
    assert plain is not None
    assert stamp(text) == Stamp(plain.at, zone)


@pytest.mark.parametrize(
    "text", ["7/1/2016", "2016-13-01", "2016-02-30", "noon", "", "1.7.16", "nan", "inf", "1e300"]
)
def test_what_is_no_time_stamp(text: str) -> None:
    assert stamp(text) is None


def test_numbers_are_counts() -> None:
    assert stamp("2016") == Stamp(2016 * SECOND, NUMBER)
    assert stamp("-0.5") == Stamp(-SECOND // 2, NUMBER)
    assert not is_date("2016")


@pytest.mark.parametrize(
    "text", ["2016-07-01 13:05:00", "2016-07-01 13:05:00.250000", "2016-07-01 13:05:00+02:00", "41.5"]
)
def test_stamps_are_written_as_they_are_read(text: str) -> None:
    found = stamp(text)
    assert found is not None
    assert written(*found) == text
