"""Interactions become histories: every order, block and option against a plain dictionary of lists."""

import random
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from regard.errors import DataError
from regard.files import interactions
from regard.files.interactions import Grouping, Interaction, group
from regard.files.lines import refuse_at_once
from regard.files.read import histories, read_rows

COLUMNS = {"user": None, "item": None, "rating": None, "time": None}


@pytest.fixture(params=[2, 7, 1 << 18], ids=lambda size: f"blocks-of-{size}")
def _block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interactions, "BLOCK", request.param)


def made(seed: int, *, times: bool = True) -> list[Interaction]:
    """101 records of 13 users and 11 items in no order, some said twice."""
    rng = random.Random(seed)
    found = [
        Interaction(
            f"u{rng.randrange(13)}",
            f"i{rng.randrange(11)}",
            str(rng.randrange(40) * 60) if times else None,
            str(rng.randrange(1, 6)),
            f"file:{line}",
        )
        for line in range(1, 98)
    ]
    return [*found, *found[3:7]]


def slow(records: list[Interaction], grouping: Grouping) -> list[tuple[str, list[str]]]:
    """The same in dictionaries."""
    if grouping.min_rating is not None:
        records = [one for one in records if float(one.rating or "") >= grouping.min_rating]
    by_user: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for one in records:
        by_user[one.user].append((float(one.time or 0), one.item))
    found: list[tuple[str, list[str]]] = []
    for user, pairs in by_user.items():
        pairs = sorted(pairs, key=lambda pair: pair[0])
        if records[0].time is not None:
            pairs = list(dict.fromkeys(pairs))
        if grouping.repeats == "first":
            pairs = [pair for at, pair in enumerate(pairs) if pair[1] not in [item for _, item in pairs[:at]]]
        if grouping.repeats == "last":
            pairs = [pair for at, pair in enumerate(pairs) if pair[1] not in [i for _, i in pairs[at + 1 :]]]
        history: list[str] = []
        for at, (time, item) in enumerate(pairs):
            gap = time - pairs[at - 1][0] if at else 0
            if grouping.session_gap is not None and gap > 60 * grouping.session_gap:
                found.append((user, history))
                history = []
            history.append(item)
        found.append((user, history))
    while True:
        n_items = Counter(item for _, items in found for item in items)
        kept = [
            (user, [item for item in items if n_items[item] >= grouping.min_item])
            for user, items in found
            if len(items) >= grouping.min_user
        ]
        if kept == found:
            return [(user, items) for user, items in found if items]
        found = kept


@pytest.mark.usefixtures("_block")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"repeats": "first"},
        {"repeats": "last"},
        {"min_rating": 3},
        {"session_gap": 4.0},
        {"min_user": 6, "min_item": 7},
        {"min_user": 3, "min_item": 5, "session_gap": 6.0, "repeats": "first", "min_rating": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize("times", [True, False])
def test_as_with_dictionaries(options: dict[str, Any], times: bool) -> None:
    grouping = Grouping(**options)
    for seed in range(5):
        records = made(seed, times=times)
        if grouping.session_gap is not None and not times:
            with pytest.raises(DataError, match="session_gap: the files have no column of times"):
                group(records, grouping, refuse_at_once)
            continue
        found = group(records, grouping, refuse_at_once)
        rows = list(found.rows("file"))
        assert [(row.cells["user"], row.cells["items"]) for row in rows] == slow(records, grouping)
        assert all(("times" in row.cells) == times for row in rows)
        effect = found.effect
        lost = effect.n_low + effect.n_duplicates + effect.n_repeats + effect.n_rare
        assert effect.n_read - lost == effect.n_kept == sum(len(row.cells["items"]) for row in rows)
        assert effect.n_users == len({row.cells["user"] for row in rows})
        assert effect.n_items == len({item for row in rows for item in row.cells["items"]})


def test_equal_times_stay_in_the_order_of_the_file_and_are_counted() -> None:
    records = [Interaction("u", item, "7", None, "") for item in ("c", "a", "b")]
    found = group(records, Grouping(), refuse_at_once)
    assert found.row(0, "f").cells["items"] == ["c", "a", "b"]
    assert found.effect.n_equal_times == 2


def test_what_an_option_leaves_out_is_said() -> None:
    grouping = Grouping(min_user=6, min_item=7, min_rating=2, repeats="first", session_gap=30)
    said = "\n".join(group(made(1), grouping, refuse_at_once).effect.sentences(grouping))
    for part in (
        "101 interactions of 13 users, 11 items",
        "min_rating 2 leaves out",
        "count once",
        "repeats",
    ):
        assert part in said
    assert "kept:" in said
    assert "session_gap 30 minutes makes" in said


def write(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, "utf-8")
    return str(folder / name)


def read(*files: str, columns: dict[str, Any] | None = None, **options: Any) -> list[tuple[str, list[str]]]:
    rows = read_rows(files, COLUMNS | (columns or {}), grouping=Grouping(**options))
    return [(row.cells["user"], row.cells["items"]) for row in rows]


RIGHT = [("007", ["a,b", "1.0"]), ("u\n2", ["🙂"])]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", 'user_id,item_id,timestamp\n"u\n2",🙂,3\n007,1.0,9\n007,"a,b",2\n'),
        ("a.csv", '"u\n2",🙂,5,3\n007,1.0,1,9\n007,"a,b",4,2\n'),
        (
            "a.csv",
            'date,movieId,userId\n2024-05-01,🙂,"u\n2"\n2024-05-03 10:00,1.0,007\n2024-05-02,"a,b",007\n',
        ),
        (
            "a.jsonl",
            '{"user":"u\\n2","item":"🙂","time":1}\n{"user":"007","item":1.0,"time":1700000000500}\n'
            '{"user":"007","item":"a,b","time":1700000000400}\n',
        ),
    ],
    ids=["names", "no names", "other names, dates", "json"],
)
def test_every_format_and_odd_names(tmp_path: Path, name: str, text: str) -> None:
    assert sorted(read(write(tmp_path, name, text))) == RIGHT


