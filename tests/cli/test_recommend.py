"""recommend as its user meets it: from a raw table of ratings, and a file of titles, to recommendations."""

import csv
import json
from pathlib import Path

import pytest

import regard
from small_runs import Call, write_ratings

SMALL = ["model.d_model=8", "model.n_heads=2", "model.d_ff=11", "model.n_layers=1", "train.max_steps=9"]
SMALL += ["train.eval_every=3", "train.threads=1", "train.warmup=0", "task.max_length=8"]
TITLES = "item_id,title,genres\n" + "".join(f'item {n},"The {n}th, or 电影",odd\n' for n in range(10))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a trained recommender; not to be changed."""
    folder = tmp_path_factory.mktemp("shop")
    write_ratings(folder / "ratings.csv", 40)
    (folder / "films.csv").write_text(TITLES, "utf-8")
    return folder


@pytest.fixture
def run(shop: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(shop)
    if not (shop / "recipe.toml").exists():
        assert call("init", "ratings.csv", "films.csv").exit_code == 0
        settings = SMALL
        assert call("train", "recipe.toml", *settings).exit_code == 0
    return Path("runs/ratings")


def test_from_raw_ratings_and_titles(call: Call, run: Path) -> None:
    recipe = Path("recipe.toml").read_text("utf-8")
    assert 'titles = "films.csv"' in recipe
    assert 'columns = { user = "user_id", item = "item_id", rating = "rating", time = "timestamp" }' in recipe
    checked = call("check", "recipe.toml")
    assert checked.exit_code == 0, checked.stdout
    assert "1 of 11 items have no title: 'item 10'" in checked.stdout
    assert "interactions of 40 users, 11 items" in checked.stdout
    stored = json.loads((run / "model" / "metrics.json").read_text("utf-8"))
    assert set(stored["baselines"]["scores"]) == {
        "most popular",
        "recently popular",
        "Markov chain",
        "item-kNN",
    }


def test_the_held_out_test_is_scored_again(call: Call, run: Path) -> None:
    stored = json.loads((run / "model" / "metrics.json").read_text("utf-8"))
    found = json.loads(call("eval", run, "--json").stdout)
    assert found["rows"] == 37  # of 40 users have three items or more in the 5-core
    assert found["scores"] == pytest.approx(stored["scores"]["test"])
    assert found["intervals"] == stored["intervals"]["test"]


def test_two_are_compared_on_the_held_out_test(call: Call, run: Path) -> None:
    settings = SMALL
    assert call("train", "recipe.toml", *settings, "run=runs/other", "seed=2").exit_code == 0
    found = json.loads(call("eval", run, "runs/other", "--json").stdout)
    assert {"ndcg@10", "hr@10", "mrr@10"} <= set(found["differences"])
    assert found["runs"][str(run)]["rows"] == 37


def test_a_history_that_nobody_had(call: Call, run: Path) -> None:
    answer = json.loads(call("predict", run, '["item 1", "item 2"]', "--json", "--set", "k=3").stdout)
    assert len(answer["items"]) == 3
    assert {one["item"] for one in answer["items"]}.isdisjoint({"item 1", "item 2"})
    trained = regard.load(run)
    assert [one.item for one in trained.predict([["item 1", "item 2"]], k=3)[0].items] == [
        one["item"] for one in answer["items"]
    ]


def test_a_user_of_the_training_data(call: Call, run: Path) -> None:
    history = regard.load(run).history("u03")
    assert len(history) > 1
    asked = json.loads(call("predict", run, "--user", "u03", "--json").stdout)
    assert asked["input"] == history
    assert asked["items"] == json.loads(call("predict", run, json.dumps(history), "--json").stdout)["items"]
    page = call("explain", run, "--user", "u03", "--out", "user.html", "--svg", "user.svg")
    assert page.exit_code == 0, page.stderr
    for verb in ("predict", "explain"):
        nobody = call(verb, run, "--user", "nobody")
        assert nobody.exit_code == 2
        assert "user 'nobody': not in ratings.csv; give a history instead" in nobody.stderr
        both = call(verb, run, "item 1", "--user", "u03")
        assert both.exit_code == 2
        assert "--user u03: stands instead of an input; leave out one of them" in both.stderr


def test_files_of_histories_and_of_interactions_become_lists(call: Call, run: Path) -> None:
    """A row for each item; who is cold gets none, and is told."""
    Path("lines.txt").write_text('["item 1", "item 2"]\n["no such item"]\n\n["item 4"]\n', "utf-8")
    told = call("predict", run, "--file", "lines.txt", "--k", "2", "--out", "lists.csv")
    assert told.exit_code == 0, told.stderr
    assert "nothing is recommended for 1 of the histories: they hold no item" in " ".join(told.stderr.split())
    with Path("lists.csv").open(encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    assert [(row["line"], row["rank"]) for row in found] == [("1", "1"), ("1", "2"), ("4", "1"), ("4", "2")]
    answer = json.loads(call("predict", run, '["item 1", "item 2"]', "--json", "--k", "2").stdout)
    assert [row["item"] for row in found[:2]] == [one["item"] for one in answer["items"]]

    rows = ["user_id,item_id,rating,timestamp", "new,item 2,5,20", "old,item 4,4,7", "new,item 1,5,10"]
    Path("more.csv").write_text("\n".join(rows) + "\n", "utf-8")
    assert call("predict", run, "--file", "more.csv", "--k", "2", "--out", "users.csv").exit_code == 0
    with Path("users.csv").open(encoding="utf-8", newline="") as file:
        again = list(csv.DictReader(file))
    assert [row.pop("user") for row in again] == ["new", "new", "old", "old"]
    assert [row["item"] for row in again] == [row["item"] for row in found]

    Path("asked.jsonl").write_text('{"items": ["item 1", "item 2"]}\n', "utf-8")
    printed = call("predict", run, "--file", "asked.jsonl", "--k", "2").stdout.splitlines()
    assert [line.split("\t")[2][:6] for line in printed] == [row["item"] for row in found[:2]]


def test_reasons_and_an_item_that_is_asked_about(call: Call, run: Path) -> None:
    answer = json.loads(
        call("predict", run, '["item 1", "item 2", "item 4"]', "--json", "-s", "because=2").stdout
    )
    assert any(one["because"] for one in answer["items"])
    assert all(reason["change"] > 0 for one in answer["items"] for reason in one["because"])
    shown = call("explain", run, '["item 1", "item 2", "item 4"]', "item=item 5", "--out", "a.html")
    assert shown.exit_code == 0, shown.stderr
    assert "The recommendation stands at place" in " ".join(shown.stdout.split())
    strange = call("explain", run, '["item 1", "item 2"]', "item=item 99")
    assert strange.exit_code == 2
    assert "item 'item 99' is not in the catalogue of the training data" in strange.stderr


@pytest.mark.parametrize(
    ("titles", "fault"),
    [
        ("id,name\nx,A\n", "data.titles: names none of the 11 items"),
        ("item_id,name\n", "films.csv: holds no records"),
        ("item_id,colour\nitem 1,red\n", "films.csv: no column named like title; there are item_id, colour"),
    ],
)
def test_titles_that_are_none(call: Call, home: Path, titles: str, fault: str) -> None:
    write_ratings(home / "ratings.csv", 20)
    (home / "films.csv").write_text(titles, "utf-8")
    (home / "recipe.toml").write_text(
        '[task]\nkind="recommend"\n[data]\ntrain="ratings.csv"\ntitles="films.csv"\n'
        + ('title_columns = { item = "id" }\n' if titles.startswith("id") else "")
        + '[model]\nkind="sasrec"\n',
        "utf-8",
    )
    for verb in ("train", "check"):
        result = call(verb, "recipe.toml")
        assert result.exit_code == 2
        assert fault in result.stderr + result.stdout
    assert not Path("runs/run/identity.json").exists()


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        (
            [f"u{n},i{n % 5},{n}" for n in range(30)],
            "ratings.csv: no row can be trained on; see regard check",
        ),
        ([f"u{n % 15},i{n % 4},{n}" for n in range(30)], "fewer than 20 users, too few to hold any out"),
        ([f"u{n % 7},i{n},{n if n - 11 else ''}" for n in range(40)], "ratings.csv:13: the time is empty"),
    ],
)
def test_too_few_or_without_a_time(call: Call, home: Path, rows: list[str], fault: str) -> None:
    """Users with one item each, users with two, and a time that is missing."""
    (home / "ratings.csv").write_text("\n".join(["user,item,time", *rows]) + "\n", "utf-8")
    (home / "recipe.toml").write_text(
        '[task]\nkind="recommend"\n[data]\ntrain="ratings.csv"\n[model]\nkind="sasrec"\nd_model=8\nd_ff=8\n',
        "utf-8",
    )
    result = call("train", "recipe.toml")
    assert result.exit_code == 2
    assert fault in result.stderr


NOW = 1_700_000_000


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (["u,i,1"] * 3, "train: 1 row with a single item to learn from"),
        ([f"u{n % 7},i{n},{5_000_000_000}" for n in range(40)], "with a time that is yet to come"),
        ([f"u{n % 7},i{n % 9},{NOW}" for n in range(40)], "have the same time as the one before them"),
        ([f"u{n % 7},{n % 9}{'.0' * (n % 2)},{NOW + n}" for n in range(80)], "are written in two ways"),
        ([f"u{n % 7},i{n % 9},{NOW + n}" for n in range(40)] * 2, "stand in the files twice and count once"),
    ],
)
def test_check_tells_what_is_odd(call: Call, home: Path, rows: list[str], said: str) -> None:
    (home / "ratings.csv").write_text("\n".join(["user,item,time", *rows]) + "\n", "utf-8")
    (home / "recipe.toml").write_text(
        '[task]\nkind="recommend"\n[data]\ntrain="ratings.csv"\n[model]\nkind="sasrec"\nd_model=8\nd_ff=8\n',
        "utf-8",
    )
    shown = call("check", "recipe.toml").stdout
    assert said in " ".join(shown.split())


def test_without_times_the_order_decides_and_a_cut_in_time_is_refused(call: Call, home: Path) -> None:
    rows = [f"u{n % 7},i{n % 9}" for n in range(60)]
    (home / "ratings.csv").write_text("\n".join(["user,item", *rows]) + "\n", "utf-8")
    assert "No column holds times" in call("init", "ratings.csv").stdout
    assert "no column of times" in call("check", "recipe.toml").stdout
    result = call("train", "recipe.toml", "task.split=time")
    assert result.exit_code == 2
    assert "has no column of times, so it cannot be split at a moment" in result.stderr