def test_other_formats_without_names(tmp_path: Path) -> None:
    movielens = write(tmp_path, "ratings.dat", "1::661::3::978302109\n1::1193::5::978300760\n2::661::4::7\n")
    assert read(movielens) == [("1", ["1193", "661"]), ("2", ["661"])]
    assert read(movielens, min_rating=4) == [("1", ["1193"]), ("2", ["661"])]
    lines = write(tmp_path, "sequences.txt", "9 a b\n8 c\n9 d\n")
    assert read(lines) == [("9", ["a", "b", "d"]), ("8", ["c"])]
    assert read(lines, lines="items") == [("1", ["9", "a", "b"]), ("2", ["8", "c"]), ("3", ["9", "d"])]
    two = write(tmp_path, "pairs.tsv", "u\ta\nu\tb\n")
    assert read(two) == [("u", ["a", "b"])]
    assert read(two, columns={"user": 2, "item": 1}) == [("a", ["u"]), ("b", ["u"])]
    assert read(movielens, lines) == [
        ("1", ["1193", "661"]),
        ("2", ["661"]),
        ("9", ["a", "b", "d"]),
        ("8", ["c"]),
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("user,item,time\nu,,3\n", r"a.csv:2: the item is empty; every interaction needs one"),
        ("user,item,time\n,a,3\n", r"a.csv:2: the user is empty"),
        ("user,item,time\nu,a,\n", r"a.csv:2: the time is empty; correct it, or drop the row"),
        ("user,item,time\nu,a,soon\n", r"a.csv:2: the time is 'soon', neither a number nor a date like 2024"),
        ("user,item,time\nu,a,nan\n", r"a.csv:2: the time is 'nan'"),
        ("user,item,time\nu," + 1001 * "a" + ",1\n", r"the item has 1,001 characters.*data.columns.item"),
        ("user,item\n", r"holds no records"),
        ("who,what\nu,a\n", r"a.csv: no column named like user; there are who, what"),
    ],
)
def test_what_is_no_interaction_is_one_sentence(tmp_path: Path, text: str, fault: str) -> None:
    file = write(tmp_path, "a.csv", text)
    with pytest.raises(DataError, match=fault):
        read(file, columns={"item": "item"} if text.startswith("who") else {})


def test_a_rating_that_is_asked_for_must_be_a_number(tmp_path: Path) -> None:
    file = write(tmp_path, "a.csv", "user,item,rating\nu,a,good\n")
    assert read(file) == [("u", ["a"])]
    with pytest.raises(DataError, match=r"a.csv:2: min_rating needs a number, but the rating is 'good'"):
        read(file, min_rating=3)
    with pytest.raises(DataError, match="but the rating is missing"):
        read(write(tmp_path, "b.csv", "user,item\nu,a\n"), min_rating=3)


def test_when_nothing_is_left(tmp_path: Path) -> None:
    file = write(tmp_path, "a.csv", "user,item,time\nu,a,1\nv,b,2\n")
    with pytest.raises(DataError, match=r"no history is left \(min_user 2, min_item 1\); lower"):
        read(file, min_user=2)


def test_files_are_grouped_once_until_they_change(tmp_path: Path) -> None:
    file = write(tmp_path, "a.csv", "user,item,time\nu,a,1\n")
    first = histories([file], COLUMNS, Grouping())
    assert histories([file], COLUMNS, Grouping()) is first
    write(tmp_path, "a.csv", "user,item,time\nu,a,1\nu,b,2\n")
    assert histories([file], COLUMNS, Grouping()).row(0, "f").cells["items"] == ["a", "b"]


def test_the_last_history_of_a_user(tmp_path: Path) -> None:
    file = write(tmp_path, "a.csv", "user,item,time\nu,a,0\nv,c,1\nu,b,7200\n")
    found = histories([file], COLUMNS, Grouping(session_gap=60))
    assert found.row(found.last_of_user["u"], "f").cells["items"] == ["b"]
    assert "w" not in found.last_of_user
